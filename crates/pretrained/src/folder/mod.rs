//! A model folder as the transformers library writes it: `config.json` and one or more safetensors files.

mod header;
mod index;
mod names;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::config;
use crate::error::require;
use crate::pretrained::Source;
use crate::stored::{Stored, read_small};
use crate::{DecoderConfig, Error};

/// Most bytes of a JSON file other than the tokenizer.
pub(crate) const MAX_JSON: u64 = 32 << 20;

pub(crate) const CONFIG: &str = "config.json";
pub(crate) const WEIGHTS: &str = "model.safetensors";
pub(crate) const INDEX: &str = "model.safetensors.index.json";

/// Reads the configuration and the headers of all weight files.
pub(crate) fn open(folder: &Path) -> Result<(DecoderConfig, BTreeMap<String, Source>), Error> {
    let path = folder.join(CONFIG);
    let config = config::read(&path, &read_json(&path)?)?;
    let mut tensors = BTreeMap::new();
    let weights = Weights::find(folder)?;
    for file in weights.files() {
        for (name, stored) in header::read(file, |name| !names::is_ignored(&config, name))? {
            let name = names::canonical(config.family, name);
            if tensors.insert(name.clone(), Source::plain(stored)).is_some() {
                let what = format_args!("tensor `{name}`");
                return Err(Error::mismatch(file, what, "one of this name", "one in another file too"));
            }
        }
    }
    if let Weights::Sharded(index) = &weights {
        for (name, file) in index.iter().filter(|(name, _)| !names::is_ignored(&config, name)) {
            let found = tensors.contains_key(&names::canonical(config.family, name.clone()));
            require(
                found,
                file,
                format_args!("tensor `{name}`"),
                format_args!("one, as `{INDEX}` says"),
                "none",
            )?;
        }
    }
    Ok((config, tensors))
}

/// Where the weights are. Files that an index names need not be there.
enum Weights {
    Single(PathBuf),
    /// The file of each tensor.
    Sharded(BTreeMap<String, PathBuf>),
}

impl Weights {
    fn find(folder: &Path) -> Result<Self, Error> {
        let (single, sharded) = (folder.join(WEIGHTS), folder.join(INDEX));
        match (single.is_file(), sharded.is_file()) {
            (true, _) => Ok(Self::Single(single)),
            (false, true) => index::read(&sharded).map(Self::Sharded),
            (false, false) => {
                let expected = format_args!("`{WEIGHTS}` or `{INDEX}`");
                Err(Error::mismatch(folder, "weights", expected, "neither"))
            }
        }
    }

    /// Each file once.
    fn files(&self) -> BTreeSet<&PathBuf> {
        match self {
            Self::Single(file) => BTreeSet::from([file]),
            Self::Sharded(index) => index.values().collect(),
        }
    }
}

/// The files of the weights; those an index names need not be there.
#[cfg(feature = "hub")]
pub(crate) fn weight_files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    Ok(Weights::find(folder)?.files().into_iter().cloned().collect())
}

/// A JSON file of moderate size.
pub(crate) fn read_json(path: &Path) -> Result<Value, Error> {
    serde_json::from_slice(&read_small(path, MAX_JSON)?).map_err(Error::json(path))
}

/// What [`header::read`] gives: a name as in the file, and its place.
type Named = (String, Stored);
