//! What all ranks found in a case, put together.

use std::collections::BTreeMap;
use std::time::Duration;

use super::measure::Measured;
use super::workers::Workers;
use crate::error::CommandError;

/// Cases of which some ranks are still missing.
pub(super) struct Collected {
    ranks: usize,
    cases: BTreeMap<usize, Vec<Measured>>,
}

impl Collected {
    pub(super) fn new(ranks: usize) -> Self {
        Self { ranks, cases: BTreeMap::new() }
    }

    /// The whole case, by rank, if this rank was the last one.
    pub(super) fn add(&mut self, measured: Measured) -> Option<Vec<Measured>> {
        let (case, found) = (measured.case, self.cases.entry(measured.case).or_default());
        found.push(measured);
        if found.len() < self.ranks {
            return None;
        }
        let mut found = self.cases.remove(&case)?;
        found.sort_by_key(|measured| measured.rank);
        Some(found)
    }
}

/// Gives each case that the workers have measured to `done`, until they have ended.
pub(super) fn follow(
    workers: &mut Workers,
    ranks: usize,
    patience: Duration,
    mut done: impl FnMut(Vec<Measured>) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let mut collected = Collected::new(ranks);
    while let Some((worker, line)) = workers.next(patience)? {
        let measured: Measured = serde_json::from_str(&line).map_err(|_| workers.nonsense(worker, &line))?;
        if let Some(case) = collected.add(measured) {
            done(case)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_whole_with_its_last_rank() {
        let mut collected = Collected::new(2);
        let mut add = |case, rank| {
            let whole = collected.add(Measured { case, rank, ..Measured::default() });
            whole.map(|case| case.iter().map(|measured| (measured.case, measured.rank)).collect::<Vec<_>>())
        };
        assert_eq!(add(0, 1), None);
        assert_eq!(add(1, 1), None, "a rank may be ahead");
        assert_eq!(add(0, 0), Some(vec![(0, 0), (0, 1)]));
        assert_eq!(add(1, 0), Some(vec![(1, 0), (1, 1)]));
    }
}
