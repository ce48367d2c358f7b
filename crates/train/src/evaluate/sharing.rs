//! How a model is shared in an evaluation, and what its ranks add up.

use std::num::NonZeroUsize;
use std::sync::Arc;

use thinwire_collective::{AllReduceSpec, Settings, memory};

use super::EvaluateError;
use crate::tensor_parallel::{SiteStatistics, TensorGroup};

/// How many ranks share a model, each a thread of this process, and how they add up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// Ranks.
    pub ranks: NonZeroUsize,
    /// Their sums; one rank has none.
    pub all_reduce: AllReduceSpec,
}

impl Sharing {
    /// One rank that has all of the model.
    pub const ALONE: Self = Self { ranks: NonZeroUsize::MIN, all_reduce: AllReduceSpec::Exact };
}

/// The ends of all ranks of one model; none for a model that is not shared.
#[derive(Debug)]
pub(super) struct Groups {
    ends: Vec<Arc<TensorGroup>>,
    exact: bool,
}

impl Groups {
    pub(super) fn new(sharing: Sharing) -> Result<Self, EvaluateError> {
        let Sharing { ranks, all_reduce } = sharing;
        let exact = ranks.get() == 1 || all_reduce == AllReduceSpec::Exact;
        if ranks.get() == 1 {
            return Ok(Self { ends: Vec::new(), exact });
        }
        let groups = memory::group(ranks.get(), &Settings::default())?;
        let ends: Vec<_> = groups.into_iter().map(|group| TensorGroup::new(group, all_reduce)).collect();
        for end in &ends {
            end.measure_errors();
        }
        Ok(Self { ends, exact })
    }

    /// That of a rank.
    pub(super) fn end(&self, rank: usize) -> Option<&Arc<TensorGroup>> {
        self.ends.get(rank)
    }

    /// Whether nothing is lost in the sums.
    pub(super) fn are_exact(&self) -> bool {
        self.exact
    }

    /// From now on sums are exact and not counted, or as they were made to be.
    pub(super) fn set_exact(&self, exact: bool) {
        self.ends.iter().for_each(|end| end.set_exact(exact));
    }

    /// What all ranks together have added up, by site.
    pub(super) fn statistics(&self) -> Vec<SiteStatistics> {
        let mut all: Vec<SiteStatistics> = Vec::new();
        for end in &self.ends {
            let sites = end.statistics();
            if all.is_empty() {
                all = sites;
            } else {
                all.iter_mut().zip(&sites).for_each(|(all, site)| all.merge(site));
            }
        }
        all
    }
}
