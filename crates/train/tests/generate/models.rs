//! The models of `tests/fixtures/families` as pipelines, and what `make_continuations.py` wrote about them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use thinwire_train::config::TokenizerSource;
use thinwire_train::evaluate::{Boundary, Pipeline, SavedModel};

use crate::fixture::folder;

/// One for each family, with and without grouped heads.
pub(crate) const MODELS: [&str; 7] =
    ["gpt2", "llama2", "llama2-linear", "llama3", "qwen2", "qwen3", "smollm2"];

/// Opens a model; all have as many ids as the one tokenizer.
pub(crate) fn open(model: &str) -> SavedModel {
    let tokenizer = TokenizerSource::File(folder("smollm2").join("tokenizer.json"));
    SavedModel::open(&folder(model), Some(&tokenizer)).unwrap()
}

/// `model` cut at `places`, with the codec `codec` there.
pub(crate) fn pipeline(model: &SavedModel, places: &[usize], codec: &str) -> Pipeline {
    let codec = codec.parse().unwrap();
    model.load(places.iter().map(|&before| Boundary::new(before, &codec).unwrap()).collect()).unwrap()
}

/// One prompt and what `transformers` makes of it.
#[derive(Debug, Deserialize)]
pub(crate) struct Continuation {
    pub(crate) prompt: Vec<u32>,
    /// With the end of the text, if it came.
    pub(crate) greedy: Vec<u32>,
    /// Smallest distance of the two largest logits on the way.
    pub(crate) margin: f32,
    pub(crate) choices: Vec<Choice>,
    #[serde(default)]
    pub(crate) text: String,
    #[serde(default)]
    pub(crate) greedy_text: String,
}

/// A text that might follow, and how likely it is.
#[derive(Debug, Deserialize)]
pub(crate) struct Choice {
    pub(crate) ids: Vec<u32>,
    pub(crate) log_likelihood: f64,
}

pub(crate) fn continuations(model: &str) -> Vec<Continuation> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/continuations.json");
    let mut models: BTreeMap<String, Vec<Continuation>> =
        serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    models.remove(model).unwrap()
}
