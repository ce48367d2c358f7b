//! The messages at the end of a step, in bytes.

use crate::config::{Family, LayerMap, StageUnits, Unit};
use crate::model::Architecture;

/// Bytes of a gradient's norm.
const NORM: u64 = 8;

/// What a message down has besides: loss, norm, two marks of what is absent.
const VERDICT: u64 = 18;

/// Bytes of the messages up and down link `link` of `map`, without frames, and without the gradient of a tied matrix.
pub(super) fn control_bytes(arch: &Architecture, map: &LayerMap, link: usize) -> [u64; 2] {
    let tensors = |units: &StageUnits| units.iter().map(|unit| trained_tensors(arch, unit)).sum::<u64>();
    let below: u64 = map.stages()[..=link].iter().map(tensors).sum();
    // A length, the norms, two marks.
    [4 + NORM * below, VERDICT]
}

/// Parameters of `unit` that are trained, as tensors.
fn trained_tensors(arch: &Architecture, unit: Unit) -> u64 {
    let gpt2 = arch.family == Family::Gpt2;
    match (unit, &arch.lora) {
        (Unit::Block(_), Some(_)) => 2 * arch.adapted_layers().len() as u64,
        (_, Some(_)) => 0,
        (Unit::Embed, None) => 1 + u64::from(gpt2),
        (Unit::Head, None) => 2 + u64::from(gpt2),
        (Unit::Block(_), None) => match arch.family {
            Family::Gpt2 | Family::Qwen2 => 12,
            Family::Qwen3 => 11,
            Family::Llama => 9,
        },
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::model::{Lora, Part};

    #[test]
    fn tensors_are_counted_as_they_are_built() {
        let llama = Architecture {
            family: Family::Llama,
            layers: 2,
            hidden: 24,
            heads: 6,
            head_dim: None,
            kv_heads: 2,
            ffn: 40,
            context: 7,
            vocab: 31,
            tied: true,
            norm_eps: 1e-5,
            rope_theta: 10_000.0,
            rope_scaling: None,
            lora: None,
        };
        let of = |family| Architecture { family, ..llama.clone() };
        let gpt2 = Architecture { kv_heads: 6, ..of(Family::Gpt2) };
        let lora = Lora { rank: 3, alpha: 6.0, targets: vec!["q_proj".into(), "down_proj".into()] };
        let adapted = Architecture { lora: Some(lora), ..llama.clone() };
        for arch in [llama.clone(), gpt2, of(Family::Qwen2), of(Family::Qwen3), adapted] {
            for unit in [Unit::Embed, Unit::Block(1), Unit::Head] {
                let part = Part::new(&arch, &[unit], 0, &Device::flex());
                let trained = part.params().iter().filter(|parameter| parameter.trainable).count();
                assert_eq!(trained_tensors(&arch, unit), trained as u64, "{:?} {unit}", arch.family);
            }
        }
        let map = LayerMap::from_counts(2, &[2, 1, 1]).unwrap();
        assert_eq!(control_bytes(&llama, &map, 0), [4 + 8 * 10, 18]);
        assert_eq!(control_bytes(&llama, &map, 1), [4 + 8 * 19, 18]);
    }
}
