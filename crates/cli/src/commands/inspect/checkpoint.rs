//! Checkpoints: a run's newest, one by its folder, and single files.

use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Serialize;
use thinwire_train::checkpoint::{self, CheckpointError, FileEntry, Manifest, RunFacts};
use thinwire_train::config::{ConfigError, StageUnits, Unit};
use thinwire_train::model::{Architecture, Lora};
use thinwire_train::run::FoundCheckpoint;

use super::config::{Parameters, StageReport};
use crate::error::CommandError;

/// A checkpoint, by its manifest.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    kind: &'static str,
    /// The checkpoint's own folder.
    path: PathBuf,
    #[serde(flatten)]
    facts: Facts,
    units: Vec<UnitReport>,
    /// What the ends of boundaries remember of samples.
    memory: Vec<FileEntry>,
    /// Of all files.
    bytes: u64,
    /// Files that are not there with their sizes: those of stages that have disks of their own.
    missing: Vec<String>,
    /// Files whose hashes were compared, all with success; `None` if that was not asked for.
    verified: Option<usize>,
}

/// What a manifest says of its run.
#[derive(Debug, Serialize)]
struct Facts {
    step: u64,
    run: String,
    architecture: Architecture,
    /// A tied matrix counts once.
    #[serde(flatten)]
    parameters: Parameters,
    stages: Vec<StageReport>,
    tokenizer: String,
    seed: u64,
}

#[derive(Debug, Serialize)]
struct UnitReport {
    unit: String,
    #[serde(flatten)]
    parameters: Parameters,
    weights: FileEntry,
    optimizer: FileEntry,
}

/// A manifest whose numbers make no model.
#[derive(Debug, thiserror::Error)]
#[error("the manifest in {} describes no model", folder.display())]
struct NoModel {
    folder: PathBuf,
    source: Box<ConfigError>,
}

/// Of the run's newest complete checkpoint, or of the checkpoint in this step folder.
pub(super) fn report(path: &Path, verify: bool) -> Result<Report, CommandError> {
    let found = FoundCheckpoint::find(path)?;
    let (folder, manifest) = (found.folder(), found.manifest);
    let verified = verify.then(|| verify_files(&manifest, &folder)).transpose()?;
    let facts = Facts::new(&manifest, &folder)?;
    let units = units(&facts.architecture).zip(manifest.files.as_chunks().0);
    Ok(Report {
        kind: "checkpoint",
        bytes: manifest.all_files().map(|file| file.bytes).fold(0, u64::saturating_add),
        missing: manifest.missing(&folder).map(|file| file.name.clone()).collect(),
        units: units.map(|(unit, files)| UnitReport::new(&facts.architecture, unit, files)).collect(),
        memory: manifest.memory,
        verified,
        facts,
        path: folder,
    })
}

/// Compares the hashes of the files that are there, and gives their number.
fn verify_files(manifest: &Manifest, folder: &Path) -> Result<usize, CheckpointError> {
    let present = manifest.all_files().filter(|file| fs::exists(folder.join(&file.name)).unwrap_or(true));
    present.map(|file| file.verify(folder)).try_fold(0, |count, result| result.map(|()| count + 1))
}

fn units(architecture: &Architecture) -> impl Iterator<Item = Unit> + use<> {
    StageUnits::whole(architecture.layers).iter()
}

impl Facts {
    fn new(manifest: &Manifest, folder: &Path) -> Result<Self, NoModel> {
        let RunFacts { run, architecture, stages, seed, tokenizer, .. } = manifest.run.clone();
        let no_model = |source| NoModel { folder: folder.into(), source: Box::new(source) };
        architecture.validate().map_err(no_model)?;
        Ok(Self {
            step: manifest.step,
            run,
            parameters: Parameters::of_model(&architecture),
            stages: stages.iter().map(|units| StageReport::new(&architecture, units)).collect(),
            architecture,
            tokenizer,
            seed,
        })
    }
}

impl UnitReport {
    fn new(architecture: &Architecture, unit: Unit, [weights, optimizer]: &[FileEntry; 2]) -> Self {
        Self {
            unit: unit.to_string(),
            parameters: Parameters::of_unit(architecture, unit),
            weights: weights.clone(),
            optimizer: optimizer.clone(),
        }
    }
}

