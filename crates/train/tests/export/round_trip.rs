//! What is exported is what was trained.

use std::fs;
use std::path::Path;

use burn::tensor::{Device, Int, Tensor, TensorData};
use thinwire_pretrained::{Pretrained, TensorSpec};
use thinwire_train::checkpoint;
use thinwire_train::config::{Config, TokenizerSource, Unit};
use thinwire_train::data::WindowSize;
use thinwire_train::evaluate::SavedModel;
use thinwire_train::export::{ExportFormat, ExportOptions, Exporter};
use thinwire_train::model::{Activation, Part};
use thinwire_train::pretrained;
use thinwire_train::run::Resume;

use crate::support::{config, run};

const F32: ExportOptions = ExportOptions { format: ExportFormat::F32, shard_bytes: 1 << 30, replace: false };

/// Settings of each family that its configuration file must carry.
const FAMILIES: [&[&str]; 4] = [
    &["model.family=gpt2", "model.kv_heads=4", "model.ffn=80"],
    &[
        "model.rope_scaling={type='llama3',factor=8.0,low_freq_factor=1.0,high_freq_factor=4.0,original_context=16}",
    ],
    &[
        "model.family=qwen2",
        "model.kv_heads=1",
        "model.rope_theta=1e6",
        "model.rope_scaling={type='linear',factor=2.0}",
    ],
    &["model.family=qwen3", "model.head_dim=12", "model.norm_eps=1e-6"],
];

/// A trained run in `dir`.
pub(crate) fn trained(dir: &Path, overrides: &[&str]) -> Config {
    let config = config(dir, &[&["train.steps=2"], overrides].concat());
    let (_, outcomes) = run(&config, Resume::Fresh);
    for outcome in outcomes {
        outcome.unwrap();
    }
    fs::write(config.run.dir.join("thinwire.toml"), config.to_toml().unwrap()).unwrap();
    config
}

fn export(model: &Path, folder: &Path, options: ExportOptions) {
    let model = SavedModel::open(model, None).unwrap();
    let exporter = Exporter::new(&model).unwrap();
    let mut written = 0;
    exporter.write(folder, options, || written += 1).unwrap();
    assert_eq!(written, exporter.config().tensors().len());
}

/// Bits of the logits of a whole model for two sequences.
fn logits(part: &Part) -> Vec<u32> {
    let ids: Vec<i32> = (0..40).map(|i| i * i * 31 % 256).collect();
    let ids = Tensor::<2, Int>::from_data(TensorData::new(ids, [2, 20]), &Device::flex());
    let Activation::Logits(logits) = part.forward(&part.params().constants(), Activation::Ids(ids)) else {
        panic!("the head gives logits")
    };
    logits.into_data().as_slice::<f32>().unwrap().iter().map(|logit| logit.to_bits()).collect()
}

fn units() -> Vec<Unit> {
    vec![Unit::Embed, Unit::Block(0), Unit::Block(1), Unit::Head]
}

fn of_run(config: &Config) -> Part {
    checkpoint::load_part(&config.run.dir.join("checkpoints"), 2, &units(), &Device::flex()).unwrap()
}

fn of_folder(folder: &Path) -> Part {
    pretrained::load_part(&Pretrained::open(folder).unwrap(), &units(), &Device::flex()).unwrap()
}

#[test]
fn logits_keep_their_bits() {
    for family in FAMILIES {
        for tied in ["model.tie_embeddings=true", "model.tie_embeddings=false"] {
            let dir = tempfile::tempdir().unwrap();
            let config = trained(dir.path(), &[family, &[tied]].concat());
            let expected = logits(&of_run(&config));
            for (name, shard_bytes, files) in [("whole", 1 << 30, 1), ("sharded", 10_000, 5)] {
                let folder = dir.path().join(name);
                export(&config.run.dir, &folder, ExportOptions { shard_bytes, ..F32 });
                assert!(weight_files(&folder) >= files, "{name}");
                let part = of_folder(&folder);
                assert_eq!(part.architecture(), of_run(&config).architecture(), "{family:?} {tied}");
                assert_eq!(logits(&part), expected, "{family:?} {tied} {name}");
            }
        }
    }
}

fn weight_files(folder: &Path) -> usize {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_str().unwrap().ends_with(".safetensors")).count()
}

