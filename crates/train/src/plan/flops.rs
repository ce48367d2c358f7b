//! The arithmetic of a unit, counted.

use crate::config::Unit;
use crate::model::Architecture;

/// Products of an attention's backward pass for one of its forward pass: scores are not kept but computed again, so five
/// matrix products stand against two (Dao et al., 2022).
const ATTENTION_BACKWARD: f64 = 2.5;

/// Floating-point operations for one micro-batch; a multiplication and an addition are two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flops {
    /// Of a forward pass.
    pub forward: f64,
    /// Of a backward pass, for the gradients that training needs.
    pub backward: f64,
}

/// The matrix products of `unit` for `samples` sequences of `tokens`; all else is small beside them. An embedding looks up
/// and has none.
pub fn flops(arch: &Architecture, unit: Unit, samples: usize, tokens: usize) -> Flops {
    let rows = samples as f64 * tokens as f64;
    let all = arch.parameters(unit) as f64;
    let linear = 2.0 * rows * all;
    let for_weights = 2.0 * rows * arch.trainable(unit) as f64;
    match unit {
        Unit::Embed => Flops { forward: 0.0, backward: 0.0 },
        Unit::Head => Flops { forward: linear, backward: linear + for_weights },
        Unit::Block(_) => {
            // Scores and their product with the values, of a causal half.
            let width = (arch.heads * arch.head_dim()) as f64;
            let attention = 2.0 * 2.0 * rows * (tokens as f64 / 2.0) * width;
            Flops {
                forward: linear + attention,
                backward: linear + for_weights + ATTENTION_BACKWARD * attention,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Family;
    use crate::model::Lora;

    #[test]
    fn a_large_models_training_takes_six_operations_a_parameter_and_token() {
        let arch = Architecture {
            family: Family::Llama,
            layers: 32,
            hidden: 4096,
            heads: 32,
            head_dim: None,
            kv_heads: 8,
            ffn: 14336,
            context: 8192,
            vocab: 128_256,
            tied: false,
            norm_eps: 1e-5,
            rope_theta: 500_000.0,
            rope_scaling: None,
            lora: None,
        };
        let (samples, tokens) = (2, 16);
        let whole = |arch: &Architecture| {
            let blocks = (0..arch.layers).map(Unit::Block);
            let all = blocks.chain([Unit::Head]).map(|unit| flops(arch, unit, samples, tokens));
            all.fold([0.0; 2], |[f, b], Flops { forward, backward }| [f + forward, b + backward])
        };
        // 8.03e9 parameters, less the embedding's 0.53e9; attention adds little for 16 tokens.
        let parameters = 7_504_924_672.0 * 32.0;
        let [forward, backward] = whole(&arch);
        assert!((forward / (2.0 * parameters) - 1.0).abs() < 1e-3, "{forward}");
        assert!((backward / (4.0 * parameters) - 1.0).abs() < 1e-3, "{backward}");
        // Frozen weights need no gradient.
        let lora = Lora { rank: 8, alpha: 16.0, targets: vec!["q_proj".into()] };
        let [_, adapted] = whole(&Architecture { lora: Some(lora), ..arch });
        assert!((adapted / (2.0 * parameters) - 1.0).abs() < 2e-3, "{adapted}");
    }

    #[test]
    fn attention_grows_with_the_square_of_the_tokens() {
        let arch = Architecture {
            family: Family::Gpt2,
            layers: 1,
            hidden: 8,
            heads: 2,
            head_dim: None,
            kv_heads: 2,
            ffn: 16,
            context: 64,
            vocab: 11,
            tied: false,
            norm_eps: 1e-5,
            rope_theta: 10_000.0,
            rope_scaling: None,
            lora: None,
        };
        let [short, long] = [4, 8].map(|tokens| flops(&arch, Unit::Block(0), 3, tokens).forward);
        // Twice the rows; and 3 samples of 4 heads' channels, 16 and 64 pairs, half of them in the past.
        assert_eq!(long - 2.0 * short, 4.0 * 3.0 * 8.0 * (32.0 - 2.0 * 8.0));
    }
}
