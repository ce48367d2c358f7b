//! Changes to a configuration that make its steps shorter, or let it fit, each simulated.

use serde::Serialize;

use super::StageMemory;
use super::planner::{Choice, Planner, PlannerError, Prediction};
use crate::config::{LayerMap, LayerPlan, PipelineSchedule, StageUnits};

/// Gains in tokens a second below this share are not worth a change.
const WORTHWHILE: f64 = 0.01;

/// Simulations that the search for a layer map may take.
const MOST_MAPS: usize = 400;

/// Codecs that are tried in both directions, from the most bits to the fewest.
const CODECS: [[&str; 2]; 6] = [
    ["f32", "f32"],
    ["bf16", "bf16"],
    ["fixed:bits=8,group=64", "fixed:bits=8,group=64"],
    ["tah", "fixed:bits=8,group=64"],
    ["tah", "fixed:bits=6,group=64"],
    ["tah", "fixed:bits=4,group=64"],
];

/// A change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Proposal {
    /// What it is about: `layers`, `micro-batch`, `schedule`, `gradient-checkpointing` or `codec`.
    pub what: &'static str,
    /// The settings, as `--set` takes them.
    pub set: Vec<String>,
    /// Whether it changes what is trained, or how its values are rounded on the way.
    pub changes_training: bool,
    /// Tokens a second with it.
    pub tokens_per_second: f64,
    /// What that is more than now, as a share; below 0 for one that only lets the run fit.
    pub gain: f64,
    /// Bytes of the stage that takes most with it.
    pub largest_memory: u64,
    /// Whether every stage then fits its machine.
    pub fits: bool,
}

impl Planner {
    /// Changes to `choice`, each alone, that are worth making; where it does not fit, also those with which it does.
    ///
    /// # Errors
    /// As [`Planner::predict`].
    pub fn propose(&mut self, choice: &Choice, now: &Prediction) -> Result<Vec<Proposal>, PlannerError> {
        let mut proposals = Vec::new();
        proposals.extend(self.best_map(choice, now)?);
        proposals.extend(self.best_micro_batch(choice, now)?);
        proposals.extend(self.other_schedule(choice, now)?);
        proposals.extend(self.other_checkpointing(choice, now)?);
        proposals.extend(self.best_codec(choice, now)?);
        Ok(proposals)
    }

    /// Moves units over boundaries, one at a time, for as long as that shortens the step: from the map as it is, and from the
    /// one with even stages.
    fn best_map(&mut self, choice: &Choice, now: &Prediction) -> Result<Option<Proposal>, PlannerError> {
        // Boundaries with settings of their own lie where they are.
        if choice.map.stages().len() < 2 || !choice.config.pipeline.boundaries.is_empty() {
            return Ok(None);
        }
        let mut left = MOST_MAPS;
        let mut best: Option<(Choice, Prediction)> = None;
        for start in [counts(&choice.map), even(choice.map.layers(), choice.map.stages().len())] {
            let found = self.climb(choice, start, &mut left)?;
            if best.as_ref().is_none_or(|(_, best)| self.better(&found.1, best)) {
                best = Some(found);
            }
        }
        let Some((found, prediction)) = best.filter(|(found, _)| found.map != choice.map) else {
            return Ok(None);
        };
        let names: Vec<String> = found.map.stages().iter().map(|units| format!("\"{units}\"")).collect();
        let set = vec![format!("pipeline.layers=[{}]", names.join(", "))];
        Ok(self.worthwhile("layers", set, false, now, &prediction))
    }

    fn climb(
        &mut self,
        choice: &Choice,
        start: Vec<usize>,
        left: &mut usize,
    ) -> Result<(Choice, Prediction), PlannerError> {
        let with = |counts: &[usize]| {
            let map = LayerMap::from_counts(choice.map.layers(), counts).expect("at least one unit a stage");
            let mut changed = Choice { map, ..choice.clone() };
            changed.config.pipeline.layers = LayerPlan::Manual(changed.map.stages().to_vec());
            changed
        };
        let mut counts = start;
        let mut best = with(&counts);
        let mut prediction = self.predict(&best)?;
        loop {
            let mut next = None;
            for moved in neighbours(&counts) {
                if *left == 0 {
                    break;
                }
                *left -= 1;
                let candidate = with(&moved);
                let found = self.predict(&candidate)?;
                if self.better(&found, &prediction) {
                    (best, prediction, next) = (candidate, found, Some(moved));
                }
            }
            match next {
                Some(moved) => counts = moved,
                None => return Ok((best, prediction)),
            }
        }
    }

    /// Half, double and so on as many sequences in a micro-batch, as many in a step.
    fn best_micro_batch(
        &mut self,
        choice: &Choice,
        now: &Prediction,
    ) -> Result<Option<Proposal>, PlannerError> {
        let train = &choice.config.train;
        let (samples, all) = (train.micro_batch, train.micro_batch.saturating_mul(train.micro_batches));
        let sizes = [samples / 4, samples / 2, samples.saturating_mul(2), samples.saturating_mul(4)];
        let mut best: Option<Proposal> = None;
        for size in sizes.into_iter().filter(|size| *size > 0 && all.is_multiple_of(*size)) {
            let mut changed = choice.clone();
            (changed.config.train.micro_batch, changed.config.train.micro_batches) = (size, all / size);
            let prediction = match self.predict(&changed) {
                // What cannot be measured here is not proposed.
                Err(PlannerError::TooLarge { .. }) => continue,
                prediction => prediction?,
            };
            let set =
                vec![format!("train.micro_batch={size}"), format!("train.micro_batches={}", all / size)];
            best = preferred(best, self.worthwhile("micro-batch", set, false, now, &prediction));
        }
        Ok(best)
    }

