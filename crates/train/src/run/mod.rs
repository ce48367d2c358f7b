//! A run from its configuration: what every stage derives from it, and one stage's life.

mod bench;
mod connect;
mod error;
mod folder;
mod memory;
mod preview;
mod setup;
mod train;

pub use crate::pipeline::Stop;
pub use bench::{Bench, BenchReport, BenchStep, Phases};
pub use connect::{Neighborhood, Next, Previous, connect};
pub use error::RunError;
pub use folder::{CHECKPOINTS, CONFIG_FILE, FindError, FoundCheckpoint};
pub use preview::Preview;
pub use setup::{Links, Setup, Start, with_layer_map};
pub use train::{Emit, Outcome, Resume, train};
