//! `[data]`

use std::path::{Path, PathBuf};

use serde::de::{SeqAccess, Visitor, value::SeqAccessDeserializer};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thinwire_data::{Columns, DEFAULT_DATE, DataSettings, Format, Packing, TokenizerSource};

use super::error::{ConfigError, require};
use super::paths::join;
use super::text;

/// The texts or conversations, the tokenizer, and what becomes of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DataConfig {
    /// The training data: a file, a folder, a pattern such as `"part-*.parquet"`, or a list of these. Required.
    pub train: Sources,
    /// The held-out data for evaluation, read in the same way. Default: none, and nothing is evaluated.
    #[serde(default)]
    pub heldout: Option<Sources>,
    /// `"byte"`, or the path of a `tokenizer.json`, of a model's folder, or of a `.gguf` file. Default `"byte"`.
    #[serde(default, with = "text")]
    pub tokenizer: TokenizerSource,
    /// What the files hold: `"auto"`, `"text"`, `"jsonl"`, `"parquet"`, `"messages"`, `"sharegpt"` or `"alpaca"`.
    /// Default `"auto"`: by the files' names and the first record's fields.
    #[serde(default)]
    pub format: Format,
    /// The field of the text or the conversation. Default `text`, `messages` or `conversations`, by the format.
    #[serde(default)]
    pub field: Option<String>,
    /// The names of alpaca-style columns. Default `instruction`, `input`, `output`.
    #[serde(default = "defaults::columns")]
    pub columns: [String; 3],
    /// `"full"` sequences of many documents, or one document in a sequence and the rest padding (`"pad"`). Default
    /// `"full"`.
    #[serde(default)]
    pub packing: Packing,
    /// The token between documents. Default: the tokenizer's own.
    #[serde(default)]
    pub end_of_text: Option<String>,
    /// The chat template: a Jinja file or a `tokenizer_config.json`. Default: the one beside the tokenizer.
    #[serde(default)]
    pub template: Option<PathBuf>,
    /// What a chat template that asks takes for today, so that the data is the same tomorrow. Default `"2024-07-26"`.
    #[serde(default = "defaults::date")]
    pub date: String,
    /// The share of records that may be damaged. They are left out, counted and named. Default 0.01.
    #[serde(default = "defaults::damaged")]
    pub damaged: f64,
    /// Where tokenized data is kept, so that it is made only once. Default: `tokens` in `run.dir`, and only for data of
    /// more than 16 MiB; less is tokenized at every start.
    #[serde(default)]
    pub cache: Option<PathBuf>,
}

mod defaults {
    pub(super) fn columns() -> [String; 3] {
        let super::Columns { instruction, input, output } = super::Columns::default();
        [instruction, input, output]
    }
    pub(super) fn date() -> String {
        super::DEFAULT_DATE.to_owned()
    }
    pub(super) fn damaged() -> f64 {
        super::DataSettings::default().damaged
    }
}

impl DataConfig {
    /// How the files are read.
    pub fn settings(&self) -> DataSettings {
        let [instruction, input, output] = self.columns.clone();
        DataSettings {
            format: self.format,
            field: self.field.clone(),
            columns: Columns { instruction, input, output },
            packing: self.packing,
            end_of_text: self.end_of_text.clone(),
            template: self.template.clone(),
            date: self.date.clone(),
            damaged: self.damaged,
        }
    }

    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        let named = !self.train.0.is_empty();
        require(named, "data.train", "[]", "a file, folder or pattern, or a list of these")?;
        let named = self.heldout.as_ref().is_none_or(|heldout| !heldout.0.is_empty());
        require(named, "data.heldout", "[]", "a file, folder or pattern, or a list of these")?;
        require((0.0..=1.0).contains(&self.damaged), "data.damaged", self.damaged, "a share from 0 to 1")
    }

    /// Makes relative paths relative to `folder`.
    pub(super) fn resolve(&mut self, folder: &Path) {
        let paths = self.train.0.iter_mut().chain(self.heldout.iter_mut().flat_map(|heldout| &mut heldout.0));
        for path in paths.chain(&mut self.template).chain(&mut self.cache) {
            *path = join(folder, path);
        }
        if let TokenizerSource::File(path) = &mut self.tokenizer {
            *path = join(folder, path);
        }
    }
}

/// Files, folders and patterns: a path, or a list of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sources(pub Vec<PathBuf>);

impl Serialize for Sources {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0[..] {
            [path] => path.serialize(serializer),
            paths => paths.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Sources {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMany;
        impl<'de> Visitor<'de> for OneOrMany {
            type Value = Sources;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a path or a list of paths")
            }

            fn visit_str<E>(self, path: &str) -> Result<Sources, E> {
                Ok(Sources(vec![path.into()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, paths: A) -> Result<Sources, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(paths)).map(Sources)
            }
        }
        deserializer.deserialize_any(OneOrMany)
    }
}
