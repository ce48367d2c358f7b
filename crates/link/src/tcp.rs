//! Links between processes and machines.

mod connect;
mod establish;
mod listener;
mod pair;
mod socket;
#[cfg(test)]
mod tests;

pub use connect::connect;
pub use listener::Listener;
pub use pair::pair;
