//! What a rank's group knows between two calls.

use std::collections::BTreeMap;

use thinwire_codec::{CodecSpec, DType};
use thinwire_collective::{AllReduceSpec, Coefficients, CollectiveError, Compensator, Contribution, Group};

use super::site::raw;
use super::statistics::Call;
use super::{Direction, Site, SiteStatistics};

/// A rank's end of the collectives with everything that goes with it.
#[derive(Debug)]
pub(super) struct State {
    group: Group,
    spec: AllReduceSpec,
    /// By direction.
    feedback: [Feedback; 2],
    sites: BTreeMap<(Direction, Site), SiteStatistics>,
    measured: bool,
    exact: bool,
    /// Of a pass that goes on without the others.
    failure: Option<CollectiveError>,
}

/// The error feedback of the sums of one direction. The tensors of one pass have one length.
#[derive(Debug)]
struct Feedback {
    coefficients: Option<Coefficients>,
    compensator: Option<Compensator>,
}

impl Feedback {
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
    pub(super) fn new(group: Group, spec: AllReduceSpec) -> Self {
        let feedback = [(); 2].map(|()| Feedback { coefficients: spec.compensation(), compensator: None });
        let sites = BTreeMap::new();
        Self { group, spec, feedback, sites, measured: false, exact: false, failure: None }
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
    pub(super) fn all_reduce(&mut self, site: Site, direction: Direction, x: &[f32]) -> Vec<f32> {
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
        x: &[f32],
        y: &mut [f32],
    ) -> Result<(), CollectiveError> {
        let Self { group, feedback, measured, .. } = self;
        if self.exact {
            return group.all_reduce(&raw(DType::F32), x, y);
        }
        let codec = site.codec(&self.spec);
        let compensator = match site {
            Site::Layer { .. } => feedback[direction as usize].of(x.len()),
            Site::Embedding | Site::Head => None,
        };
        let call = if let Some(compensator) = compensator {
            let call = add_up(group, &codec, *measured, &compensator.apply(x), y)?;
            compensator.update(x, y, group.ranks());
            call
        } else {
            add_up(group, &codec, *measured, x, y)?
        };
        let new = || SiteStatistics::new(site, direction);
        self.sites.entry((direction, site)).or_insert_with(new).add(&call, x, y);
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
