//! Adapters against the model with them merged into its weights, and against the chain rule.

use burn::tensor::Device;
use thinwire_train::config::{Family, Unit};
use thinwire_train::model::{Architecture, Lora, Parameter, Part};

use crate::parts::{Pass, cut, pass};

const SAMPLES: usize = 2;
const TOKENS: usize = 12;

/// Largest difference of a value, as a share of the largest in its tensor: both sides round to f32 in orders of their own.
const TOLERANCE: f32 = 1e-5;

fn architectures() -> Vec<Architecture> {
    let lora = |targets: &[&str]| {
        let targets = targets.iter().map(ToString::to_string).collect();
        Some(Lora { rank: 3, alpha: 4.0, targets })
    };
    let llama = Architecture {
        family: Family::Llama,
        layers: 2,
        hidden: 24,
        heads: 4,
        head_dim: None,
        kv_heads: 2,
        ffn: 40,
        context: TOKENS,
        vocab: 61,
        tied: false,
        norm_eps: 1e-5,
        rope_theta: 10_000.0,
        rope_scaling: None,
        lora: lora(&["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]),
    };
    let gpt2 = Architecture {
        family: Family::Gpt2,
        kv_heads: 4,
        tied: true,
        lora: lora(&["c_attn", "c_proj", "c_fc"]),
        ..llama.clone()
    };
    let qwen2 = Architecture { family: Family::Qwen2, tied: true, ..llama.clone() };
    let qwen3 = Architecture { family: Family::Qwen3, head_dim: Some(8), ..llama.clone() };
    let some = Architecture { lora: lora(&["v_proj", "mlp.down_proj"]), ..llama.clone() };
    vec![llama, gpt2, qwen2, qwen3, some]
}

fn run(parts: &[Part]) -> Pass {
    let id = |i: usize| i64::try_from(i * i * 31 % 61).unwrap();
    let tokens = |offset| (0..SAMPLES * TOKENS).map(|i| id(i + offset)).collect();
    pass(parts, [tokens(0), tokens(1)], [SAMPLES, TOKENS])
}

/// A part with every B set to values of no pattern, by its name: a fresh one is zero, and then A has no gradient.
fn adapted(arch: &Architecture, units: &[Unit]) -> Part {
    let mut part = Part::new(arch, units, 7, &Device::flex());
    let params = part.params().clone();
    for parameter in part.params_mut().iter_mut() {
        if parameter.name.ends_with(".lora_B.weight") {
            let phase: u32 = parameter.name.bytes().map(u32::from).sum();
            let value = |i: usize| ((i * 37) as f32 + phase as f32).sin() * 0.2;
            parameter.value = params.upload((0..parameter.len()).map(value).collect());
        }
    }
    part
}

fn values(part: &Part, name: &str) -> (Vec<f32>, Vec<usize>) {
    let Parameter { value, shape, .. } =
        part.params().iter().find(|parameter| parameter.name == name).expect(name);
    (value.clone().into_data().try_into_vec().unwrap(), shape.clone())
}

/// `scale * a b`, row-major: `a: [rows, inner]`, `b: [inner, columns]`.
fn product(scale: f64, a: &[f32], b: &[f32], [rows, inner, columns]: [usize; 3]) -> Vec<f32> {
    let mut out = Vec::new();
    for row in 0..rows {
        for column in 0..columns {
            let terms =
                (0..inner).map(|i| f64::from(a[row * inner + i]) * f64::from(b[i * columns + column]));
            out.push((scale * terms.sum::<f64>()) as f32);
        }
    }
    out
}

fn transposed(matrix: &[f32], columns: usize) -> Vec<f32> {
    (0..columns).flat_map(|column| matrix.iter().copied().skip(column).step_by(columns)).collect()
}

fn assert_close(found: &[f32], expected: &[f32], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let scale = expected.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
    assert!(scale > 0.0, "{what}: all zero");
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= TOLERANCE * scale, "{what}: {found}, {expected} of {scale}");
    }
}

/// The model without adapters whose weights do what `part`'s weights and adapters do: `W + alpha / rank B A`.
fn merged(arch: &Architecture, units: &[Unit], part: &Part) -> Part {
    let lora = arch.lora.as_ref().unwrap();
    let plain = Architecture { lora: None, ..arch.clone() };
    let mut merged = Part::new(&plain, units, 7, &Device::flex());
    let params = merged.params().clone();
    for parameter in merged.params_mut().iter_mut() {
        let Some(module) = parameter.name.strip_suffix(".weight").filter(|module| lora.adapts(module)) else {
            continue;
        };
        let (a, a_shape) = values(part, &format!("{module}.lora_A.weight"));
        let (b, b_shape) = values(part, &format!("{module}.lora_B.weight"));
        let delta = product(lora.alpha / lora.rank as f64, &b, &a, [b_shape[0], lora.rank, a_shape[1]]);
        let delta = if arch.family == Family::Gpt2 { transposed(&delta, a_shape[1]) } else { delta };
        let weight = values(part, &parameter.name).0;
        parameter.value = params.upload(weight.iter().zip(delta).map(|(w, delta)| w + delta).collect());
    }
    merged
}

