use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use proptest::prelude::*;
use thinwire_codec::Shape;

/// A reproducible generator.
pub(crate) fn generator(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// Standard normal, by the sum of twelve uniforms.
pub(crate) fn gaussian(rng: &mut impl Rng) -> f32 {
    (0..12).map(|_| rng.random::<f32>()).sum::<f32>() - 6.0
}

/// What a tensor's values look like.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Family {
    /// Standard normal.
    Gaussian,
    /// Normal, one value in thirty up to a hundred times larger.
    HeavyTail,
    /// A few distinct values: equal entropies, equal magnitudes, values half-way between two codes.
    Ties,
    /// Runs of one value, zeros among them.
    Constant,
    /// Magnitudes from the smallest to the largest float, in one tensor.
    LogUniform,
    /// All subnormal.
    Subnormal,
    /// Near the largest float.
    Huge,
    /// Around 1e-40, some of it zero.
    Tiny,
    /// All of one sign, far from zero: large zero points, small scales.
    Offset,
    /// Beside one large value in 900, groups so small that an f16 step can hardly tell them from nothing.
    Faint,
    /// Nothing but zeros of both signs.
    Zero,
}

impl Family {
    pub(crate) const ALL: [Self; 11] = [
        Self::Gaussian,
        Self::HeavyTail,
        Self::Ties,
        Self::Constant,
        Self::LogUniform,
        Self::Subnormal,
        Self::Huge,
        Self::Tiny,
        Self::Offset,
        Self::Faint,
        Self::Zero,
    ];

    pub(crate) fn values(self, len: usize, seed: u64) -> Vec<f32> {
        let mut rng = generator(seed);
        let mut run = 0.0;
        (0..len).map(|i| self.value(i, &mut run, &mut rng)).collect()
    }

    fn value(self, i: usize, run: &mut f32, rng: &mut ChaCha8Rng) -> f32 {
        let sign = if rng.random() { 1.0 } else { -1.0 };
        match self {
            Self::HeavyTail if rng.random_bool(1.0 / 30.0) => gaussian(rng) * rng.random_range(1.0..100.0),
            Self::Gaussian | Self::HeavyTail => gaussian(rng),
            Self::Ties => sign * [0.0, 0.5, 1.0, 1.5, 7.5][rng.random_range(0..5)],
            Self::Constant => {
                if i.is_multiple_of(37) {
                    *run = if rng.random_bool(0.3) { 0.0 } else { gaussian(rng) };
                }
                *run
            }
            Self::LogUniform => sign * f32::from_bits(rng.random_range(0..f32::INFINITY.to_bits())),
            Self::Subnormal => sign * f32::from_bits(rng.random_range(0..f32::MIN_POSITIVE.to_bits())),
            Self::Huge => sign * rng.random_range(2.5e38..f32::MAX),
            Self::Tiny => sign * if rng.random_bool(0.2) { 0.0 } else { rng.random_range(0.0..1e-40) },
            Self::Offset => 1000.0 + rng.random::<f32>(),
            Self::Faint if i.is_multiple_of(900) => 1.0,
            Self::Faint => gaussian(rng) * 2_f32.powi(-25) / (1 << (i / 64 % 8)) as f32,
            Self::Zero => sign * 0.0,
        }
    }
}

/// Like an activation: [`Family::HeavyTail`].
pub(crate) fn activation(len: usize, seed: u64) -> Vec<f32> {
    Family::HeavyTail.values(len, seed)
}

/// A random tensor, shown by what it was made from.
pub(crate) struct Tensor {
    pub(crate) shape: Shape,
    pub(crate) x: Vec<f32>,
    origin: (Family, u64),
}

impl std::fmt::Debug for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (family, seed) = self.origin;
        write!(f, "{family:?} {} seed {seed}", self.shape)
    }
}

/// Any family, any small shape, odd ones too; never empty.
pub(crate) fn tensor() -> impl Strategy<Value = Tensor> {
    let family = prop::sample::select(Family::ALL.to_vec());
    (1_usize..4, 1_usize..6, 1_usize..300, family, any::<u64>()).prop_map(
        |(samples, tokens, channels, family, seed)| Tensor {
            shape: Shape::new(samples, tokens, channels),
            x: family.values(samples * tokens * channels, seed),
            origin: (family, seed),
        },
    )
}

/// Any settings of TAH.
pub(crate) fn tah_settings() -> impl Strategy<Value = thinwire_codec::TahSettings> {
    use thinwire_codec::{Allocation, Selection, TahSettings};

    let ratio = prop::sample::select(vec![0.0, 1.0, 2.0, 3.5, f32::INFINITY]);
    let selection = prop::sample::select(vec![Selection::Entropy, Selection::Entropy, Selection::Even]);
    (3_u32..8, 0_usize..4, 0.0..=1.0, 2_u32..=8, 2_u32..=8, ratio, selection).prop_map(
        |(log2, tiles, high_share, a, b, outlier_ratio, selection)| TahSettings {
            tile: 1 << log2,
            allocation: if tiles == 0 { Allocation::Token } else { Allocation::Channels(tiles << log2) },
            high_share,
            high_bits: a.max(b),
            low_bits: a.min(b),
            outlier_ratio,
            selection,
            raw_below: 0,
        },
    )
}
