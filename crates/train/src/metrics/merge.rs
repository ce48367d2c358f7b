//! Joins what the stages tell about one step into one record.

use std::collections::BTreeMap;

use super::all_reduce::{AllReduceKey, AllReduceReport};
use super::event::{Event, LinkKey, LinkReport};
use super::record::{AllReduceRecord, LinkRecord, StageRecord, StepRecord};

/// Collects the stages' [`Event::Step`]s until all of them have reported a step.
#[derive(Debug)]
pub(super) struct StepMerger {
    observed: usize,
    pending: BTreeMap<u64, Pending>,
    totals: Totals,
}

/// What has been sent so far.
#[derive(Debug, Default)]
struct Totals {
    links: BTreeMap<LinkKey, LinkReport>,
    all_reduces: BTreeMap<AllReduceKey, AllReduceReport>,
}

#[derive(Debug, Default)]
struct Pending {
    stages: BTreeMap<usize, StageRecord>,
    sent: Totals,
}

impl StepMerger {
    /// A merger that is fed by `observed` stages.
    pub(super) fn new(observed: usize) -> StepMerger {
        StepMerger { observed, pending: BTreeMap::new(), totals: Totals::default() }
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
            ref all_reduces,
        } = event
        else {
            return None;
        };
        let pending = self.pending.entry(step).or_default();
        pending.stages.insert(stage, StageRecord { stage, seconds, times });
        pending.sent.links.extend(links.iter().map(|link| (link.key(), *link)));
        pending.sent.all_reduces.extend(all_reduces.iter().map(|report| (report.key(), *report)));
        if pending.stages.len() < self.observed {
            return None;
        }
        let Pending { stages, sent } = self.pending.remove(&step)?;
        let seconds = stages.values().map(|stage| stage.seconds).fold(0.0, f64::max);
        let (links, all_reduces) = self.totals.advance(sent);
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
            links,
            all_reduces,
            stages: stages.into_values().collect(),
        })
    }

    /// Whether some stages, but not all, have reported the step.
    pub(super) fn is_pending(&self, step: u64) -> bool {
        self.pending.contains_key(&step)
    }
}

impl Totals {
    /// What is new in `now`, which takes the place of what was known.
    fn advance(&mut self, now: Totals) -> (Vec<LinkRecord>, Vec<AllReduceRecord>) {
        let links = now.links.iter().map(|(key, link)| LinkRecord::between(self.links.get(key), link));
        let links = links.collect();
        let all_reduces = now.all_reduces.iter();
        let all_reduces = all_reduces
            .map(|(key, report)| AllReduceRecord::between(self.all_reduces.get(key), report))
            .collect();
        self.links.extend(now.links);
        self.all_reduces.extend(now.all_reduces);
        (links, all_reduces)
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
    fn all_reduces_are_differences_too() {
        let mut merger = StepMerger::new(1);
        assert_eq!(merger.add(&samples::step(0, 3)).unwrap().all_reduces[0].bytes, 1200);
        let second = merger.add(&samples::step(0, 5)).unwrap().all_reduces[0];
        assert_eq!((second.calls, second.bytes, second.total_bytes), (16, 800, 2000));
        assert_eq!((second.f32_bytes, second.bits_per_element), (6400, Some(4.0)));
        let anew = merger.add(&samples::step(0, 1)).unwrap().all_reduces[0];
        assert_eq!((anew.calls, anew.bytes, anew.total_bytes), (8, 400, 400));
    }

    #[test]
    fn a_sender_that_started_anew_counts_from_zero() {
        let mut merger = StepMerger::new(1);
        merger.add(&samples::step(0, 5)).unwrap();
        let link = merger.add(&samples::step(0, 1)).unwrap().links[0];
        assert_eq!((link.bytes, link.total_bytes), (1100, 1100));
    }
}
