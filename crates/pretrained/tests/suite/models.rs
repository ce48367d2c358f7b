//! Small models of every family, as transformers saved them and as llama.cpp's conversion stores them.

use thinwire_pretrained::{DecoderConfig, Family, Pretrained, Rope, RopeScaling};

use crate::support::{SMALL, fixture};

fn folder(name: &str) -> Pretrained {
    Pretrained::open(fixture(&format!("models/{name}"))).unwrap()
}

fn gguf(name: &str) -> Pretrained {
    Pretrained::open(fixture(&format!("models/{name}.gguf"))).unwrap()
}

#[test]
fn a_gguf_file_holds_the_model_of_the_folder() {
    for name in SMALL {
        let (folder, gguf) = (folder(name), gguf(name));
        assert_eq!(folder.config(), gguf.config(), "{name}");
        assert!(folder.names().eq(gguf.names()), "{name}");
        for tensor in folder.config().tensors() {
            let expected = folder.read(&tensor.name, &tensor.shape).unwrap();
            assert!(
                expected.iter().any(|value| *value != expected[0]),
                "{name} {} is not random",
                tensor.name
            );
            assert_eq!(gguf.read(&tensor.name, &tensor.shape).unwrap(), expected, "{name} {}", tensor.name);
        }
    }
}

#[test]
fn configurations() {
    let base = DecoderConfig {
        family: Family::Llama,
        layers: 2,
        hidden: 16,
        heads: 4,
        kv_heads: 2,
        head_dim: 4,
        ffn: 24,
        context: 64,
        vocab: 400,
        tied: false,
        norm_eps: 1e-6,
        rope: Some(Rope { theta: 10_000.0, scaling: RopeScaling::None }),
    };
    let llama3 = RopeScaling::Llama3 {
        factor: 8.0,
        low_freq_factor: 1.0,
        high_freq_factor: 4.0,
        original_context: 8192,
    };
    let linear = RopeScaling::Linear { factor: 4.0 };
    let expected = [
        DecoderConfig {
            family: Family::Gpt2,
            kv_heads: 4,
            tied: true,
            norm_eps: 1e-5,
            rope: None,
            ..base.clone()
        },
        DecoderConfig {
            head_dim: 8,
            context: 65536,
            rope: Some(Rope { theta: 500_000.0, scaling: llama3 }),
            ..base.clone()
        },
        DecoderConfig {
            tied: true,
            norm_eps: 1e-5,
            rope: Some(Rope { theta: 10_000.0, scaling: linear }),
            ..base.clone()
        },
        DecoderConfig { family: Family::Qwen2, ..base.clone() },
        DecoderConfig { family: Family::Qwen3, head_dim: 6, tied: true, ..base },
    ];
    for (name, expected) in SMALL.into_iter().zip(expected) {
        assert_eq!(folder(name).config(), &expected, "{name}");
    }
}

#[test]
fn a_tied_model_has_no_head() {
    for name in SMALL {
        let model = folder(name);
        assert_eq!(model.has("lm_head.weight"), !model.config().tied, "{name}");
    }
}

#[test]
fn reading_checks_name_and_shape() {
    for model in [folder("qwen2"), gguf("qwen2")] {
        let error = model.read("model.norm.weight", &[17]).unwrap_err().to_string();
        assert!(error.contains("`model.norm.weight`: expected shape [17], found [16]"), "{error}");
        let error = model.read("model.norm.bias", &[16]).unwrap_err().to_string();
        assert!(error.contains("`model.norm.bias`: expected shape [16], found none"), "{error}");
    }
}
