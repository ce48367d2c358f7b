//! How a run starts: the options that `train` and `stage` share.

use clap::Args;

/// How a run starts.
#[derive(Debug, Args)]
pub(crate) struct Start {
    /// Change one setting, such as train.steps=100; may be given again.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) overrides: Vec<String>,
    /// Continue from the newest checkpoint that all stages have.
    #[arg(long)]
    pub(crate) resume: bool,
    /// Replace an earlier run in the run's folder.
    #[arg(long, conflicts_with = "resume")]
    pub(crate) overwrite: bool,
}
