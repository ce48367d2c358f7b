mod feedback;
mod worker;

use std::mem;
use std::ops::{Deref, Range};

use self::feedback::Feedback;
use self::worker::Worker;
use crate::{Contribution, Value};

/// Values whose update takes longer than to hand it to another thread.
const LEAST_BESIDE: usize = 16_384;

/// The four numbers of a [`Compensator`] (Echo, section 5.1).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Coefficients {
    /// `eta`, 0 to 1: the share of an error that is given back. Default 0.75.
    pub gain: f32,
    /// `a`, 0 to 1: the share of the first average in a correction. Default 0.35.
    pub blend: f32,
    /// `beta1`, 0 up to but not 1: how much the first average keeps from one call to the next. Default 0.7.
    pub first_decay: f32,
    /// `beta2`: the same of the second. Default 0.3.
    pub second_decay: f32,
}

impl Default for Coefficients {
    fn default() -> Self {
        Self { gain: 0.75, blend: 0.35, first_decay: 0.7, second_decay: 0.3 }
    }
}

/// Error feedback of one rank: what the all-reduce of one call got wrong is added to what the rank contributes to the next ones
/// (Echo, section 5).
///
/// One value serves all calls of a pass, which have tensors of the same length; forward and backward passes have one each. The
/// state is two numbers a value.
///
/// ```
/// # use std::sync::Arc;
/// # use thinwire_collective::{Compensator, Settings, memory};
/// # let codec = "group".parse()?;
/// # let mut groups = memory::group(2, &Settings::default())?;
/// # let (mut other, mut group) = (groups.pop().unwrap(), groups.pop().unwrap());
/// # let other = std::thread::spawn(move || {
/// #     let mut y = [0.0; 256];
/// #     (0..2).try_for_each(|_| other.all_reduce(&codec, &[1.0; 256][..], &mut y))
/// # });
/// let mut compensator = Compensator::new(Default::default(), 256);
/// for _call in 0..2 {
///     let (x, mut y) = (vec![0.3_f32; 256], vec![0.0; 256]);
///     group.all_reduce(&codec, &compensator.apply(&x), &mut y)?;
///     let y = Arc::new(y);
///     compensator.update_beside(x, y.clone(), group.ranks());
///     // The next layer is computed from `y` here, while the compensator learns from it.
/// }
/// # other.join().unwrap()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Compensator {
    coefficients: Coefficients,
    values: usize,
    /// Empty while the worker has it.
    feedback: Feedback,
    /// Started with the first update that is to run beside something else.
    worker: Option<Worker>,
}

impl Compensator {
    /// For tensors of `values` values, as at the start of a pass.
    pub fn new(coefficients: Coefficients, values: usize) -> Self {
        Self { coefficients, values, feedback: Feedback::new(values), worker: None }
    }

    /// Forgets all errors: a pass begins.
    pub fn reset(&mut self) {
        self.settle();
        self.feedback.reset();
    }

    /// The first average, `m1`, and the correction of the next call, `c`, which stands for the second average: `m2` is
    /// `(c / eta - a m1) / (1 - a)`.
    pub fn state(&mut self) -> [&[f32]; 2] {
        self.settle();
        [&self.feedback.first, &self.feedback.correction]
    }

    /// `x' = x + c`, this rank's contribution to the next all-reduce (equation 10). Nothing is computed or stored yet: the entry
    /// stage of the all-reduce does it, tile by tile.
    ///
    /// # Panics
    /// If `x` has another length than the state.
    pub fn apply<'a, V: Value>(&'a mut self, x: &'a [V]) -> Compensated<'a, V> {
        self.settle();
        assert_eq!(x.len(), self.values, "a compensator of tensors of this length");
        Compensated { feedback: &self.feedback, x }
    }

    /// Learns from `y`, what the all-reduce over `ranks` ranks made of the contributions, with `x` as it was given to
    /// [`Compensator::apply`]: `u = x' - y / P`, of which both averages take their share (equation 11). Needs nothing from other
    /// ranks.
    ///
    /// # Panics
    /// If `x` or `y` have another length than the state.
    pub fn update<V: Value, W: Value>(&mut self, x: &[V], y: &[W], ranks: usize) {
        self.settle();
        assert_eq!([x.len(), y.len()], [self.values; 2], "a compensator of tensors of this length");
        self.feedback.learn(self.coefficients, x, y, ranks);
    }

    /// As [`Compensator::update`], on a thread of the compensator, beside whatever the caller computes next. The state that comes
    /// of it is the same; whoever needs it waits for it. Small tensors are learned from at once. Tensors that are used elsewhere too come as an [`Arc`](std::sync::Arc).
    ///
    /// # Panics
    /// As [`Compensator::update`].
    pub fn update_beside<V: Value, W: Value>(
        &mut self,
        x: impl Deref<Target: AsRef<[V]>> + Send + 'static,
        y: impl Deref<Target: AsRef<[W]>> + Send + 'static,
        ranks: usize,
    ) {
        self.settle();
        if self.values < LEAST_BESIDE {
            return self.update(x.as_ref(), y.as_ref(), ranks);
        }
        let lengths = [x.as_ref().len(), y.as_ref().len()];
        assert_eq!(lengths, [self.values; 2], "a compensator of tensors of this length");
        if self.worker.is_none() {
            self.worker = Worker::start();
        }
        let Some(worker) = &mut self.worker else { return self.update(x.as_ref(), y.as_ref(), ranks) };
        let (coefficients, mut feedback) = (self.coefficients, mem::take(&mut self.feedback));
        worker.begin(Box::new(move || {
            feedback.learn(coefficients, x.as_ref(), y.as_ref(), ranks);
            feedback
        }));
    }

    /// Waits until the state is here.
    fn settle(&mut self) {
        if let Some(feedback) = self.worker.as_mut().and_then(Worker::finish) {
            self.feedback = feedback;
        }
    }
}

/// A tensor with a correction, which [`Compensator::apply`] makes.
#[derive(Debug, Clone, Copy)]
pub struct Compensated<'a, V = f32> {
    feedback: &'a Feedback,
    x: &'a [V],
}

impl<V: Value> Contribution for Compensated<'_, V> {
    fn values(&self) -> usize {
        self.x.len()
    }

    fn piece<'a>(&'a self, range: Range<usize>, scratch: &'a mut [f32]) -> &'a [f32] {
        self.feedback.correct(&self.x[range.clone()], range.start, scratch);
        scratch
    }
}
