//! `thinwire inspect`: what a file or folder is.

mod checkpoint;
mod config;
mod frames;
mod kind;
mod metrics;
mod tensors;

use std::path::{Path, PathBuf};

use clap::Args;

use self::kind::Kind;
use crate::error::{self, CommandError};
use crate::output::Output;

/// Say what a file or folder is, and what is in it.
///
/// Knows a run's folder, a checkpoint (step-00000100) and its files, a configuration (.toml), message files and other
/// frames, .safetensors and .npy files, and metrics (.jsonl). Prints one result for each, in order.
///
/// For a configuration: the resolved values, the layer map, the parameters of each stage and the bytes of a step on
/// every link.
#[derive(Debug, Args)]
pub(crate) struct Inspect {
    /// Files or folders.
    #[arg(required = true, value_name = "FILE")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    options: Options,
}

#[derive(Debug, Args)]
struct Options {
    /// Read a checkpoint's files whole and compare their hashes; decode a message.
    #[arg(long)]
    verify: bool,
    /// For a configuration: measure each unit of the model on this machine, and split it by that.
    #[arg(long)]
    measure: bool,
    /// Change one setting of a configuration, such as pipeline.stages=3; may be given again.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
}

impl Inspect {
    /// Goes on after an error, so that every path has its answer, in order.
    pub(crate) fn run(self, output: Output) -> Result<(), CommandError> {
        let mut failed = 0;
        for path in &self.paths {
            match inspect(path, &self.options, output) {
                Ok(()) => {}
                Err(error) if self.paths.len() == 1 => return Err(error),
                Err(error) => {
                    error::report(&*error);
                    failed += 1;
                }
            }
        }
        if failed == 0 {
            return Ok(());
        }
        Err(format!("{failed} of {} paths could not be inspected", self.paths.len()).into())
    }
}

fn inspect(path: &Path, options: &Options, output: Output) -> Result<(), CommandError> {
    match Kind::of(path)? {
        Kind::Folder => output.print(&checkpoint::report(path, options.verify)?)?,
        Kind::Manifest => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            output.print(&checkpoint::report(folder.unwrap_or(Path::new(".")), options.verify)?)?;
        }
        Kind::Config => output.print(&config::report(path, &options.overrides, options.measure)?)?,
        Kind::Frames => output.print(&frames::report(path, options.verify)?)?,
        Kind::Safetensors => output.print(&tensors::safetensors(path, options.verify)?)?,
        Kind::Npy => output.print(&tensors::npy(path)?)?,
        Kind::Metrics => output.print(&metrics::report(path)?)?,
    }
    Ok(())
}
