//! Joins what the stages tell about one step into one record.

use std::collections::BTreeMap;

use super::event::{Event, LinkKey, LinkReport};
use super::record::{LinkRecord, StageRecord, StepRecord};

/// Collects the stages' [`Event::Step`]s until all of them have reported a step.
#[derive(Debug)]
pub(super) struct StepMerger {
    observed: usize,
    pending: BTreeMap<u64, Pending>,
    totals: BTreeMap<LinkKey, LinkReport>,
}

#[derive(Debug, Default)]
struct Pending {
    stages: BTreeMap<usize, StageRecord>,
    links: BTreeMap<LinkKey, LinkReport>,
}

impl StepMerger {
    /// A merger that is fed by `observed` stages.
    pub(super) fn new(observed: usize) -> StepMerger {
        StepMerger { observed, pending: BTreeMap::new(), totals: BTreeMap::new() }
    }

    /// Takes an event; the last stage's report of a step gives the step's record.
    pub(super) fn add(&mut self, event: &Event) -> Option<StepRecord> {
        let &Event::Step {
            stage,
            step,
            loss,
            tokens,
            learning_rate,
            gradient_norm,
            skipped,
            seconds,
            times,
            ref links,
        } = event
        else {
            return None;
        };
        let pending = self.pending.entry(step).or_default();
        pending.stages.insert(stage, StageRecord { stage, seconds, times });
        pending.links.extend(links.iter().map(|link| (link.key(), *link)));
        if pending.stages.len() < self.observed {
            return None;
        }
        let Pending { stages, links } = self.pending.remove(&step)?;
        let seconds = stages.values().map(|stage| stage.seconds).fold(0.0, f64::max);
        Some(StepRecord {
            step,
            loss,
            perplexity: loss.exp(),
            learning_rate,
            gradient_norm,
            skipped,
            tokens,
            seconds,
            tokens_per_second: tokens as f64 / seconds,
            links: self.since_last_step(links),
            stages: stages.into_values().collect(),
        })
    }

    /// Whether some stages, but not all, have reported the step.
    pub(super) fn is_pending(&self, step: u64) -> bool {
        self.pending.contains_key(&step)
    }

    fn since_last_step(&mut self, links: BTreeMap<LinkKey, LinkReport>) -> Vec<LinkRecord> {
        let records =
            links.iter().map(|(key, link)| LinkRecord::between(self.totals.get(key), link)).collect();
        self.totals.extend(links);
        records
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    #[test]
    fn a_step_is_joined_when_all_stages_have_reported_it() {
        let mut merger = StepMerger::new(2);
        assert_eq!(merger.add(&samples::step(1, 1)), None);
        assert_eq!(merger.add(&samples::step(1, 2)), None, "stage 1 is ahead");
        let first = merger.add(&samples::step(0, 1)).unwrap();
        let second = merger.add(&samples::step(0, 2)).unwrap();
        assert_eq!((first.step, second.step), (1, 2));
        assert_eq!(second.seconds, 2.0, "the slowest stage's");
        assert_eq!(second.tokens_per_second, 1024.0);
        assert_eq!(second.perplexity, second.loss.exp());
        assert_eq!(second.stages.iter().map(|stage| stage.stage).collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn links_are_differences_of_the_cumulative_reports() {
        let mut merger = StepMerger::new(1);
        merger.add(&samples::step(0, 3)).unwrap();
        let link = merger.add(&samples::step(0, 5)).unwrap().links[0];
        assert_eq!((link.bytes, link.total_bytes), (2200, 5500));
        assert_eq!((link.bits_per_element, link.rel_sq_error), (Some(4.0), Some(0.002)));
    }

    #[test]
    fn a_sender_that_started_anew_counts_from_zero() {
        let mut merger = StepMerger::new(1);
        merger.add(&samples::step(0, 5)).unwrap();
        let link = merger.add(&samples::step(0, 1)).unwrap().links[0];
        assert_eq!((link.bytes, link.total_bytes), (1100, 1100));
    }
}
