//! Training of adapters for a model of others: split, resumed, evaluated, exported.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;

use burn::tensor::Device;
use thinwire_link::memory;
use thinwire_pretrained::Pretrained;
use thinwire_train::checkpoint::load_part;
use thinwire_train::config::{Config, TokenizerSource, Unit};
use thinwire_train::evaluate::{SavedModel, Sharing};
use thinwire_train::export::{ExportFormat, ExportOptions, Exporter};
use thinwire_train::generate::Session;
use thinwire_train::run::{Resume, Setup};

use crate::fixture::folder;
use crate::pretrained::{copy, perplexity};
use crate::support::{Plan, evaluations, last_checkpoint, losses, run};

/// Of the models' three blocks. A stage with the embedding alone has nothing to train, nor has one with the head alone.
const SPLITS: [&str; 5] = [
    r#"["embed 0-2 head"]"#,
    r#"["embed 0", "1-2 head"]"#,
    r#"["embed", "0-2 head"]"#,
    r#"["embed", "0-2", "head"]"#,
    r#"["embed", "0", "1-2", "head"]"#,
];

/// A recipe in `dir` that trains adapters for `model`, with the tokenizer that fits all models here.
fn config(dir: &Path, model: &Path, overrides: &[&str]) -> Result<Config, String> {
    let tokenizer = format!("data.tokenizer={:?}", folder("smollm2").join("tokenizer.json").display());
    let settings = [
        &tokenizer,
        "lora.rank=4",
        "train.steps=4",
        "train.sequence=8",
        "train.micro_batch=2",
        "train.micro_batches=2",
        "eval.every=2",
    ];
    crate::pretrained::config(dir, model, &[&settings, overrides].concat())
}

/// A whole run; gives the losses, the evaluations, and the files of the last checkpoint.
fn finished(config: &Config, resume: Resume) -> (Vec<u64>, Vec<u64>, BTreeMap<String, Vec<u8>>) {
    let (story, outcomes) = run(config, resume);
    for outcome in outcomes {
        outcome.unwrap();
    }
    let result = (losses(&story[0]), evaluations(&story[0]), last_checkpoint(config));
    for events in &story {
        assert_eq!((losses(events), evaluations(events)), (result.0.clone(), result.1.clone()));
    }
    fs::write(config.run.dir.join("thinwire.toml"), config.to_toml().unwrap()).unwrap();
    result
}