/// The checkpoint that a file belongs to.
#[derive(Debug, Serialize)]
pub(super) struct Membership {
    unit: String,
    /// `weights` or `optimizer`.
    content: &'static str,
    #[serde(flatten)]
    facts: Facts,
    /// Whether size and hash were compared, with success.
    verified: bool,
}

impl Membership {
    /// `None` for a file that no manifest beside it names.
    pub(super) fn of(path: &Path, verify: bool) -> Result<Option<Self>, CommandError> {
        let path = fs::canonicalize(path)?;
        let Some((folder, name)) = path.parent().zip(path.file_name()) else { return Ok(None) };
        let Some((dir, step)) = checkpoint::parse_step_folder(folder) else { return Ok(None) };
        let manifest = match Manifest::read(dir, step) {
            // What a killed run left of a checkpoint.
            Err(CheckpointError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
                return Ok(None);
            }
            manifest => manifest?,
        };
        let Some(at) = manifest.files.iter().position(|file| *file.name == *name) else { return Ok(None) };
        if verify {
            manifest.files[at].verify(folder)?;
        }
        let facts = Facts::new(&manifest, folder)?;
        // The manifest has two files for each unit, in model order.
        let unit = units(&facts.architecture).nth(at / 2).map(|unit| unit.to_string()).unwrap_or_default();
        let content = if at % 2 == 0 { "weights" } else { "optimizer" };
        Ok(Some(Self { unit, content, facts, verified: verify }))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = 2 * self.units.len() + self.memory.len();
        write!(f, "{}: checkpoint, {files} files, {} bytes", self.path.display(), self.bytes)?;
        if let Some(verified) = self.verified {
            write!(f, ", {verified} verified")?;
        }
        write!(f, "\n{}", self.facts)?;
        write!(f, "\n\n  {:<12}{:>16}{:>16}", "unit", "parameters", "trainable")?;
        write!(f, "{:>16}{:>18}", "weight bytes", "optimizer bytes")?;
        for UnitReport { unit, parameters, weights, optimizer } in &self.units {
            let Parameters { all, trainable } = parameters;
            write!(f, "\n  {unit:<12}{all:>16}{trainable:>16}{:>16}{:>18}", weights.bytes, optimizer.bytes)?;
        }
        if !self.memory.is_empty() {
            write!(f, "\n\n  {:<28}{:>16}{:>16}", "remembered", "samples", "bytes")?;
        }
        for FileEntry { name, tensors, bytes, .. } in &self.memory {
            write!(f, "\n  {name:<28}{tensors:>16}{bytes:>16}")?;
        }
        if !self.missing.is_empty() {
            write!(f, "\n\n  not here: {}", self.missing.join(", "))?;
        }
        Ok(())
    }
}

impl fmt::Display for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Architecture { family, layers, hidden, heads, kv_heads, ffn, context, vocab, tied, .. } =
            &self.architecture;
        let head = if *tied { "tied" } else { "untied" };
        writeln!(f, "  step        {}", self.step)?;
        writeln!(f, "  run         {}, seed {}", self.run.escape_debug(), self.seed)?;
        writeln!(f, "  tokenizer   {}", self.tokenizer.escape_debug())?;
        writeln!(
            f,
            "  model       {}, {layers} layers, hidden {hidden}, {heads} heads ({kv_heads} key/value), ffn {ffn}, \
             context {context}, vocabulary {vocab}, {head}",
            family.name()
        )?;
        write!(f, "  parameters  {}", self.parameters.all)?;
        if let Some(Lora { rank, alpha, targets }) = &self.architecture.lora {
            let targets = targets.join(", ");
            write!(f, ", {} of them in adapters of rank {rank}, alpha {alpha}: {targets}", self.parameters.trainable)?;
        }
        for (stage, StageReport { units, parameters }) in self.stages.iter().enumerate() {
            write!(f, "\n  stage {stage:<6}{units}: {parameters}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Membership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verified = if self.verified { ", verified" } else { "" };
        write!(f, "  {} of {} in a checkpoint{verified}\n{}", self.content, self.unit, self.facts)
    }
}
