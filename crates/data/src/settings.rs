//! How files become documents, and documents sequences.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What the files hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Told by the names of the files and the fields of the first record.
    #[default]
    Auto,
    /// Each file is one document.
    Text,
    /// JSON records, one a line or in one array, with a field of text: a document each.
    Jsonl,
    /// Parquet with a column of text: a document each row.
    Parquet,
    /// Conversations as a list of `{role, content}`, in JSON or Parquet.
    Messages,
    /// Conversations as a list of `{from, value}`, in JSON or Parquet.
    Sharegpt,
    /// One question and one answer in three columns, in JSON or Parquet.
    Alpaca,
}

/// How documents become the sequences of micro-batches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Packing {
    /// One stream of all documents, an end-of-text token between them, cut into full sequences.
    #[default]
    Full,
    /// A document never shares a sequence with another; short ones are padded to the longest of their micro-batch, and
    /// the padding is not trained on.
    Pad,
}

/// The columns of alpaca-style records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Columns {
    /// The task. Required in every record.
    pub instruction: String,
    /// What the task is about; may be absent or empty.
    pub input: String,
    /// The answer. Required in every record.
    pub output: String,
}

impl Default for Columns {
    fn default() -> Self {
        Self { instruction: "instruction".into(), input: "input".into(), output: "output".into() }
    }
}

/// Everything that says how files are read.
#[derive(Debug, Clone, PartialEq)]
pub struct DataSettings {
    /// What the files hold.
    pub format: Format,
    /// The field of the text or the conversation; by default `text`, `messages` or `conversations`.
    pub field: Option<String>,
    /// The columns of alpaca-style records.
    pub columns: Columns,
    /// How documents become sequences.
    pub packing: Packing,
    /// The token between documents; by default the tokenizer's own.
    pub end_of_text: Option<String>,
    /// The chat template: a Jinja file or a `tokenizer_config.json`; by default the one beside the `tokenizer.json`.
    pub template: Option<PathBuf>,
    /// What `strftime_now` in a chat template takes for today, `YYYY-MM-DD`: data must not change overnight.
    pub date: String,
    /// The share of records that may be damaged, from 0 to 1.
    pub damaged: f64,
}

/// What `strftime_now` takes for today unless the settings say otherwise: the date that Llama 3.2's template falls back to.
pub const DEFAULT_DATE: &str = "2024-07-26";

impl Default for DataSettings {
    fn default() -> Self {
        Self {
            format: Format::Auto,
            field: None,
            columns: Columns::default(),
            packing: Packing::Full,
            end_of_text: None,
            template: None,
            date: DEFAULT_DATE.to_owned(),
            damaged: 0.01,
        }
    }
}