    fn other_schedule(
        &mut self,
        choice: &Choice,
        now: &Prediction,
    ) -> Result<Option<Proposal>, PlannerError> {
        let mut changed = choice.clone();
        let (schedule, name) = match choice.config.pipeline.schedule {
            PipelineSchedule::GPipe => (PipelineSchedule::OneForwardOneBackward, "1f1b"),
            PipelineSchedule::OneForwardOneBackward => (PipelineSchedule::GPipe, "gpipe"),
        };
        changed.config.pipeline.schedule = schedule;
        let prediction = self.predict(&changed)?;
        Ok(self.worthwhile("schedule", vec![format!("pipeline.schedule={name}")], false, now, &prediction))
    }

    fn other_checkpointing(
        &mut self,
        choice: &Choice,
        now: &Prediction,
    ) -> Result<Option<Proposal>, PlannerError> {
        let mut changed = choice.clone();
        let on = !choice.config.train.gradient_checkpointing;
        // Running blocks twice never pays where they fit as they are.
        if on && self.lack(&now.memory) == 0 {
            return Ok(None);
        }
        changed.config.train.gradient_checkpointing = on;
        let prediction = self.predict(&changed)?;
        let set = vec![format!("train.gradient_checkpointing={on}")];
        Ok(self.worthwhile("gradient-checkpointing", set, false, now, &prediction))
    }

    /// The fastest of a few; of those that are about as fast, the one with the most bits.
    fn best_codec(&mut self, choice: &Choice, now: &Prediction) -> Result<Option<Proposal>, PlannerError> {
        if choice.map.stages().len() < 2 {
            return Ok(None);
        }
        let mut best: Option<Proposal> = None;
        for [forward, backward] in CODECS {
            let mut changed = choice.clone();
            let codec = |text: &str| text.parse().expect("the codecs above parse");
            changed.config.pipeline.forward = codec(forward);
            changed.config.pipeline.backward = codec(backward);
            for boundary in &mut changed.config.pipeline.boundaries {
                (boundary.forward, boundary.backward) = (None, None);
            }
            let prediction = self.predict(&changed)?;
            let set = vec![format!("pipeline.forward={forward}"), format!("pipeline.backward={backward}")];
            best = preferred(best, self.worthwhile("codec", set, true, now, &prediction));
        }
        Ok(best)
    }

    /// Fitting comes before speed.
    fn better(&self, a: &Prediction, b: &Prediction) -> bool {
        let (lack_a, lack_b) = (self.lack(&a.memory), self.lack(&b.memory));
        lack_a < lack_b || lack_a == lack_b && a.tokens_per_second > b.tokens_per_second
    }

    fn worthwhile(
        &self,
        what: &'static str,
        set: Vec<String>,
        changes_training: bool,
        now: &Prediction,
        then: &Prediction,
    ) -> Option<Proposal> {
        let gain = then.tokens_per_second / now.tokens_per_second - 1.0;
        let (lack, lack_now) = (self.lack(&then.memory), self.lack(&now.memory));
        let fits = lack == 0;
        let makes_it_fit = fits && lack_now > 0;
        let faster = gain >= WORTHWHILE && lack <= lack_now;
        let largest_memory = then.memory.iter().map(StageMemory::total).max().unwrap_or(0);
        let tokens_per_second = then.tokens_per_second;
        (makes_it_fit || faster).then_some(Proposal {
            what,
            set,
            changes_training,
            tokens_per_second,
            gain,
            largest_memory,
            fits,
        })
    }
}

/// The better of two changes of a kind; the first, if the other is hardly better.
fn preferred(first: Option<Proposal>, other: Option<Proposal>) -> Option<Proposal> {
    let (Some(first), Some(other)) = (&first, &other) else { return first.or(other) };
    let better = match (first.fits, other.fits) {
        (true, false) => false,
        (false, true) => true,
        _ => other.tokens_per_second > first.tokens_per_second * (1.0 + WORTHWHILE),
    };
    Some(if better { other.clone() } else { first.clone() })
}

fn counts(map: &LayerMap) -> Vec<usize> {
    map.stages().iter().map(StageUnits::len).collect()
}

/// As many units on every stage, one more on the last ones.
fn even(layers: usize, stages: usize) -> Vec<usize> {
    let units = layers + 2;
    (0..stages).map(|stage| (units * (stage + 1)) / stages - (units * stage) / stages).collect()
}

/// The maps in which one unit is on the other side of a boundary.
fn neighbours(counts: &[usize]) -> Vec<Vec<usize>> {
    let boundaries = 0..counts.len() - 1;
    let moves = boundaries.flat_map(|at| [(at, at + 1), (at + 1, at)]);
    moves
        .filter(|(from, _)| counts[*from] > 1)
        .map(|(from, to)| {
            let mut changed = counts.to_vec();
            changed[from] -= 1;
            changed[to] += 1;
            changed
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_maps_hold_every_unit_and_neighbours_too() {
        assert_eq!(even(16, 4), [4, 5, 4, 5]);
        assert_eq!(even(0, 2), [1, 1]);
        assert_eq!(neighbours(&[2, 1]), [vec![1, 2]]);
        assert_eq!(neighbours(&[2, 2, 1]), [vec![1, 3, 1], vec![3, 1, 1], vec![2, 1, 2]]);
    }
}
