//! `model.safetensors.index.json`: which tensor is in which file.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;

use super::MAX_JSON;
use crate::Error;
use crate::error::require;
use crate::stored::read_small;

#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

/// Each tensor's file, by the tensor's name. None lies outside the index's folder.
pub(super) fn read(path: &Path) -> Result<BTreeMap<String, PathBuf>, Error> {
    let index: Index = serde_json::from_slice(&read_small(path, MAX_JSON)?).map_err(Error::json(path))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let place = |(tensor, file): (String, String)| {
        require(is_plain(&file), path, "file of a tensor", "the name of a .safetensors file", &file)?;
        Ok((tensor, folder.join(file)))
    };
    index.weight_map.into_iter().map(place).collect()
}

/// Whether `name` names a file in the same folder, on every system.
fn is_plain(name: &str) -> bool {
    let mut components = Path::new(name).components();
    let single = matches!((components.next(), components.next()), (Some(Component::Normal(_)), None));
    single && name.ends_with(".safetensors") && !name.contains(['/', '\\', ':', '\0'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_within_the_folder() {
        assert!(is_plain("model-00001-of-00002.safetensors"));
        for name in [
            "../model.safetensors",
            "/model.safetensors",
            "a/model.safetensors",
            "a\\model.safetensors",
            "C:model.safetensors",
            "..",
            "",
            "model.bin",
            "a\0.safetensors",
        ] {
            assert!(!is_plain(name), "{name:?}");
        }
    }
}
