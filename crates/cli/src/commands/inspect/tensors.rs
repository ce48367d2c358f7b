//! Files of tensors, those of checkpoints among them.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::checkpoint::Membership;
use crate::error::CommandError;
use crate::tensor::{self, Entry, Listing, TensorFileError};

/// What a tensor file holds.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    kind: &'static str,
    path: PathBuf,
    /// Values of all tensors.
    elements: u64,
    #[serde(flatten)]
    listing: Listing,
    /// If it is a file of a checkpoint.
    checkpoint: Option<Membership>,
}

pub(super) fn safetensors(path: &Path, verify: bool) -> Result<Report, CommandError> {
    let listing = tensor::list_safetensors(path)?;
    let checkpoint = Membership::of(path, verify)?;
    Ok(Report::new("safetensors", path, listing, checkpoint))
}

pub(super) fn npy(path: &Path) -> Result<Report, TensorFileError> {
    Ok(Report::new("npy", path, tensor::list_npy(path)?, None))
}

impl Report {
    fn new(kind: &'static str, path: &Path, listing: Listing, checkpoint: Option<Membership>) -> Self {
        let elements = listing.tensors.iter().map(Entry::elements).fold(0, u64::saturating_add);
        Self { kind, path: path.into(), elements, listing, checkpoint }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Listing { tensors, metadata, bytes } = &self.listing;
        let (path, kind, count) = (self.path.display(), self.kind, tensors.len());
        write!(f, "{path}: {kind}, {count} tensors of {} values, {bytes} bytes", self.elements)?;
        if let Some(checkpoint) = &self.checkpoint {
            write!(f, "\n{checkpoint}")?;
        }
        // Names come from the file: whatever a terminal could take for a command is escaped.
        for (key, value) in metadata {
            write!(f, "\n  {}: {}", key.escape_debug(), value.escape_debug())?;
        }
        for Entry { name, dtype, shape, .. } in tensors {
            write!(f, "\n  {} {shape:?} {}", name.escape_debug(), dtype.escape_debug())?;
        }
        Ok(())
    }
}
