//! Ranks that share a model, and what they added up.

use std::fmt;
use std::num::NonZeroUsize;

use clap::Args;
use serde::Serialize;
use thinwire_collective::AllReduceSpec;
use thinwire_train::evaluate::{Pipeline, SavedModel, Sharing};
use thinwire_train::tensor_parallel::{Site, SiteStatistics};

use crate::error::CommandError;

/// How a model is shared in one process.
#[derive(Debug, Args)]
pub(crate) struct TensorParallel {
    /// Share every layer of the model between N ranks, threads of this process, whose sums are compressed as --all-reduce
    /// says. N divides the model's heads [default: as many as the run had, or 1].
    #[arg(long, value_name = "N", value_parser = ranks)]
    tensor_parallel: Option<NonZeroUsize>,
    /// How ranks add up activations: exact, bf16, or as in echo:bits=4,group=128,compensate=true [default: as those of the
    /// run did, or exact].
    #[arg(long, value_name = "SPEC")]
    all_reduce: Option<AllReduceSpec>,
}

impl TensorParallel {
    /// What was chosen for `model`, and else what its run had.
    ///
    /// # Errors
    /// A way to add up for one rank, which has nothing to add up.
    pub(crate) fn sharing(&self, model: &SavedModel) -> Result<Sharing, CommandError> {
        let run = model.sharing();
        let ranks = self.tensor_parallel.unwrap_or(run.ranks);
        if ranks == NonZeroUsize::MIN && self.all_reduce.is_some() {
            let text =
                "--all-reduce is how ranks add up, and there is one: expected --tensor-parallel 2 or more";
            return Err(text.into());
        }
        Ok(Sharing { ranks, all_reduce: self.all_reduce.unwrap_or(run.all_reduce) })
    }
}

fn ranks(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "expected a whole number from 1 on".to_owned())
}

/// What the ranks of a model added up; numbers of all ranks together where nothing else is said.
#[derive(Debug, Serialize)]
pub(crate) struct Sums {
    ranks: NonZeroUsize,
    all_reduce: AllReduceSpec,
    /// All-reduces of each rank.
    calls: u64,
    bytes: u64,
    /// Of a value on its way to one rank.
    bits_per_element: f64,
    /// Those of layers alone, and their error; nothing for exact ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    rel_sq_error: Option<f64>,
    sites: Vec<SiteSums>,
}

/// The sums of one place in the model, in its order.
#[derive(Debug, Serialize)]
struct SiteSums {
    /// `embedding`, or the layer behind which they are: `attention` or `mlp`.
    site: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    block: Option<usize>,
    calls: u64,
    bytes: u64,
    bits_per_element: f64,
    /// Root of the mean square of what the ranks add.
    partial_rms: f64,
    /// The same of the sums.
    sum_rms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    rel_sq_error: Option<f64>,
}

impl Sums {
    /// Those of a pipeline whose parts are shared; nothing if they are not.
    pub(crate) fn of(pipeline: &Pipeline, sharing: Sharing) -> Option<Self> {
        let Sharing { ranks, all_reduce } = sharing;
        let sites = pipeline.sums();
        let sum = |of: fn(&SiteStatistics) -> u64| sites.iter().map(of).sum::<u64>();
        let [error, exact] = [0, 1].map(|at| {
            let layers = sites.iter().filter(|site| matches!(site.site, Site::Layer { .. }));
            layers.map(|site| site.error_square[at]).sum::<f64>()
        });
        (ranks.get() > 1).then(|| Self {
            ranks,
            all_reduce,
            calls: sum(|site| site.calls),
            bytes: sum(|site| site.sent_bytes),
            bits_per_element: sum(|site| site.sent_bytes) as f64 * 8.0 / sum(|site| site.sent_values) as f64,
            rel_sq_error: measured(error / exact),
            sites: sites.iter().map(SiteSums::from).collect(),
        })
    }
}

fn measured(error: f64) -> Option<f64> {
    Some(error).filter(|error| error.is_finite())
}

impl From<&SiteStatistics> for SiteSums {
    fn from(of: &SiteStatistics) -> Self {
        let (site, block) = of.site.name();
        Self {
            site,
            block,
            calls: of.calls,
            bytes: of.sent_bytes,
            bits_per_element: of.bits_per_element(),
            partial_rms: of.partial_rms(),
            sum_rms: of.sum_rms(),
            rel_sq_error: measured(of.rel_sq_error()),
        }
    }
}

impl fmt::Display for Sums {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ranks, all_reduce, calls, bytes, bits_per_element, .. } = self;
        write!(
            f,
            "{ranks} ranks      {all_reduce}: {calls} sums, {bytes} bytes, {bits_per_element:.3} bits/element"
        )?;
        match self.rel_sq_error {
            Some(error) => write!(f, ", rel. sq. error {error:.3e}"),
            None => Ok(()),
        }
    }
}
