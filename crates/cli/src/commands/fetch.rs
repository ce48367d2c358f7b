//! `thinwire fetch`: a model of the Hugging Face hub, in the cache that all its clients share.

use std::fmt;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use thinwire_pretrained::Pretrained;

use crate::error::CommandError;
use crate::output::Output;

/// Fetch a model from the Hugging Face hub, and tell its folder.
///
/// The folder is what `model.pretrained` and `--model` take. It lies in the cache of the hub's own clients; what is there
/// already is not fetched again. `HF_HOME`, `HF_ENDPOINT` and `HF_TOKEN` mean what they
/// mean to those.
#[derive(Debug, Args)]
pub(crate) struct Fetch {
    /// The model, such as Qwen/Qwen2.5-3B.
    #[arg(value_name = "OWNER/NAME")]
    model: String,

    /// A branch, a tag or a commit.
    #[arg(long, default_value = "main")]
    revision: String,
}

#[derive(Debug, Serialize)]
struct Report {
    model: String,
    revision: String,
    folder: PathBuf,
}

impl Fetch {
    pub(crate) fn run(self, output: Output) -> Result<(), CommandError> {
        let Self { model, revision } = self;
        let folder = Pretrained::from_hub(&model, Some(&revision))?.path().to_owned();
        output.print(&Report { model, revision, folder })?;
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.folder.display())
    }
}
