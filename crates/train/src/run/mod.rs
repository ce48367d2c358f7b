//! A run from its configuration: what every stage derives from it, and one stage's life.

mod error;
mod setup;
mod train;

pub use error::RunError;
pub use setup::{Links, Setup};
pub use train::{Emit, Outcome, Resume, train};
