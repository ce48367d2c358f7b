//! A model cut into parts computes the same bits as the whole, and no parameter is cut off from its gradient.

use burn::tensor::Device;
use thinwire_train::config::{Family, RopeScaling};
use thinwire_train::model::{Architecture, Part};

use crate::parts::{Pass, cut, pass};

const SAMPLES: usize = 2;
const TOKENS: usize = 24;

fn architectures() -> Vec<Architecture> {
    let base = Architecture {
        family: Family::Llama,
        layers: 3,
        hidden: 32,
        heads: 4,
        head_dim: None,
        kv_heads: 2,
        ffn: 48,
        context: TOKENS,
        vocab: 61,
        tied: false,
        norm_eps: 1e-5,
        rope_theta: 10_000.0,
        rope_scaling: None,
        lora: None,
    };
    let gpt2 = Architecture { family: Family::Gpt2, kv_heads: 4, ..base.clone() };
    let rope_scaling = Some(RopeScaling::Linear { factor: 2.0 });
    let qwen2 = Architecture { family: Family::Qwen2, rope_scaling, ..base.clone() };
    let qwen3 = Architecture { family: Family::Qwen3, head_dim: Some(12), ..base.clone() };
    let tied = |arch: &Architecture| Architecture { tied: true, ..arch.clone() };
    vec![tied(&base), tied(&gpt2), tied(&qwen2), base, gpt2, qwen3]
}

fn run(arch: &Architecture, cuts: &[usize]) -> Pass {
    let id = |i: usize| i64::try_from(i * i * 31 % arch.vocab).unwrap();
    let tokens = |offset| (0..SAMPLES * TOKENS).map(|i| id(i + offset)).collect();
    let parts: Vec<Part> =
        cut(arch.layers, cuts).iter().map(|units| Part::new(arch, units, 7, &Device::flex())).collect();
    pass(&parts, [tokens(0), tokens(1)], [SAMPLES, TOKENS])
}

#[test]
fn any_cut_gives_the_same_bits() {
    for arch in architectures() {
        let whole = run(&arch, &[]);
        for cuts in [vec![1], vec![2], vec![4], vec![1, 3], vec![1, 2, 3, 4]] {
            let cut = run(&arch, &cuts);
            assert_eq!(whole.loss.to_bits(), cut.loss.to_bits(), "{:?} cut at {cuts:?}: loss", arch.family);
            assert_eq!(whole.gradients.len(), cut.gradients.len());
            for ((name, a), (other, b)) in whole.gradients.iter().zip(&cut.gradients) {
                assert_eq!(name, other);
                let equal = a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits());
                assert!(equal, "{:?} cut at {cuts:?}: gradient of {name}", arch.family);
            }
        }
    }
}

#[test]
fn every_parameter_has_a_gradient() {
    for arch in architectures() {
        for (name, gradient) in run(&arch, &[]).gradients {
            assert!(gradient.iter().all(|g| g.is_finite()), "{name}: not finite");
            assert!(gradient.iter().any(|&g| g != 0.0), "{name}: all zero");
        }
    }
}
