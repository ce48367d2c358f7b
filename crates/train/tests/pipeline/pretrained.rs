//! Training and evaluation that start from a model of others.

use std::fs;
use std::path::{Path, PathBuf};

use safetensors::SafeTensors;
use thinwire_link::memory;
use thinwire_train::config::{Config, TokenizerSource};
use thinwire_train::data::{Corpus, Tokenizer, WindowSize, evaluation};
use thinwire_train::evaluate::SavedModel;
use thinwire_train::run::{Resume, Setup};

use crate::fixture::{Fixture, folder};
use crate::support::{evaluations, last_checkpoint, losses, run};

/// Tied, with grouped heads, and with a tokenizer: one token for each of 64 characters from `?` on.
const MODEL: &str = "smollm2";

/// The first sequence whose losses `transformers` told, and their mean.
fn sequence() -> (String, f64) {
    let expected = Fixture::read(MODEL);
    let (shape, ids) = expected.ids("ids");
    let text = ids[..shape[1]].iter().map(|&id| char::from(b'?' + u8::try_from(id).unwrap())).collect();
    let losses = expected.floats("losses").1;
    let first = &losses[..shape[1] - 1];
    (text, first.iter().copied().map(f64::from).sum::<f64>() / first.len() as f64)
}

/// A recipe in `dir` that trains from `model` on the sequence; `overrides` as after `--set`.
pub(crate) fn config(dir: &Path, model: &Path, overrides: &[&str]) -> Result<Config, String> {
    let (text, _) = sequence();
    fs::write(dir.join("train.txt"), &text).unwrap();
    let recipe = format!(
        r#"
        run = {{ dir = "run" }}
        model = {{ pretrained = "{}" }}
        data = {{ train = "train.txt", heldout = "train.txt" }}
        train = {{ steps = 3, sequence = {}, micro_batch = 1, micro_batches = 1 }}
        optimizer = {{ learning_rate = 0.01, warmup_steps = 1 }}
        eval = {{ every = 1 }}
        pipeline = {{ forward = "f32", backward = "f32" }}
        "#,
        model.display(),
        text.len() - 1
    );
    let path = dir.join("recipe.toml");
    fs::write(&path, recipe).unwrap();
    let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
    Config::load(&path, &overrides).map_err(|error| thinwire_train::text::chain(&error))
}

/// A copy of the model, to be changed.
pub(crate) fn copy(to: &Path) -> PathBuf {
    let copy = to.join("model");
    fs::create_dir(&copy).unwrap();
    for name in ["config.json", "model.safetensors", "tokenizer.json"] {
        fs::copy(folder(MODEL).join(name), copy.join(name)).unwrap();
    }
    copy
}