#[test]
fn an_exported_model_exports_again() {
    let dir = tempfile::tempdir().unwrap();
    let config = trained(dir.path(), &[]);
    let (first, second) = (dir.path().join("first"), dir.path().join("second"));
    export(&config.run.dir.join("checkpoints/step-00000002"), &first, F32);
    export(&first, &second, F32);
    for entry in fs::read_dir(&first).unwrap() {
        let name = entry.unwrap().file_name();
        assert_eq!(fs::read(first.join(&name)).unwrap(), fs::read(second.join(&name)).unwrap(), "{name:?}");
    }
}

#[test]
fn bytes_are_tokens() {
    let dir = tempfile::tempdir().unwrap();
    let config = trained(dir.path(), &[]);
    let folder = dir.path().join("folder");
    export(&config.run.dir, &folder, F32);
    let text = dir.path().join("text.txt");
    // Every character of one or two bytes, so every byte that UTF-8 can have there, and some of three and four.
    let characters: String = ('\0'..'\u{800}').chain("–€🐐\u{10ffff}".chars()).collect();
    fs::write(&text, &characters).unwrap();
    let model = SavedModel::open(&folder, None).unwrap();
    let tokens = model.read_text(&text, WindowSize::consecutive(32, 1)).unwrap().tokens().to_vec();
    let bytes: Vec<u32> = characters.bytes().map(u32::from).collect();
    assert_eq!(tokens, bytes);
    let run = SavedModel::open(&config.run.dir, Some(&TokenizerSource::Byte)).unwrap();
    assert_eq!(run.read_text(&text, WindowSize::consecutive(32, 1)).unwrap().tokens(), tokens);
    let tokenizer =
        thinwire_train::data::Tokenizer::load(&TokenizerSource::File(folder.join("tokenizer.json")));
    assert_eq!(tokenizer.unwrap().decode(&tokens).unwrap(), characters);
}

#[test]
fn a_tokenizer_takes_its_settings_along() {
    let dir = tempfile::tempdir().unwrap();
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/families/smollm2");
    let settings = r#"{"eos_token": "@", "chat_template": "{{ messages[0].content }}"}"#;
    fs::copy(model.join("tokenizer.json"), dir.path().join("tokenizer.json")).unwrap();
    fs::write(dir.path().join("tokenizer_config.json"), settings).unwrap();
    let tokenizer = format!("data.tokenizer=\"{}\"", dir.path().join("tokenizer.json").display());
    // Of its 64 tokens, the text has some.
    let config = trained(dir.path(), &[&tokenizer]);
    let folder = dir.path().join("folder");
    export(&config.run.dir, &folder, F32);
    let files = Pretrained::open(&folder).unwrap().tokenizer().unwrap();
    assert_eq!(files.json, fs::read(model.join("tokenizer.json")).unwrap());
    assert_eq!(files.chat_template.as_deref(), Some("{{ messages[0].content }}"));
    assert_eq!((files.eos.unwrap().text.as_str(), &files.stop[..]), ("@", &[1][..]));
}

#[test]
fn bf16_is_rounded_to_nearest_even() {
    let dir = tempfile::tempdir().unwrap();
    let config = trained(dir.path(), &[]);
    let folder = dir.path().join("folder");
    export(&config.run.dir, &folder, ExportOptions { format: ExportFormat::BF16, ..F32 });
    let (run, exported) = (of_run(&config), Pretrained::open(&folder).unwrap());
    let mut compared = 0;
    for TensorSpec { name, shape } in exported.config().tensors() {
        let at = run.params().position(&name).unwrap();
        let exact = run.params().iter().nth(at).unwrap().value.to_data();
        let rounded = exported.read(&name, &shape).unwrap();
        for (rounded, exact) in rounded.iter().zip(exact.as_slice::<f32>().unwrap()) {
            // The two neighbours with 8 bits of precision, and which of them is even.
            let below = f32::from_bits(exact.to_bits() & 0xFFFF_0000);
            let above = f32::from_bits((exact.to_bits() & 0xFFFF_0000) + 0x1_0000);
            let (to_below, to_above) = ((exact - below).abs(), (above - exact).abs());
            let nearest = match to_below.total_cmp(&to_above) {
                std::cmp::Ordering::Less => below,
                std::cmp::Ordering::Greater => above,
                std::cmp::Ordering::Equal => {
                    if (below.to_bits() >> 16).is_multiple_of(2) {
                        below
                    } else {
                        above
                    }
                }
            };
            assert_eq!(rounded.to_bits(), nearest.to_bits(), "{name}");
            compared += 1;
        }
    }
    assert!(compared > 10_000);
}
