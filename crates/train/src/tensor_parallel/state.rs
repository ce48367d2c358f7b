//! What a rank's group knows between two calls.

use std::collections::BTreeMap;

use thinwire_codec::DType;
use thinwire_collective::{AllReduceSpec, Coefficients, CollectiveError, Compensator, Group, Statistics};

use super::rerun::Rerun;
use super::site::raw;
use super::statistics::square;
use super::{Direction, Site, SiteStatistics};

/// A rank's end of the collectives with everything that goes with it.
#[derive(Debug)]
pub(super) struct State {
    group: Group,
    forward: Feedback,
    backward: Feedback,
    rerun: Rerun,
    sites: BTreeMap<(Direction, Site), SiteStatistics>,
    /// Of a pass that goes on without the others.
    failure: Option<CollectiveError>,
}

/// The sums of one direction, and their error feedback. The tensors of one pass have one length.
#[derive(Debug)]
struct Feedback {
    spec: AllReduceSpec,
    coefficients: Option<Coefficients>,
    compensator: Option<Compensator>,
}

impl Feedback {
    fn new(spec: AllReduceSpec) -> Self {
        Self { spec, coefficients: spec.compensation(), compensator: None }
    }

    fn begin(&mut self) {
        if let Some(compensator) = &mut self.compensator {
            compensator.reset();
        }
    }

    /// That for tensors of `values` values.
    fn of(&mut self, values: usize) -> Option<&mut Compensator> {
        let coefficients = self.coefficients?;
        self.compensator.take_if(|compensator| compensator.state()[0].len() != values);
        Some(self.compensator.get_or_insert_with(|| Compensator::new(coefficients, values)))
    }
}

impl State {
    pub(super) fn new(group: Group, activations: AllReduceSpec, gradients: AllReduceSpec) -> Self {
        let (forward, backward) = (Feedback::new(activations), Feedback::new(gradients));
        Self { group, forward, backward, rerun: Rerun::Off, sites: BTreeMap::new(), failure: None }
    }

    pub(super) fn rerun(&mut self) -> &mut Rerun {
        &mut self.rerun
    }

    pub(super) fn begin(&mut self, direction: Direction) {
        self.feedback(direction).begin();
    }

    pub(super) fn failure(&self) -> Option<&CollectiveError> {
        self.failure.as_ref()
    }

    pub(super) fn statistics(&self) -> (Statistics, Vec<SiteStatistics>) {
        (self.group.statistics(), self.sites.values().copied().collect())
    }

    /// The sum of all ranks' `x`; zeros after a failure.
    pub(super) fn all_reduce(&mut self, site: Site, direction: Direction, x: &[f32]) -> Vec<f32> {
        if direction == Direction::Backward {
            return self.add_up(site, direction, x);
        }
        self.rerun.recall().unwrap_or_else(|| {
            let y = self.add_up(site, direction, x);
            self.rerun.keep(&y);
            y
        })
    }

    /// The sum of all ranks' `x`, exactly; zeros after a failure.
    pub(super) fn sum_exactly(&mut self, x: &[f32]) -> Vec<f32> {
        let mut y = vec![0.0; x.len()];
        if self.failure.is_none()
            && let Err(failure) = self.group.all_reduce(&raw(DType::F32), x, &mut y)
        {
            self.failure = Some(failure);
            y.fill(0.0);
        }
        y
    }

    fn add_up(&mut self, site: Site, direction: Direction, x: &[f32]) -> Vec<f32> {
        let mut y = vec![0.0; x.len()];
        if self.failure.is_some() {
            return y;
        }
        let before = self.group.statistics();
        match self.sum(site, direction, x, &mut y) {
            Ok(()) => self.count(site, direction, before, [x, &y]),
            Err(failure) => {
                self.failure = Some(failure);
                y.fill(0.0);
            }
        }
        y
    }

    /// All ranks' `x`, as many values each, one rank's behind the other's, exactly; zeros after a failure.
    pub(super) fn gather(&mut self, x: &[f32]) -> Vec<f32> {
        let mut all = vec![0.0; x.len() * self.group.ranks()];
        if self.failure.is_none()
            && let Err(failure) = self.group.all_gather(&raw(DType::F32), x, &mut all)
        {
            self.failure = Some(failure);
            all.fill(0.0);
        }
        all
    }

    fn sum(
        &mut self,
        site: Site,
        direction: Direction,
        x: &[f32],
        y: &mut [f32],
    ) -> Result<(), CollectiveError> {
        let Self { group, forward, backward, .. } = self;
        let feedback = match direction {
            Direction::Forward => forward,
            Direction::Backward => backward,
        };
        let codec = site.codec(&feedback.spec);
        let compensator = if let Site::Layer { .. } = site { feedback.of(x.len()) } else { None };
        let Some(compensator) = compensator else { return group.all_reduce(&codec, x, y) };
        group.all_reduce(&codec, &compensator.apply(x), y)?;
        compensator.update(x, y, group.ranks());
        Ok(())
    }

    fn feedback(&mut self, direction: Direction) -> &mut Feedback {
        match direction {
            Direction::Forward => &mut self.forward,
            Direction::Backward => &mut self.backward,
        }
    }

    fn count(&mut self, site: Site, direction: Direction, before: Statistics, [x, y]: [&[f32]; 2]) {
        let after = self.group.statistics();
        let new = || SiteStatistics::new(site, direction);
        let counted = self.sites.entry((direction, site)).or_insert_with(new);
        let shared = (after.shared_values - before.shared_values) * (self.group.ranks() as u64 - 1);
        counted.calls += 1;
        counted.values += x.len() as u64;
        counted.sent_values += after.pushed_values - before.pushed_values + shared;
        counted.sent_bytes += after.sent_bytes - before.sent_bytes;
        counted.partial_square += square(x);
        counted.sum_square += square(y);
    }
}