const SPLITS: [&[&str]; 2] = [&[], &["pipeline.stages=2", r#"pipeline.layers=["embed 0", "1-2 head"]"#]];

#[test]
fn every_stage_starts_from_the_weights() {
    let mut reference = None;
    for split in SPLITS {
        let dir = tempfile::tempdir().unwrap();
        let config = config(dir.path(), &folder(MODEL), split).unwrap();
        let (story, outcomes) = run(&config, Resume::Fresh);
        for outcome in outcomes {
            outcome.unwrap();
        }
        let (first, expected) = (f64::from_bits(losses(&story[0])[0]), sequence().1);
        assert!((first - expected).abs() < 1e-5, "first loss {first}, of transformers {expected}");
        let result = (losses(&story[0]), evaluations(&story[0]), last_checkpoint(&config));
        assert!(f64::from_bits(result.0[2]) < first, "it learns");
        assert!(*reference.get_or_insert_with(|| result.clone()) == result, "{split:?}");
    }
}

/// The head starts as a copy of the embedding and goes its own way: the first loss is the tied model's, nothing but
/// activations and gradients crosses the stages, and what is saved has both matrices.
#[test]
fn a_tied_model_may_be_trained_untied() {
    let mut reference = None;
    for split in SPLITS {
        let results = ["model.tie_embeddings=true", "model.tie_embeddings=false"].map(|tied| {
            let dir = tempfile::tempdir().unwrap();
            let config = config(dir.path(), &folder(MODEL), &[split, &[tied]].concat()).unwrap();
            let (story, outcomes) = run(&config, Resume::Fresh);
            assert!(outcomes.iter().all(Result::is_ok));
            fs::write(config.run.dir.join("thinwire.toml"), config.to_toml().unwrap()).unwrap();
            let saved = SavedModel::open(&config.run.dir, None).unwrap();
            assert_eq!(saved.architecture().tied, tied.ends_with("true"));
            (losses(&story[0]), evaluations(&story[0]), last_checkpoint(&config))
        });
        let [tied, untied] = &results;
        assert_eq!(tied.0[0], untied.0[0]);
        assert_ne!(tied.0[1], untied.0[1]);
        let files = untied.2.values().map(|file| SafeTensors::deserialize(file).unwrap());
        let heads: Vec<_> =
            files.filter_map(|file| Some(file.tensor("lm_head.weight").ok()?.data().to_vec())).collect();
        let files = untied.2.values().map(|file| SafeTensors::deserialize(file).unwrap());
        let embedding =
            files.filter_map(|file| Some(file.tensor("model.embed_tokens.weight").ok()?.data().to_vec()));
        assert!(heads.len() == 1 && !embedding.collect::<Vec<_>>().contains(&heads[0]));
        assert!(*reference.get_or_insert_with(|| untied.clone()) == *untied, "{split:?}");
    }
    // A frozen matrix is not exchanged, and adapters are for the model as it is.
    let dir = tempfile::tempdir().unwrap();
    let error =
        config(dir.path(), &folder(MODEL), &["model.tie_embeddings=false", "lora.rank=2"]).unwrap_err();
    assert!(error.contains("model.tie_embeddings = false: expected true, as in "), "{error}");
}

#[test]
fn a_run_goes_on_and_is_evaluated_when_the_model_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let model = copy(dir.path());
    let config = config(dir.path(), &model, &[]).unwrap();
    let (story, _) = run(&config, Resume::Fresh);
    fs::write(config.run.dir.join("thinwire.toml"), config.to_toml().unwrap()).unwrap();
    let tokenizer = TokenizerSource::File(dir.path().join("tokenizer.json"));
    fs::rename(model.join("tokenizer.json"), dir.path().join("tokenizer.json")).unwrap();
    fs::remove_dir_all(model).unwrap();
    let saved = SavedModel::open(&config.run.dir, Some(&tokenizer)).unwrap();
    let perplexity = perplexity(&saved, &dir.path().join("train.txt"));
    assert_eq!(perplexity.ln(), f64::from_bits(*evaluations(&story[0]).last().unwrap()).exp().ln());
}

pub(crate) fn perplexity(model: &SavedModel, text: &Path) -> f64 {
    let size = WindowSize::consecutive(40, 1);
    let corpus = model.read_text(text, size).unwrap();
    let mut pipeline = model.load(Vec::new()).unwrap();
    pipeline.evaluate(evaluation(&corpus, size, 0), || ()).unwrap().uncompressed
}

#[test]
fn a_folder_is_evaluated() {
    let dir = tempfile::tempdir().unwrap();
    let (text, expected) = sequence();
    fs::write(dir.path().join("text.txt"), text).unwrap();
    let model = SavedModel::open(&folder(MODEL), None).unwrap();
    assert_eq!((model.step(), model.sequence(), model.boundaries().unwrap().len()), (None, 128, 0));
    let found = perplexity(&model, &dir.path().join("text.txt")).ln();
    assert!((found - expected).abs() < 1e-5, "{found}, of transformers {expected}");
}

#[test]
fn a_text_begins_as_the_tokenizer_asks() {
    let dir = tempfile::tempdir().unwrap();
    let model = copy(dir.path());
    fs::write(model.join("tokenizer_config.json"), r#"{"bos_token": "@", "add_bos_token": true}"#).unwrap();
    let text = dir.path().join("text.txt");
    fs::write(&text, "ABC").unwrap();
    let size = WindowSize::consecutive(2, 1);
    let tokens = |model: &Path| {
        SavedModel::open(model, None).unwrap().read_text(&text, size).unwrap().tokens().to_vec()
    };
    assert_eq!(tokens(&model), [1, 2, 3, 4]);
    assert_eq!(tokens(&folder(MODEL)), [2, 3, 4]);
}

#[test]
fn stages_with_other_weights_refuse_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let model = copy(dir.path());
    let file = model.join("model.safetensors");
    let mut weights = fs::read(&file).unwrap();
    let end = weights.len() - 1;
    weights[end] ^= 1;
    fs::write(&file, weights).unwrap();
    let setup = |model: &Path| {
        let mut config = config(dir.path(), model, SPLITS[1]).unwrap();
        config.data.tokenizer = TokenizerSource::File(folder(MODEL).join("tokenizer.json"));
        Setup::load(config).unwrap()
    };
    let (one, other) = (setup(&folder(MODEL)), setup(&model));
    let ends = [one.link_config(0, 1, false).unwrap(), other.link_config(1, 0, false).unwrap()];
    let error = memory::pair(&ends[0], &ends[1]).err().unwrap().to_string();
    assert!(error.contains("weights"), "{error}");
}

#[test]
fn the_configuration_is_the_models() {
    let dir = tempfile::tempdir().unwrap();
    let whole = config(dir.path(), &folder(MODEL), &[]).unwrap();
    assert_eq!((whole.model.layers, whole.model.vocab, whole.model.kv_heads), (3, Some(64), Some(1)));
    assert_eq!(whole.data.tokenizer, TokenizerSource::File(folder(MODEL)));
    assert_eq!(config(dir.path(), &folder(MODEL), &["model.rope_theta=100000"]).unwrap(), whole);
    assert_eq!(Config::parse(&whole.to_toml().unwrap(), &[]).unwrap(), whole);
    for (value, expected) in [
        ("model.hidden=32", "model.hidden = 32: expected 16, as in "),
        ("model.family=qwen2", "model.family = \"qwen2\": expected \"llama\", as in "),
        ("model.rope_scaling={type='linear',factor=2.0}", "model.rope_scaling = { factor = 2.0, type = "),
        ("model.context=64", "model.context = 64: expected 128, as in "),
        ("model.pretrained=nowhere", "nowhere is no model: nothing; expected a Hugging Face folder"),
        ("model.pretrained=7", "model.pretrained: "),
        ("model.rank=7", "model.rank: unknown key"),
    ] {
        let error = config(dir.path(), &folder(MODEL), &[value]).unwrap_err();
        assert!(error.contains(expected), "{value}: {error}");
    }
}

#[test]
fn models_that_cannot_be_used_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let model = copy(dir.path());
    let open = || {
        let saved = SavedModel::open(&model, None).map_err(|error| thinwire_train::text::chain(&error));
        let setup = config(dir.path(), &model, &[])
            .and_then(|config| Setup::load(config).map_err(|error| thinwire_train::text::chain(&error)));
        [saved.map(drop), setup.map(drop)]
    };
    for opened in open() {
        opened.unwrap();
    }
    let edit = |name: &str, from: &str, to: &str, expected: &str| {
        let path = model.join(name);
        let whole = fs::read(&path).unwrap();
        let at = whole.windows(from.len()).position(|window| window == from.as_bytes()).unwrap();
        fs::write(&path, [&whole[..at], to.as_bytes(), &whole[at + from.len()..]].concat()).unwrap();
        for opened in open() {
            let error = opened.unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        fs::write(path, whole).unwrap();
    };
    edit("config.json", "\"hidden_size\": 16", "\"hidden_size\": 32", "shape of tensor");
    edit("config.json", "\"num_hidden_layers\": 3", "\"num_hidden_layers\": 4", "missing: model.layers.3.");
    edit("config.json", "\"silu\"", "\"gelu\"", "`hidden_act` is ");
    edit("model.safetensors", "model.norm.weight", "model.worm.weight", "missing: model.norm.weight");
    // A tokenizer of another model: an id that this one does not have.
    edit("tokenizer.json", "\"~\": 63", "\"~\": 64", "64");
}

#[test]
fn a_truncated_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let model = copy(dir.path());
    let file = model.join("model.safetensors");
    let whole = fs::read(&file).unwrap();
    for length in [0, 7, 100, whole.len() / 2, whole.len() - 1] {
        fs::write(&file, &whole[..length]).unwrap();
        let error = SavedModel::open(&model, None).unwrap_err();
        let error = thinwire_train::text::chain(&error);
        assert!(error.contains("model.safetensors"), "{length}: {error}");
    }
}

#[test]
fn a_models_path_names_its_tokenizer() {
    let dir = tempfile::tempdir().unwrap();
    let text = dir.path().join("text.txt");
    fs::write(&text, "ABC").unwrap();
    let file = Tokenizer::load(&TokenizerSource::File(folder(MODEL).join("tokenizer.json"))).unwrap();
    let saved = SavedModel::open(&folder(MODEL), Some(&TokenizerSource::File(folder(MODEL)))).unwrap();
    let tokens = saved.read_text(&text, WindowSize::consecutive(2, 1)).unwrap();
    assert_eq!(tokens.tokens(), Corpus::load(&text, &file).unwrap().tokens());
}

#[test]
fn a_run_is_not_written_into_its_model() {
    let dir = tempfile::tempdir().unwrap();
    let model = copy(dir.path());
    for place in [model.clone(), model.join("run")] {
        let set = format!("run.dir={:?}", place.display());
        let error = config(dir.path(), &model, &[&set]).unwrap_err();
        assert!(error.contains("expected a folder outside the one that model.pretrained names"), "{error}");
    }
}
