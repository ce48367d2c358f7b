use std::ops::Range;

use crate::Contribution;

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

impl Coefficients {
    /// The correction of one value whose averages these are (equation 10).
    fn correction(self, first: f32, second: f32) -> f32 {
        self.gain * (self.blend * first + (1.0 - self.blend) * second)
    }
}

/// Error feedback of one rank: what the all-reduce of one call got wrong is added to what the rank contributes to the next ones
/// (Echo, section 5).
///
/// One value serves all calls of a pass, which have tensors of the same length; forward and backward passes have one each. The
/// state is two numbers a value.
///
/// ```
/// # use thinwire_collective::{Compensator, Settings, memory};
/// # let codec = "group".parse()?;
/// # let mut groups = memory::group(2, &Settings::default())?;
/// # let (mut other, mut group) = (groups.pop().unwrap(), groups.pop().unwrap());
/// # let other = std::thread::spawn(move || {
/// #     let mut y = [0.0; 256];
/// #     (0..2).try_for_each(|_| other.all_reduce(&codec, &[1.0; 256][..], &mut y))
/// # });
/// let (x, mut y) = ([0.3; 256], [0.0; 256]);
/// let mut compensator = Compensator::new(Default::default(), 256);
/// for _call in 0..2 {
///     group.all_reduce(&codec, &compensator.apply(&x), &mut y)?;
///     // Here `y` can be used already.
///     compensator.update(&x, &y, group.ranks());
/// }
/// # other.join().unwrap()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Compensator {
    coefficients: Coefficients,
    first: Vec<f32>,
    second: Vec<f32>,
}

impl Compensator {
    /// For tensors of `values` values, as at the start of a pass.
    pub fn new(coefficients: Coefficients, values: usize) -> Self {
        Self { coefficients, first: vec![0.0; values], second: vec![0.0; values] }
    }

    /// Forgets all errors: a pass begins.
    pub fn reset(&mut self) {
        self.first.fill(0.0);
        self.second.fill(0.0);
    }

    /// The two averages, `m1` and `m2`.
    pub fn state(&self) -> [&[f32]; 2] {
        [&self.first, &self.second]
    }

    /// `x' = x + c`, this rank's contribution to the next all-reduce (equation 10). Nothing is computed or stored yet: the entry
    /// stage of the all-reduce does it, tile by tile.
    ///
    /// # Panics
    /// If `x` has another length than the state.
    pub fn apply<'a>(&'a self, x: &'a [f32]) -> Compensated<'a> {
        assert_eq!(x.len(), self.first.len(), "a compensator of tensors of this length");
        Compensated { of: self, x }
    }

    /// Learns from `y`, what the all-reduce over `ranks` ranks made of the contributions, with `x` as it was given to
    /// [`Compensator::apply`]: `u = x' - y / P`, of which both averages take their share (equation 11). Needs nothing from other
    /// ranks, and may run beside whatever only reads `x` and `y`.
    ///
    /// # Panics
    /// If `x` or `y` have another length than the state.
    pub fn update(&mut self, x: &[f32], y: &[f32], ranks: usize) {
        assert_eq!([x.len(), y.len()], [self.first.len(); 2], "a compensator of tensors of this length");
        let of = self.coefficients;
        let ranks = ranks as f32;
        for (((first, second), x), y) in self.first.iter_mut().zip(&mut self.second).zip(x).zip(y) {
            let residual = x + of.correction(*first, *second) - y / ranks;
            *first = of.first_decay * *first + (1.0 - of.first_decay) * residual;
            *second = of.second_decay * *second + (1.0 - of.second_decay) * residual;
        }
    }
}

/// A tensor with a correction, which [`Compensator::apply`] makes.
#[derive(Debug, Clone, Copy)]
pub struct Compensated<'a> {
    of: &'a Compensator,
    x: &'a [f32],
}

impl Contribution for Compensated<'_> {
    fn values(&self) -> usize {
        self.x.len()
    }

    fn piece<'a>(&'a self, range: Range<usize>, scratch: &'a mut [f32]) -> &'a [f32] {
        let (first, second) = (&self.of.first[range.clone()], &self.of.second[range.clone()]);
        for (((out, x), first), second) in scratch.iter_mut().zip(&self.x[range]).zip(first).zip(second) {
            *out = x + self.of.coefficients.correction(*first, *second);
        }
        scratch
    }
}
