//! Checkpoints: for every unit of the model a file of weights and one of optimizer state, and a manifest with their
//! hashes, and what the ends of boundaries remember of samples. They know nothing of the number of stages. Layout and protocol are in `docs/checkpoints.md`.
//!
//! Every stage calls [`write_units`], the stages exchange the entries, then every stage calls [`commit`](commit()).

mod durable;
mod error;
mod header;
mod layout;
mod list;
mod manifest;
mod memory_file;
mod pieces;
mod prune;
mod restore;
mod source;
mod tensors;
mod unit_file;
mod verify;
mod weights;
mod write;

pub use error::CheckpointError;
pub use layout::{parse_step_folder, step_folder};
pub use list::{available, latest};
pub use manifest::{FORMAT, FileEntry, Manifest, Results, RunFacts};
pub use memory_file::{SavedMemories, has_memories};
pub use pieces::TrainedShare;
pub use prune::{clean, prune, remove};
pub use restore::{check_run, load_part, load_shard, restore, restore_weights};
pub use weights::Weights;
pub use write::{commit, write_shares, write_units};
