//! What a rank's group knows between two calls.

use std::collections::BTreeMap;

use thinwire_codec::{CodecSpec, DType};
use thinwire_collective::{AllReduceSpec, Coefficients, CollectiveError, Compensator, Contribution, Group};

use super::rerun::Rerun;
use super::site::raw;
use super::statistics::Call;
use super::{Site, SiteStatistics};
use crate::metrics::Direction;

/// A rank's end of the collectives with everything that goes with it.
#[derive(Debug)]
pub(super) struct State {
    group: Group,
    /// By direction.
    feedback: [Feedback; 2],
    rerun: Rerun,
    sites: BTreeMap<(Direction, Site), SiteStatistics>,
    measured: bool,
    exact: bool,
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
        let feedback = [activations, gradients].map(Feedback::new);
        let (sites, rerun) = (BTreeMap::new(), Rerun::Off);
        Self { group, feedback, rerun, sites, measured: false, exact: false, failure: None }
    }

    pub(super) fn rejoin(&mut self, group: Group) {
        self.group = group;
        self.failure = None;
    }

    pub(super) fn rerun(&mut self) -> &mut Rerun {
        &mut self.rerun
    }

    pub(super) fn begin(&mut self, direction: Direction) {
        self.feedback[direction as usize].begin();
    }

    pub(super) fn measure_errors(&mut self) {
        self.measured = true;
    }

    pub(super) fn set_exact(&mut self, exact: bool) {
        self.exact = exact;
    }

    pub(super) fn failure(&self) -> Option<&CollectiveError> {
        self.failure.as_ref()
    }

    pub(super) fn statistics(&self) -> Vec<SiteStatistics> {
        self.sites.values().copied().collect()
    }

    /// The sum of all ranks' `x`; zeros after a failure.
    pub(super) fn all_reduce(&mut self, site: Site, direction: Direction, x: Vec<f32>) -> Vec<f32> {
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

    fn add_up(&mut self, site: Site, direction: Direction, x: Vec<f32>) -> Vec<f32> {
        let mut y = vec![0.0; x.len()];
        if self.failure.is_none()
            && let Err(failure) = self.sum(site, direction, x, &mut y)
        {
            self.failure = Some(failure);
            y.fill(0.0);
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
        x: Vec<f32>,
        y: &mut [f32],
    ) -> Result<(), CollectiveError> {
        let Self { group, feedback, measured, .. } = self;
        if self.exact {
            return group.all_reduce(&raw(DType::F32), &x[..], y);
        }
        let feedback = &mut feedback[direction as usize];
        let codec = site.codec(&feedback.spec);
        let mut compensator = match site {
            Site::Layer { .. } => feedback.of(x.len()),
            Site::Embedding | Site::Head => None,
        };
        let call = match &mut compensator {
            Some(compensator) => add_up(group, &codec, *measured, &compensator.apply(&x), y)?,
            None => add_up(group, &codec, *measured, &x[..], y)?,
        };
        let new = || SiteStatistics::new(site, direction);
        self.sites.entry((direction, site)).or_insert_with(new).add(&call, &x, y);
        if let Some(compensator) = compensator {
            // A copy costs less than to wait for the update: the next layer needs `y` now.
            compensator.update_beside(x, y.to_vec(), group.ranks());
        }
        Ok(())
    }
}

/// An all-reduce; if it is to be `measured`, also an exact one.
fn add_up<C: Contribution + ?Sized>(
    group: &mut Group,
    codec: &CodecSpec,
    measured: bool,
    x: &C,
    y: &mut [f32],
) -> Result<Call, CollectiveError> {
    let before = group.statistics();
    group.all_reduce(codec, x, y)?;
    let mut call = Call::between(before, group.statistics(), group.ranks());
    let exactly = raw(DType::F32);
    if measured && *codec != exactly {
        let mut exact = vec![0.0; y.len()];
        group.all_reduce(&exactly, x, &mut exact)?;
        call.compare(y, &exact);
    }
    Ok(call)
}
