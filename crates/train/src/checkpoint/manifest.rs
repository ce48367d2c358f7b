//! The manifest: what makes a folder a checkpoint.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::{CheckpointError, require};
use super::layout::{Kind, file_name, file_names, is_memory_name, manifest_path};
use crate::config::{StageUnits, Unit};
use crate::model::Architecture;

/// Version of the layout that this crate writes and reads.
pub const FORMAT: u32 = 1;

/// More than the manifest of the largest model needs, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// What is in a checkpoint: all files of all stages, so that every stage writes the same manifest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the layout.
    pub format: u32,
    /// Steps the run had made.
    pub step: u64,
    /// How far the run had come.
    pub results: Results,
    /// The run that wrote it.
    pub run: RunFacts,
    /// The files in model order, for each unit the weights first.
    pub files: Vec<FileEntry>,
    /// What the ends of boundaries remember of samples, in stage order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory: Vec<FileEntry>,
}

/// What a run had reached, so that one that is resumed at its end can still tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// Mean loss of the last step, in nats a token; nothing if it was not finite.
    pub loss: Option<f64>,
    /// Mean loss of the last evaluation.
    pub heldout_loss: Option<f64>,
    /// Tokens of that evaluation.
    pub heldout_tokens: u64,
}

/// What a run must have in common with one that it continues.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunFacts {
    /// Id of the run that wrote the checkpoint; may differ.
    pub run: String,
    /// The model.
    pub architecture: Architecture,
    /// Fingerprint of the model whose weights are frozen, and so not in the checkpoint; only where adapters are trained.
    #[serde(default)]
    pub base: Option<String>,
    /// The units each stage had; may differ.
    pub stages: Vec<StageUnits>,
    /// Seed of the initialization and of the order of the data.
    pub seed: u64,
    /// Id of the tokenizer.
    pub tokenizer: String,
    /// Hash of the training data.
    pub data: String,
    /// Tokens of a sequence, sequences of a micro-batch, micro-batches of a step: with the step and the seed, the
    /// position in the data.
    pub batch: [usize; 3],
}

/// One file of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Its name in the step's folder.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Its SHA-256, in 64 lower-case hexadecimal digits.
    pub sha256: String,
    /// Number of tensors in it, or of samples.
    pub tensors: usize,
}

impl Manifest {
    /// The manifest of step `step`. `files` are what [`write_units`](super::write_units) gave on each stage, in stage
    /// order.
    ///
    /// # Errors
    /// The files are not those of all units of the model, in order.
    pub fn new(
        step: u64,
        results: Results,
        run: RunFacts,
        files: Vec<FileEntry>,
    ) -> Result<Self, CheckpointError> {
        let layers = run.architecture.layers;
        let (memory, files) = files.into_iter().partition(|file| is_memory_name(&file.name, layers));
        let manifest = Self { format: FORMAT, step, results, run, files, memory };
        manifest.check_files(Path::new("new manifest"))?;
        Ok(manifest)
    }

    /// Reads and checks the manifest of step `step` in `dir`; the files it names are not looked at.
    ///
    /// # Errors
    /// There is none, it cannot be read or parsed, it has another format version, step, or set of files.
    pub fn read(dir: &Path, step: u64) -> Result<Self, CheckpointError> {
        #[derive(Deserialize)]
        struct Version {
            format: u32,
        }
        let path = &manifest_path(dir, step);
        let text = read_bounded(path).map_err(CheckpointError::io("read", path))?;
        let malformed = |source| CheckpointError::Malformed { path: path.clone(), source };
        let Version { format } = serde_json::from_slice(&text).map_err(malformed)?;
        require(format == FORMAT, path, "format version", FORMAT, format)?;
        let manifest: Self = serde_json::from_slice(&text).map_err(malformed)?;
        require(manifest.step == step, path, "step", step, manifest.step)?;
        manifest.check_files(path)?;
        Ok(manifest)
    }

    /// Its text in the file.
    pub(super) fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).expect("a manifest is plain data")
    }

    /// As [`Manifest::read`]; `None` where there is no manifest or not a valid one.
    pub(super) fn read_valid(dir: &Path, step: u64) -> Result<Option<Self>, CheckpointError> {
        match Self::read(dir, step) {
            Ok(manifest) => Ok(Some(manifest)),
            Err(CheckpointError::Malformed { .. } | CheckpointError::Mismatch { .. }) => Ok(None),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The entry of one file; `None` if the model has no such unit.
    pub(super) fn entry(&self, unit: Unit, kind: Kind) -> Option<&FileEntry> {
        let name = file_name(unit, kind);
        self.files.iter().find(|file| file.name == name)
    }

    /// The names are compared with those that the model's units have, so none can lead out of the folder.
    fn check_files(&self, path: &Path) -> Result<(), CheckpointError> {
        let layers = self.run.architecture.layers;
        let count = layers.saturating_add(2).saturating_mul(2);
        require(self.files.len() == count, path, "number of files", count, self.files.len())?;
        let units = StageUnits::whole(layers);
        for (index, (file, name)) in self.files.iter().zip(file_names(&units)).enumerate() {
            require(file.name == name, path, format_args!("name of file {index}"), name, &file.name)?;
        }
        for (index, file) in self.memory.iter().enumerate() {
            let new = self.memory[..index].iter().all(|other| other.name != file.name);
            let valid = new && is_memory_name(&file.name, layers);
            let what = format_args!("name of memory {index}");
            require(valid, path, what, "a boundary's, an end's and a number format's", &file.name)?;
        }
        Ok(())
    }
}

impl RunFacts {
    /// Checks that a run of these facts, read from `path`, can go on as the run `expected`.
    pub(super) fn check(&self, expected: &Self, path: &Path) -> Result<(), CheckpointError> {
        self.check_architecture(&expected.architecture, path)?;
        self.check_base(expected.base.as_deref(), path)?;
        require(self.seed == expected.seed, path, "seed", expected.seed, self.seed)?;
        require(
            self.tokenizer == expected.tokenizer,
            path,
            "tokenizer",
            &expected.tokenizer,
            &self.tokenizer,
        )?;
        require(self.data == expected.data, path, "hash of the training data", &expected.data, &self.data)?;
        for (index, what) in
            ["train.sequence", "train.micro_batch", "train.micro_batches"].into_iter().enumerate()
        {
            let (found, expected) = (self.batch[index], expected.batch[index]);
            require(found == expected, path, what, expected, found)?;
        }
        Ok(())
    }

    /// Checks that the model whose weights are not in the checkpoint is the one with the fingerprint `expected`.
    pub(crate) fn check_base(&self, expected: Option<&str>, path: &Path) -> Result<(), CheckpointError> {
        let what = "fingerprint of the model that the adapters are for";
        let found = self.base.as_deref();
        require(found == expected, path, what, expected.unwrap_or("none"), found.unwrap_or("none"))
    }

    /// Checks that the model is the one `expected`, field by field.
    pub(crate) fn check_architecture(
        &self,
        expected: &Architecture,
        path: &Path,
    ) -> Result<(), CheckpointError> {
        let fields = |arch| serde_json::to_value(arch).expect("an architecture is plain data");
        let found = fields(&self.architecture);
        let expected = fields(expected);
        for (field, expected) in expected.as_object().into_iter().flatten() {
            let found = &found[field];
            require(found == expected, path, format_args!("architecture.{field}"), expected, found)?;
        }
        Ok(())
    }
}

fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("larger than {MAX_BYTES} bytes")));
    }
    Ok(text)
}