#[test]
fn adapters_compute_what_merged_weights_do_and_follow_the_chain_rule() {
    for arch in architectures() {
        arch.validate().unwrap();
        let units = cut(arch.layers, &[]).remove(0);
        let part = adapted(&arch, &units);
        let merged = merged(&arch, &units, &part);
        let (found, expected) = (run(std::slice::from_ref(&part)), run(&[merged]));
        assert_close(&found.logits, &expected.logits, "logits");

        let lora = arch.lora.as_ref().unwrap();
        let scale = lora.alpha / lora.rank as f64;
        let mut compared = 0;
        for (name, dw) in &expected.gradients {
            let Some(module) = name.strip_suffix(".weight").filter(|module| lora.adapts(module)) else {
                continue;
            };
            let [a_name, b_name] = ["A", "B"].map(|matrix| format!("{module}.lora_{matrix}.weight"));
            let ((a, a_shape), (b, b_shape)) = (values(&part, &a_name), values(&part, &b_name));
            let [fan_in, fan_out, rank] = [a_shape[1], b_shape[0], lora.rank];
            // [out, in], whatever the layout.
            let dw = if arch.family == Family::Gpt2 { transposed(dw, fan_out) } else { dw.clone() };
            let da = product(scale, &transposed(&b, rank), &dw, [rank, fan_out, fan_in]);
            let db = product(scale, &dw, &transposed(&a, fan_in), [fan_out, fan_in, rank]);
            let gradient =
                |name: &String| &found.gradients.iter().find(|(other, _)| other == name).unwrap().1;
            assert_close(gradient(&a_name), &da, &a_name);
            assert_close(gradient(&b_name), &db, &b_name);
            compared += 2;
        }
        assert_eq!(found.gradients.len(), compared, "adapters alone have gradients");
        let layers = if arch.family == Family::Gpt2 { 4 } else { 7 };
        assert_eq!(compared, 2 * arch.layers * if lora.targets.len() == 2 { 2 } else { layers });
    }
}

#[test]
fn a_fresh_adapter_changes_nothing_and_starts_as_pefts_does() {
    for arch in architectures() {
        let units = cut(arch.layers, &[]).remove(0);
        let part = Part::new(&arch, &units, 7, &Device::flex());
        let plain = Part::new(&Architecture { lora: None, ..arch.clone() }, &units, 7, &Device::flex());
        assert_eq!(run(std::slice::from_ref(&part)).logits, run(&[plain]).logits);
        let mut adapters = 0;
        for parameter in part.params().iter().filter(|parameter| parameter.name.ends_with(".lora_A.weight")) {
            // kaiming_uniform_(a = sqrt(5)) is uniform up to sqrt(6 / ((1 + 5) in)).
            let bound = 1.0 / (parameter.shape[1] as f32).sqrt();
            let (values, _) = values(&part, &parameter.name);
            assert!(values.iter().all(|value| value.abs() <= bound), "{}", parameter.name);
            let mean_square = values.iter().map(|value| value * value).sum::<f32>() / values.len() as f32;
            // A third of the bound's square, give or take what 72 values allow.
            assert!((0.2..0.5).contains(&(mean_square / (bound * bound))), "{}", parameter.name);
            adapters += 1;
        }
        assert!(adapters > 0);
    }
}

#[test]
fn any_cut_gives_the_same_bits() {
    for arch in architectures() {
        let mut expected = None;
        for cuts in [&[][..], &[2], &[2, 3]] {
            let parts: Vec<Part> = cut(arch.layers, cuts).iter().map(|units| adapted(&arch, units)).collect();
            let found = run(&parts);
            let bits = |pass: &Pass| -> Vec<u32> {
                let gradients = pass.gradients.iter().flat_map(|(_, gradient)| gradient);
                gradients.chain(&pass.logits).map(|value| value.to_bits()).collect()
            };
            assert_eq!(
                *expected.get_or_insert_with(|| bits(&found)),
                bits(&found),
                "{:?} {cuts:?}",
                arch.family
            );
        }
    }
}
