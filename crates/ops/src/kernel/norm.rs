//! RMSNorm (Zhang and Sennrich, 2019) and LayerNorm (Ba et al., 2016) of each row.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::columns::{self, ROWS};
use super::lanes::{self, Lanewise};
use super::rows;

/// What the backward pass needs of a row: its mean (0 for RMSNorm) and the reciprocal of its deviation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RowStats {
    mean: f32,
    reciprocal: f32,
}

/// The learned parameters. With a bias the rows are centered first: LayerNorm.
#[derive(Clone, Copy)]
pub(crate) struct Learned<'a> {
    pub(crate) weight: &'a [f32],
    pub(crate) bias: Option<&'a [f32]>,
}

/// `y = (x - mean) / sqrt(var + eps) weight + bias`, and the statistics of each row.
pub(crate) fn forward(x: &[f32], learned: Learned<'_>, eps: f32, y: &mut [f32]) -> Vec<RowStats> {
    let width = learned.weight.len();
    let mut stats = vec![RowStats::default(); x.len() / width];
    let pieces = y.par_chunks_mut(ROWS * width).zip(x.par_chunks(ROWS * width));
    pieces.zip(stats.par_chunks_mut(ROWS)).for_each(|((y, x), stats)| {
        Arch::new().dispatch(Forward { x, learned, eps, y, stats });
    });
    stats
}

/// `g` becomes the gradient of `x`; returns those of the weight and, for LayerNorm, the bias.
pub(crate) fn backward(
    x: &[f32],
    learned: Learned<'_>,
    stats: &[RowStats],
    g: &mut [f32],
) -> (Vec<f32>, Option<Vec<f32>>) {
    let width = learned.weight.len();
    let sums = if learned.bias.is_some() { 2 * width } else { width };
    let pieces = g.par_chunks_mut(ROWS * width).zip(x.par_chunks(ROWS * width));
    let pieces = pieces.zip(stats.par_chunks(ROWS)).map(|((g, x), stats)| {
        let mut learned_gradient = vec![0.0; sums];
        Arch::new().dispatch(Backward { x, learned, stats, g, learned_gradient: &mut learned_gradient });
        learned_gradient
    });
    let mut weight = columns::total(pieces.collect(), sums);
    let bias = learned.bias.map(|_| weight.split_off(width));
    (weight, bias)
}

struct Forward<'a> {
    x: &'a [f32],
    learned: Learned<'a>,
    eps: f32,
    y: &'a mut [f32],
    stats: &'a mut [RowStats],
}

impl WithSimd for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Learned { weight, bias } = self.learned;
        let width = weight.len();
        let rows = self.x.chunks(width).zip(self.y.chunks_mut(width));
        for ((x, y), stats) in rows.zip(self.stats) {
            let mean = if bias.is_some() { rows::sum(simd, x) / width as f32 } else { 0.0 };
            let variance = rows::square_distance(simd, x, mean) / width as f32;
            *stats = RowStats { mean, reciprocal: 1.0 / (variance + self.eps).sqrt() };
            match bias {
                Some(bias) => lanes::apply(simd, Normalize(*stats), [x, weight, bias], [y]),
                None => lanes::apply(simd, Normalize(*stats), [x, weight], [y]),
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Normalize(RowStats);

impl Normalize {
    #[inline(always)]
    fn unit<S: Simd>(self, simd: S, x: S::f32s) -> S::f32s {
        let centered = simd.sub_f32s(x, simd.splat_f32s(self.0.mean));
        simd.mul_f32s(centered, simd.splat_f32s(self.0.reciprocal))
    }
}

impl Lanewise<2, 1> for Normalize {
    #[inline(always)]
    fn apply<S: Simd>(self, simd: S, [x, weight]: [S::f32s; 2], _: [S::f32s; 1]) -> [S::f32s; 1] {
        [simd.mul_f32s(self.unit(simd, x), weight)]
    }
}

impl Lanewise<3, 1> for Normalize {
    #[inline(always)]
    fn apply<S: Simd>(self, simd: S, [x, weight, bias]: [S::f32s; 3], _: [S::f32s; 1]) -> [S::f32s; 1] {
        [simd.mul_add_e_f32s(self.unit(simd, x), weight, bias)]
    }
}

struct Backward<'a> {
    x: &'a [f32],
    learned: Learned<'a>,
    stats: &'a [RowStats],
    g: &'a mut [f32],
    learned_gradient: &'a mut [f32],
}

impl WithSimd for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Learned { weight, bias } = self.learned;
        let width = weight.len();
        let (weight_gradient, bias_gradient) = self.learned_gradient.split_at_mut(width);
        let rows = self.x.chunks(width).zip(self.g.chunks_mut(width));
        for ((x, g), &stats) in rows.zip(self.stats) {
            let along = rows::dot_shifted(simd, [g, weight, x], stats.mean) * stats.reciprocal / width as f32;
            let mean = if bias.is_some() { rows::dot(simd, g, weight) / width as f32 } else { 0.0 };
            let row = RowBackward { normalize: Normalize(stats), mean, along };
            match bias {
                Some(_) => lanes::apply(simd, row, [x, weight], [g, weight_gradient, bias_gradient]),
                None => lanes::apply(simd, row, [x, weight], [g, weight_gradient]),
            }
        }
    }
}

/// With `u = (x - mean) reciprocal` and `h = g weight`: `dx = reciprocal (h - mean(h) - u mean(h u))`.
#[derive(Clone, Copy)]
struct RowBackward {
    normalize: Normalize,
    /// `mean(h)`, 0 for RMSNorm.
    mean: f32,
    /// `mean(h u)`.
    along: f32,
}

impl Lanewise<2, 2> for RowBackward {
    #[inline(always)]
    fn apply<S: Simd>(self, simd: S, [x, weight]: [S::f32s; 2], [g, sum]: [S::f32s; 2]) -> [S::f32s; 2] {
        let unit = self.normalize.unit(simd, x);
        let h = simd.sub_f32s(simd.mul_f32s(g, weight), simd.splat_f32s(self.mean));
        let h = simd.mul_add_e_f32s(unit, simd.splat_f32s(-self.along), h);
        let dx = simd.mul_f32s(h, simd.splat_f32s(self.normalize.0.reciprocal));
        [dx, simd.mul_add_e_f32s(g, unit, sum)]
    }
}

impl Lanewise<2, 3> for RowBackward {
    #[inline(always)]
    fn apply<S: Simd>(self, simd: S, inputs: [S::f32s; 2], [g, sum, bias]: [S::f32s; 3]) -> [S::f32s; 3] {
        let [dx, sum] = self.apply(simd, inputs, [g, sum]);
        [dx, sum, simd.add_f32s(bias, g)]
    }
}