#[test]
fn every_split_is_bit_equal() {
    for (model, targets, dtype) in [
        ("smollm2", r#"["q_proj", "v_proj", "down_proj"]"#, "f32"),
        ("gpt2", r#"["c_attn", "mlp.c_proj"]"#, "f32"),
        ("gpt2", r#"["c_attn", "mlp.c_proj"]"#, "bf16"),
        ("qwen2", r#"["k_proj", "gate_proj", "o_proj"]"#, "f32"),
    ] {
        let mut reference = None;
        for (schedule, checkpointing) in [("gpipe", false), ("1f1b", true)] {
            for split in SPLITS {
                let dir = tempfile::tempdir().unwrap();
                let overrides = [
                    format!("lora.targets={targets}"),
                    format!("pipeline.stages={}", split.matches(',').count() + 1),
                    format!("pipeline.layers={split}"),
                    format!("pipeline.schedule={schedule}"),
                    format!("train.gradient_checkpointing={checkpointing}"),
                    format!("train.dtype={dtype}"),
                ];
                let overrides: Vec<&str> = overrides.iter().map(String::as_str).collect();
                let result =
                    finished(&config(dir.path(), &folder(model), &overrides).unwrap(), Resume::Fresh);
                assert!(f64::from_bits(result.1[1]) < f64::from_bits(result.1[0]), "{model}: it learns");
                let reference = reference.get_or_insert_with(|| result.clone());
                assert!(*reference == result, "{model} {dtype} {split} {schedule}");
            }
        }
    }
}

#[test]
fn ranks_train_the_adapters_of_one() {
    for (model, targets) in
        [("llama2", r#"["q_proj", "v_proj", "down_proj"]"#), ("gpt2", r#"["c_attn", "mlp.c_proj"]"#)]
    {
        let trained = |more: &[&str]| {
            let dir = tempfile::tempdir().unwrap();
            let targets = format!("lora.targets={targets}");
            let config = config(dir.path(), &folder(model), &[&[&*targets], more].concat()).unwrap();
            let (losses, evaluations, files) = finished(&config, Resume::Fresh);
            let names: Vec<String> = files.into_keys().collect();
            ([losses, evaluations].concat().into_iter().map(f64::from_bits).collect::<Vec<_>>(), names)
        };
        let (expected, names) = trained(&[]);
        let (two, split) = ("tensor_parallel.ranks=2", r#"pipeline.layers=["embed 0", "1-2 head"]"#);
        for more in [&[two][..], &[two, "train.gradient_checkpointing=true", "pipeline.stages=2", split]] {
            let (found, found_names) = trained(more);
            assert_eq!(found_names, names, "{model}");
            for (found, expected) in found.iter().zip(&expected) {
                assert!(
                    (found - expected).abs() < 1e-5 * expected,
                    "{model} {more:?}: {found}, not {expected}"
                );
            }
        }
    }
}

#[test]
fn a_checkpoint_has_adapters_alone() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path(), &folder("smollm2"), &[r#"lora.targets=["v_proj"]"#]).unwrap();
    assert_eq!(Config::parse(&config.to_toml().unwrap(), &[]).unwrap(), config);
    let (_, _, files) = finished(&config, Resume::Fresh);
    assert_eq!(files.len(), 10, "two for each unit");
    let dir = config.run.dir.join("checkpoints");
    let error = load_part(&dir, 4, &[Unit::Block(0)], &Device::flex()).unwrap_err().to_string();
    assert!(error.contains("parameters: expected those of a whole model, found adapters alone"), "{error}");
    for (name, bytes) in files {
        let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        let mut names: Vec<&str> = tensors.names();
        names.sort_unstable();
        let expected: Vec<String> = name.strip_prefix("layer-000").map_or_else(Vec::new, |name| {
            let module = format!("model.layers.{}.self_attn.v_proj", &name[..1]);
            let moments: &[&str] =
                if name.contains("optimizer") { &[".exp_avg", ".exp_avg_sq"] } else { &[""] };
            let of = |matrix| moments.iter().map(move |moment| (matrix, moment));
            let all = of("A").chain(of("B"));
            all.map(|(matrix, moment)| format!("{module}.lora_{matrix}.weight{moment}")).collect()
        });
        assert_eq!(names, expected, "{name}");
    }
}

#[test]
fn ranks_share_adapters_and_what_they_adapt() {
    let dir = tempfile::tempdir().unwrap();
    let targets = r#"lora.targets=["c_attn", "c_fc", "c_proj"]"#;
    let config = config(dir.path(), &folder("gpt2"), &[targets]).unwrap();
    finished(&config, Resume::Fresh);
    let logits = |path: &Path, ranks: usize| {
        let model = SavedModel::open(path, Some(&config.data.tokenizer)).unwrap();
        let sharing = Sharing { ranks: NonZeroUsize::new(ranks).unwrap(), ..Sharing::ALONE };
        let mut pipeline = model.load_shared(Vec::new(), sharing).unwrap();
        let mut session = Session::new(&pipeline, 5).unwrap();
        session.extend(&mut pipeline, &[3, 1, 4, 15, 9], 5).unwrap()
    };
    let difference =
        |a: &[f32], b: &[f32]| a.iter().zip(b).fold(0.0_f32, |max, (a, b)| max.max((a - b).abs()));
    let (run, base) = (&config.run.dir, folder("gpt2"));
    let alone = logits(run, 1);
    let adapted = difference(&alone, &logits(&base, 1));
    let shared = difference(&alone, &logits(run, 2));
    assert!(shared < 1e-4 && shared < 0.01 * adapted, "{shared}, and {adapted} by the adapters");
}

#[test]
fn a_resumed_run_is_a_straight_one_to_the_bit() {
    for split in [SPLITS[0], SPLITS[3]] {
        let stages = format!("pipeline.stages={}", split.matches(',').count() + 1);
        let layers = format!("pipeline.layers={split}");
        let dir = tempfile::tempdir().unwrap();
        let recipe = |name: &str| {
            let overrides = [&stages, &layers, "checkpoint.every=2", name];
            config(dir.path(), &folder("qwen2"), &overrides).unwrap()
        };
        let (straight, stopped) = (recipe("run.dir=straight"), recipe("run.dir=stopped"));
        let expected = finished(&straight, Resume::Fresh).2;
        let plan = Plan { stop_at: Some(3), ..Plan::new(&stopped, Resume::Fresh) };
        assert!(plan.run().1.into_iter().all(|outcome| outcome.is_err()));
        assert!(finished(&stopped, Resume::Newest).2 == expected, "{split}");
    }
}

#[test]
fn adapters_are_evaluated_and_merged() {
    let models = [("gpt2", "f32"), ("smollm2", "f32"), ("qwen2", "f32"), ("qwen3", "f32"), ("qwen3", "bf16")];
    for (model, dtype) in models {
        let dir = tempfile::tempdir().unwrap();
        let dtype_set = format!("train.dtype={dtype}");
        // The rate is high, so that the adapters change something.
        let settings =
            ["optimizer.learning_rate=0.1", "eval.micro_batch=1", "train.sequence=40", &*dtype_set];
        let config = config(dir.path(), &folder(model), &settings).unwrap();
        let (losses, evaluations, _) = finished(&config, Resume::Fresh);
        let last = f64::from_bits(*evaluations.last().unwrap());
        assert!(f64::from_bits(losses[0]) - last > 0.1, "{model}: {last}");

        let text = dir.path().join("train.txt");
        let saved = SavedModel::open(&config.run.dir, None).unwrap();
        let own = perplexity(&saved, &text).ln();
        assert!((own - last).abs() < 1e-6, "{model} in {dtype}: {own}, at the end of training {last}");

        let merged = dir.path().join("merged");
        let options = ExportOptions { format: ExportFormat::F32, shard_bytes: 1 << 30, replace: false };
        Exporter::new(&saved).unwrap().write(&merged, options, || ()).unwrap();
        let opened = Pretrained::open(&merged).unwrap();
        assert_eq!(opened.config(), Pretrained::open(folder(model)).unwrap().config());
        let merged = SavedModel::open(&merged, None).unwrap();
        assert_eq!(merged.stop(), saved.stop(), "{model}: what ends a text");
        let found = perplexity(&merged, &text).ln();
        // What is merged computes in f32.
        let tolerance = if dtype == "f32" { 1e-5 } else { 0.02 };
        assert!((own - found).abs() < tolerance, "{model} in {dtype}: {own}, merged {found}");
    }
}

#[test]
fn the_model_must_be_the_one_of_training() {
    let dir = tempfile::tempdir().unwrap();
    let model = copy(dir.path());
    let config = config(dir.path(), &model, &[]).unwrap();
    finished(&config, Resume::Fresh);
    let file = model.join("model.safetensors");
    let whole = fs::read(&file).unwrap();
    let mut other = whole.clone();
    *other.last_mut().unwrap() ^= 1;
    fs::write(&file, other).unwrap();

    let open = || SavedModel::open(&config.run.dir, None).unwrap_err().to_string();
    assert!(open().contains("fingerprint of the model that the adapters are for: expected "), "{}", open());
    let (_, outcomes) = run(&config, Resume::Newest);
    let error = outcomes.into_iter().next().unwrap().unwrap_err().to_string();
    assert!(error.contains("fingerprint of the model that the adapters are for: expected "), "{error}");

    fs::write(&file, &whole).unwrap();
    let saved = SavedModel::open(&config.run.dir, None).unwrap();
    let options = ExportOptions { format: ExportFormat::F32, shard_bytes: 1 << 30, replace: true };
    for place in [model.clone(), model.join("inside")] {
        let error = Exporter::new(&saved).unwrap().write(&place, options, || ()).unwrap_err().to_string();
        assert!(error.contains("the model's own"), "{error}");
    }
    assert_eq!(fs::read(&file).unwrap(), whole);
    fs::remove_file(config.run.dir.join("thinwire.toml")).unwrap();
    let tokenizer = TokenizerSource::File(folder("smollm2").join("tokenizer.json"));
    let error = SavedModel::open(&config.run.dir, Some(&tokenizer)).unwrap_err().to_string();
    assert!(error.starts_with("the checkpoint has adapters alone"), "{error}");
}

#[test]
fn stages_with_other_adapters_refuse_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let stages = ["pipeline.stages=2", r#"pipeline.layers=["embed 0", "1-2 head"]"#];
    let setup = |lora: &str| {
        let config = config(dir.path(), &folder("smollm2"), &[&stages[..], &[lora]].concat()).unwrap();
        Setup::load(config).unwrap()
    };
    let (one, other) = (setup("lora.alpha=8"), setup("lora.alpha=9"));
    let ends = [one.link_config(0, 1, false).unwrap(), other.link_config(1, 0, false).unwrap()];
    let error = memory::pair(&ends[0], &ends[1]).err().unwrap().to_string();
    assert!(error.contains("model"), "{error}");
    assert_eq!(setup("lora.alpha=8.0").run_id().unwrap(), one.run_id().unwrap(), "the default");
}

#[test]
fn what_no_model_can_have_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for (value, expected) in [
        ("lora.rank=0", "lora.rank = 0: expected from 1 to "),
        ("lora.rank=9", "lora.rank = 9: expected from 1 to 8, the smaller side of self_attn.k_proj [8, 16]"),
        (r#"lora.targets=["c_attn"]"#, "lora.targets = \"c_attn\": expected linear layers of a llama block"),
        (r#"lora.targets=["proj"]"#, "ends of their names: self_attn.q_proj, self_attn.k_proj, "),
        ("lora.targets=[]", "lora.targets = []: expected linear layers"),
        ("lora.alpha=0", "lora.alpha = 0: expected a positive number"),
        ("lora.alpha=1e-40", "lora.alpha = "),
        ("lora.dropout=0.1", "lora.dropout: unknown key; "),
    ] {
        let error = config(dir.path(), &folder("smollm2"), &[value]).unwrap_err();
        assert!(error.contains(expected), "{value}: {error}");
    }
    let text = "run = { dir = 'run' }\nmodel = { family = 'gpt2', layers = 1, hidden = 8, heads = 1 }\n\
                data = { train = 'a.txt' }\ntrain = { steps = 1 }\nlora = { rank = 2 }";
    let error = Config::parse(text, &[]).unwrap_err().to_string();
    assert!(error.starts_with("model.pretrained = none: expected the model that the adapters"), "{error}");
}
