//! `thinwire bench train`: training without pipeline or disk.

mod report;

use std::num::NonZero;
use std::path::PathBuf;

use clap::Args;
use thinwire_train::config::Config;
use thinwire_train::run::Bench;

use self::report::Report;
use crate::error::{CommandError, say};
use crate::output::Output;
use crate::tokenizing::tokenizing;

/// Train a recipe in this process, and tell its speed, where its time goes, and how much memory it takes.
///
/// The whole model is one stage, whatever the recipe says. Nothing is evaluated and nothing is written.
#[derive(Debug, Args)]
pub(super) struct TrainBench {
    /// The configuration.
    config: PathBuf,
    /// Change one setting, such as train.sequence=64; may be given again.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Steps that are measured.
    #[arg(long, value_name = "N", default_value = "4")]
    steps: NonZero<u32>,
    /// Steps before them.
    #[arg(long, value_name = "N", default_value = "1")]
    warmup: u32,
}

impl TrainBench {
    pub(super) fn run(self, output: Output) -> Result<(), CommandError> {
        let config = Config::load(&self.config, &self.overrides)?;
        if config.pipeline.stages > 1 {
            say(format!("one stage is measured, not the {} of the configuration\n", config.pipeline.stages));
        }
        let ranks = config.tensor_parallel.ranks;
        if ranks > 1 {
            say(format!(
                "one rank with all of every layer is measured, not the {ranks} of the configuration\n"
            ));
        }
        let size = config.train.batch_size();
        let bench = Bench::load(config, &mut tokenizing())?;
        let parameters = bench.parameters();
        let (warmup, steps) = (u64::from(self.warmup), u64::from(self.steps.get()));
        let mut done = 0;
        let measured = bench.run(warmup, steps, &mut |step| {
            done += 1;
            let (loss, rate) = (step.loss, step.tokens as f64 / step.seconds);
            say(format!("step {done}/{}   loss {loss:.4}   {rate:.0} tokens/s\n", warmup + steps));
        })?;
        output.print(&Report::new(size, parameters, &measured))?;
        Ok(())
    }
}
