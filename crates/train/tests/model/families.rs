//! Every family against `transformers` and PyTorch: `tests/fixtures/make_families.py` made the models and what they
//! compute.

use burn::tensor::Device;
use thinwire_pretrained::Pretrained;
use thinwire_train::config::{Family, RopeScaling};
use thinwire_train::model::Architecture;
use thinwire_train::pretrained::load_part;

use crate::fixture::{Fixture, folder};
use crate::parts::{cut, pass};

/// Largest difference of a logit. They are of size 1 to 10.
const LOGITS: f32 = 1e-4;

/// Largest difference of a gradient's value, as a share of the largest value in its tensor.
const GRADIENTS: f32 = 1e-3;

/// The models, by the name of their folder.
fn models() -> Vec<(&'static str, Architecture)> {
    let llama2 = Architecture {
        family: Family::Llama,
        layers: 3,
        hidden: 16,
        heads: 2,
        head_dim: None,
        kv_heads: 2,
        ffn: 40,
        context: 128,
        vocab: 64,
        tied: false,
        norm_eps: 1e-5,
        rope_theta: 1e4,
        rope_scaling: None,
        lora: None,
    };
    let linear = Architecture {
        norm_eps: 1e-6,
        rope_scaling: Some(RopeScaling::Linear { factor: 4.0 }),
        ..llama2.clone()
    };
    let slowed = RopeScaling::Llama3 {
        factor: 8.0,
        low_freq_factor: 1.0,
        high_freq_factor: 4.0,
        original_context: 32,
    };
    let grouped = Architecture { kv_heads: 1, ..llama2.clone() };
    let llama3 = Architecture { rope_theta: 100.0, rope_scaling: Some(slowed), ..grouped.clone() };
    let smollm2 = Architecture { rope_theta: 1e5, tied: true, ..grouped.clone() };
    let qwen2 =
        Architecture { family: Family::Qwen2, rope_theta: 1e6, norm_eps: 1e-6, tied: true, ..grouped };
    let qwen3 = Architecture {
        family: Family::Qwen3,
        heads: 4,
        head_dim: Some(8),
        rope_theta: 1e6,
        norm_eps: 1e-6,
        ..llama2.clone()
    };
    let gpt2 = Architecture { family: Family::Gpt2, ffn: 64, context: 48, tied: true, ..llama2.clone() };
    vec![
        ("gpt2", gpt2),
        ("llama2", llama2),
        ("llama2-linear", linear),
        ("llama3", llama3),
        ("smollm2", smollm2),
        ("qwen2", qwen2),
        ("qwen3", qwen3),
    ]
}

/// The largest difference, and the largest expected magnitude.
fn difference(found: &[f32], expected: &[f32]) -> (f32, f32) {
    assert_eq!(found.len(), expected.len());
    let largest = |values: &mut dyn Iterator<Item = f32>| values.fold(0.0, |a, b| f32::max(a, b.abs()));
    let scale = largest(&mut expected.iter().copied());
    assert!(scale > 0.0);
    (largest(&mut found.iter().zip(expected).map(|(a, b)| a - b)), scale)
}

fn agrees_with_transformers(model: &str, arch: &Architecture, cuts: &[usize]) {
    let opened = Pretrained::open(folder(model)).unwrap();
    assert_eq!(Architecture::from(opened.config()), *arch, "{model}");
    arch.validate().unwrap();
    let expected = Fixture::read(model);
    let (shape, ids) = expected.ids("ids");
    let [samples, tokens] = [shape[0], shape[1] - 1];
    let shifted =
        |by: usize| ids.chunks(shape[1]).flat_map(|row| &row[by..by + tokens]).copied().collect::<Vec<_>>();
    let load = |units: &Vec<_>| load_part(&opened, units, &Device::flex()).unwrap();
    let parts: Vec<_> = cut(arch.layers, cuts).iter().map(load).collect();
    let mut pass = pass(&parts, [shifted(0), shifted(1)], [samples, tokens]);

    let (error, _) = difference(&pass.logits, &expected.floats("logits").1);
    assert!(error < LOGITS, "{model} cut at {cuts:?}: logits differ by {error}");
    let loss: f32 = expected.floats("losses").1.iter().sum();
    assert!((pass.loss / loss - 1.0).abs() < 1e-6, "{model}: loss {}, expected {loss}", pass.loss);

    if arch.tied {
        let (name, head) = pass.gradients.pop().unwrap();
        assert_eq!(name, "lm_head.weight");
        pass.gradients[0].1.iter_mut().zip(head).for_each(|(a, b)| *a += b);
    }
    for (name, gradient) in &pass.gradients {
        // Theirs is of the mean loss.
        let mean: Vec<f32> = gradient.iter().map(|g| g / (samples * tokens) as f32).collect();
        let (error, scale) = difference(&mean, &expected.floats(&format!("gradient.{name}")).1);
        assert!(error < GRADIENTS * scale, "{model} cut at {cuts:?}: {name}: {error} of {scale}");
    }
    assert_eq!(pass.gradients.len(), opened.names().count(), "{model}: every parameter is compared");
}

#[test]
fn whole_models_agree() {
    for (model, arch) in models() {
        agrees_with_transformers(model, &arch, &[]);
    }
}

#[test]
fn models_in_two_parts_agree() {
    for (model, arch) in models() {
        agrees_with_transformers(model, &arch, &[2]);
    }
}
