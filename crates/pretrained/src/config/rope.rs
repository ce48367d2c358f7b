//! Rotary position embedding (Su et al., 2021, "RoFormer", section 3.2.2) and its scalings.

use std::f64::consts::TAU;

/// Rotation of channel pair `i` of a head at position `p` by `p * frequency(i)`; the pair is channels `i` and
/// `i + head_dim / 2`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rope {
    /// Base of the wavelengths.
    pub theta: f64,
    /// How the model was stretched to longer contexts than it was first trained on.
    pub scaling: RopeScaling,
}

/// A change of the rotation's frequencies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RopeScaling {
    /// As in the paper.
    None,
    /// Every frequency divided by `factor` (position interpolation).
    Linear {
        /// Above 0.
        factor: f64,
    },
    /// Low frequencies divided by `factor`, high ones kept, those between interpolated (Llama 3.1).
    Llama3 {
        /// Divisor of the low frequencies.
        factor: f64,
        /// Wavelengths over `original_context / low_freq_factor` are low frequencies.
        low_freq_factor: f64,
        /// Wavelengths under `original_context / high_freq_factor` are high frequencies.
        high_freq_factor: f64,
        /// Context of the first training, in tokens.
        original_context: usize,
    },
}

impl Rope {
    /// The `head_dim / 2` angular frequencies of a head, in radians per position.
    pub fn frequencies(&self, head_dim: usize) -> Vec<f64> {
        let frequency = |pair| self.theta.powf(-2.0 * pair as f64 / head_dim as f64);
        (0..head_dim / 2).map(frequency).map(|plain| plain / self.scaling.divisor(plain)).collect()
    }
}

impl RopeScaling {
    /// What an unscaled angular frequency is divided by.
    pub(crate) fn divisor(&self, frequency: f64) -> f64 {
        match *self {
            Self::None => 1.0,
            Self::Linear { factor } => factor,
            Self::Llama3 { factor, low_freq_factor, high_freq_factor, original_context } => {
                let turns = original_context as f64 * frequency / TAU;
                if turns < low_freq_factor {
                    factor
                } else if turns > high_freq_factor {
                    1.0
                } else {
                    let smooth = (turns - low_freq_factor) / (high_freq_factor - low_freq_factor);
                    1.0 / ((1.0 - smooth) / factor + smooth)
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of `transformers` 5.24 (`ROPE_INIT_FUNCTIONS["llama3"]`), for `head_dim` 8.
    #[test]
    fn llama3_scaling_agrees_with_transformers() {
        let scaling = RopeScaling::Llama3 {
            factor: 32.0,
            low_freq_factor: 1.0,
            high_freq_factor: 4.0,
            original_context: 8192,
        };
        let rope = Rope { theta: 500_000.0, scaling };
        let expected = [1.0, 0.037_606_03, 4.295_567e-4, 1.661_967_4e-6];
        for (found, expected) in rope.frequencies(8).into_iter().zip(expected) {
            assert!((found - expected).abs() <= 1e-6 * expected, "{found} {expected}");
        }
    }

    #[test]
    fn linear_scaling_divides() {
        let plain = Rope { theta: 1e4, scaling: RopeScaling::None }.frequencies(4);
        assert_eq!(plain, [1.0, 0.01]);
        let scaled = Rope { theta: 1e4, scaling: RopeScaling::Linear { factor: 4.0 } }.frequencies(4);
        assert_eq!(scaled, [0.25, 0.0025]);
    }
}
