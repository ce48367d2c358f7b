//! One small model as each kind of files, to be damaged.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::common::json;
use super::thinwire;

/// How a model lies on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A Hugging Face folder with its weights in one file.
    Folder,
    /// The same in several files.
    Shards,
    /// A GGUF file.
    Gguf,
}

impl Kind {
    pub(super) const ALL: [Self; 3] = [Self::Folder, Self::Shards, Self::Gguf];
}

/// A model in a folder of its own.
pub(super) struct Place {
    folder: tempfile::TempDir,
    kind: Kind,
    pub(super) model: PathBuf,
}

impl Place {
    pub(super) fn new(kind: Kind) -> Self {
        let fixture =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../pretrained/tests/fixtures/models/smollm.gguf");
        let folder = tempfile::tempdir().unwrap();
        let model = folder.path().join(if kind == Kind::Gguf { "model.gguf" } else { "model" });
        let mut export = thinwire(["export", "--model"]);
        export.arg(&fixture).arg("--out").arg(&model);
        match kind {
            Kind::Gguf => drop(fs::copy(&fixture, &model).unwrap()),
            Kind::Folder => drop(json(&mut export)),
            Kind::Shards => drop(json(export.args(["--shard-size", "20KB"]))),
        }
        Self { folder, kind, model }
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The file that holds a tensor.
    pub(super) fn file_of(&self, tensor: &str) -> PathBuf {
        match self.kind {
            Kind::Gguf => self.model.clone(),
            Kind::Folder => self.model.join("model.safetensors"),
            Kind::Shards => {
                let index = fs::read(self.model.join("model.safetensors.index.json")).unwrap();
                let index: Value = serde_json::from_slice(&index).unwrap();
                self.model.join(index["weight_map"][tensor].as_str().unwrap())
            }
        }
    }

    /// Exchanges the two dimensions that the file says a matrix has.
    pub(super) fn transpose(&self, tensor: &str) {
        if self.kind != Kind::Gguf {
            let reverse = |header: &mut Value| header[tensor]["shape"].as_array_mut().unwrap().reverse();
            return edit_header(&self.file_of(tensor), reverse);
        }
        let mut bytes = fs::read(&self.model).unwrap();
        // Behind the name: the number of dimensions, and each of them.
        let at = position(&bytes, gguf_name(tensor)) + gguf_name(tensor).len() + 4;
        bytes[at..at + 16].rotate_left(8);
        fs::write(&self.model, bytes).unwrap();
    }

    /// Gives a tensor a name that no model has, and returns it as the file has it.
    pub(super) fn rename(&self, tensor: &str) -> String {
        if self.kind != Kind::Gguf {
            let name = format!("{tensor}s");
            edit_header(&self.file_of(tensor), |header| {
                let info = header.as_object_mut().unwrap().remove(tensor).unwrap();
                header[&name] = info;
            });
            return name;
        }
        let mut bytes = fs::read(&self.model).unwrap();
        let at = position(&bytes, gguf_name(tensor));
        let name = gguf_name(tensor).replace("down", "dawn");
        bytes[at..at + name.len()].copy_from_slice(name.as_bytes());
        fs::write(&self.model, bytes).unwrap();
        name
    }
}

/// Changes the header of a safetensors file.
pub(super) fn edit_header(file: &Path, edit: impl FnOnce(&mut Value)) {
    let bytes = fs::read(file).unwrap();
    let (len, rest) = bytes.split_first_chunk().unwrap();
    let (header, values) = rest.split_at(u64::from_le_bytes(*len) as usize);
    let mut header = serde_json::from_slice(header).unwrap();
    edit(&mut header);
    let header = header.to_string();
    let len = (header.len() as u64).to_le_bytes();
    fs::write(file, [&len[..], header.as_bytes(), values].concat()).unwrap();
}

/// The name in a GGUF file.
fn gguf_name(tensor: &str) -> &'static str {
    assert_eq!(tensor, super::TENSOR, "the only one that is damaged");
    "blk.1.ffn_down.weight"
}

fn position(bytes: &[u8], text: &str) -> usize {
    bytes.windows(text.len()).position(|window| window == text.as_bytes()).unwrap()
}
