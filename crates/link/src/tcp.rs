//! Links between processes and machines.

mod connect;
mod establish;
mod listener;
mod socket;
#[cfg(test)]
mod tests;

pub use connect::connect;
pub use listener::Listener;
