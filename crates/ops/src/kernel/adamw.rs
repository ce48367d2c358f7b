//! AdamW (Loshchilov and Hutter, 2019, algorithm 2) in one pass, and the square norm of a gradient.

use pulp::{Arch, Simd};
use rayon::prelude::*;

use super::lanes::Lanewise;

/// The factors of one update. Every operation rounds on its own, in the order of Burn's optimizer, to the same bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Update {
    /// What the gradient is multiplied with first.
    pub(crate) clip: f32,
    /// The decay of both moments.
    pub(crate) beta: [f32; 2],
    /// `1 - beta^t`.
    pub(crate) correction: [f32; 2],
    pub(crate) epsilon: f32,
    pub(crate) rate: f32,
    /// `1 - rate * weight_decay`.
    pub(crate) keep: f32,
}

/// From the gradient; the outputs are the parameter and its moments.
impl Lanewise<1, 3> for Update {
    #[inline(always)]
    fn apply<S: Simd>(
        self,
        simd: S,
        [g]: [S::f32s; 1],
        [value, first, second]: [S::f32s; 3],
    ) -> [S::f32s; 3] {
        let s = |value: f32| simd.splat_f32s(value);
        let [beta_1, beta_2] = self.beta;
        let g = simd.mul_f32s(g, s(self.clip));
        let first = simd.add_f32s(simd.mul_f32s(first, s(beta_1)), simd.mul_f32s(g, s(1.0 - beta_1)));
        let square = simd.mul_f32s(g, g);
        let second = simd.add_f32s(simd.mul_f32s(second, s(beta_2)), simd.mul_f32s(square, s(1.0 - beta_2)));
        let mean = simd.div_f32s(first, s(self.correction[0]));
        let deviation = simd.sqrt_f32s(simd.div_f32s(second, s(self.correction[1])));
        let delta = simd.div_f32s(mean, simd.add_f32s(deviation, s(self.epsilon)));
        let kept = simd.mul_f32s(value, s(self.keep));
        [simd.sub_f32s(kept, simd.mul_f32s(delta, s(self.rate))), first, second]
    }
}

/// Independent sums, so that the additions do not wait for each other.
const LANES: usize = 16;

/// Values that one task sums.
const TASK: usize = 1 << 16;

/// `sum g^2` in f64: lane by lane, the lanes in order, then the pieces of [`TASK`] values in order.
pub(crate) fn square_norm(values: &[f32]) -> f64 {
    let pieces: Vec<f64> =
        values.par_chunks(TASK).map(|piece| Arch::new().dispatch(|| piece_norm(piece))).collect();
    pieces.iter().sum()
}

#[inline(always)]
fn piece_norm(values: &[f32]) -> f64 {
    let mut lanes = [0.0f64; LANES];
    let (body, tail) = values.as_chunks::<LANES>();
    for chunk in body {
        for (lane, &value) in lanes.iter_mut().zip(chunk) {
            *lane += f64::from(value) * f64::from(value);
        }
    }
    for (lane, &value) in lanes.iter_mut().zip(tail) {
        *lane += f64::from(value) * f64::from(value);
    }
    lanes.iter().sum()
}
