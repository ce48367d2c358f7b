//! What a tensor file holds, without its values.

use std::collections::BTreeMap;

use serde::Serialize;

/// The header of a tensor file, checked against the file's length.
#[derive(Debug, Serialize)]
pub(crate) struct Listing {
    /// In the order of the file.
    pub(crate) tensors: Vec<Entry>,
    /// What else the header says.
    pub(crate) metadata: BTreeMap<String, String>,
    /// Of the whole file.
    pub(crate) bytes: u64,
}

/// One tensor.
#[derive(Debug, Serialize)]
pub(crate) struct Entry {
    pub(crate) name: String,
    /// As the format names it: `F32`, `<f4`.
    pub(crate) dtype: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) bytes: u64,
}

impl Entry {
    /// Number of values.
    pub(crate) fn elements(&self) -> u64 {
        self.shape.iter().map(|&extent| extent as u64).product()
    }
}
