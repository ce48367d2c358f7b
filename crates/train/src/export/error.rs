//! What can go wrong in an export.

use std::path::PathBuf;

use crate::checkpoint::CheckpointError;

/// Why there is no exported folder.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The folder would be part of the model that is exported.
    #[error("{} lies in the model's own folder, {}: export to another place", folder.display(), model.display())]
    InsideModel {
        /// The folder to write.
        folder: PathBuf,
        /// Where the model's weights are.
        model: PathBuf,
    },
    /// There are no adapters to write.
    #[error("{} has no adapters: it was not trained with [lora]", model.display())]
    NoAdapters {
        /// Where the model's weights are.
        model: PathBuf,
    },
    /// The checkpoint is not whole.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// A model of others, or the tokenizer, cannot be read; the folder cannot be written.
    #[error(transparent)]
    Pretrained(#[from] thinwire_pretrained::Error),
}
