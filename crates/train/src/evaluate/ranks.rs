//! A part of a model on the ranks that share it, each a thread of this process.

use std::thread;

use thinwire_collective::CollectiveError;

use super::EvaluateError;
use crate::data::MicroBatch;
use crate::model::{Architecture, KvCache};
use crate::pipeline::{Compute, Extended, Forwarded, HostTensor};

/// The shares of a part, by rank; one that is all of it, if nobody shares it.
#[derive(Debug)]
pub(crate) struct Ranks(Vec<Compute>);

impl Ranks {
    /// The shares of one part, whose ranks are in one group.
    pub(super) fn new(shares: Vec<Compute>) -> Self {
        Self(shares)
    }

    /// The model.
    ///
    /// # Panics
    /// Never: there is a first rank.
    pub(crate) fn architecture(&self) -> &Architecture {
        self.0[0].part().architecture()
    }

    /// As [`Compute::cache`], for every rank.
    pub(crate) fn caches(&self, capacity: usize) -> Vec<KvCache> {
        self.0.iter().map(|share| share.cache(capacity)).collect()
    }

    /// As [`Compute::evaluate`].
    ///
    /// # Errors
    /// The ranks cannot add up.
    pub(crate) fn evaluate(
        &self,
        batch: &MicroBatch,
        entered: Option<HostTensor>,
    ) -> Result<Forwarded, EvaluateError> {
        self.together(entered, vec![(); self.0.len()], |share, entered, ()| share.evaluate(batch, entered))
    }

    /// As [`Compute::extend`], with the caches of all ranks.
    ///
    /// # Errors
    /// The ranks cannot add up.
    pub(crate) fn extend(
        &self,
        tokens: &[u32],
        entered: Option<HostTensor>,
        caches: &mut [KvCache],
        last: usize,
    ) -> Result<Extended, EvaluateError> {
        self.together(entered, caches.iter_mut().collect(), |share, entered, cache| {
            share.extend(tokens, entered, cache, last)
        })
    }

    /// Runs `pass` on every rank with its own of `states`. All come to the same result, which is returned.
    fn together<S: Send, T: Send>(
        &self,
        entered: Option<HostTensor>,
        states: Vec<S>,
        pass: impl Fn(&Compute, Option<HostTensor>, S) -> T + Sync,
    ) -> Result<T, EvaluateError> {
        let mut ranks = self.0.iter().zip(states);
        let (first, state) = ranks.next().expect("there is a first rank");
        let result = thread::scope(|scope| {
            for (share, state) in ranks {
                let (pass, entered) = (&pass, entered.clone());
                scope.spawn(move || pass(share, entered, state));
            }
            pass(first, entered, state)
        });
        self.check()?;
        Ok(result)
    }

    /// # Errors
    /// What went wrong on a rank, best the one where it began.
    fn check(&self) -> Result<(), CollectiveError> {
        let groups = self.0.iter().filter_map(|share| share.part().group());
        let failures: Vec<_> = groups.filter_map(|group| group.check().err()).collect();
        let began = failures.iter().find(|failure| !matches!(failure, CollectiveError::GaveUp { .. }));
        began.or(failures.first()).map_or(Ok(()), |failure| Err(failure.clone()))
    }
}
