//! What can be wrong with a text or a tokenizer.

use std::io;
use std::path::PathBuf;
use std::str::Utf8Error;

use crate::Damage;

/// Why a text or a tokenizer cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// A file could not be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not in the `tokenizer.json` format.
    #[error("{} is not a usable tokenizer.json", path.display())]
    Tokenizer {
        /// The file.
        path: PathBuf,
        /// What the tokenizers library said.
        source: tokenizers::Error,
    },
    /// The text could not be tokenized.
    #[error("cannot tokenize {}", path.display())]
    Text {
        /// The text.
        path: PathBuf,
        /// Why not.
        source: TokenizeError,
    },
    /// A folder or pattern names nothing.
    #[error("{} names no files (of a folder, those ending in {extensions} are read)", path.display())]
    NoFiles {
        /// The folder or pattern.
        path: PathBuf,
        /// What is read of a folder.
        extensions: String,
    },
    /// A pattern that cannot be matched.
    #[error("{} is not a file, and cannot be a pattern", path.display())]
    Pattern {
        /// The pattern.
        path: PathBuf,
        /// What is wrong with it.
        source: glob::PatternError,
    },
    /// A Parquet file that cannot be read.
    #[error("{} is not a usable Parquet file", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// What the parquet library said.
        source: parquet::errors::ParquetError,
    },
    /// A file in which no record can be read.
    #[error("{} holds no record that can be read", path.display())]
    NoRecords {
        /// The file.
        path: PathBuf,
    },
    /// Records with none of the known fields.
    #[error(
        "{}: the first record has neither messages, conversations, instruction and output, nor text: set data.format \
         and data.field", path.display()
    )]
    UnknownRecords {
        /// The file.
        path: PathBuf,
    },
    /// More damaged records than the settings allow.
    #[error("{damage}: more than data.damaged = {allowed}")]
    Damaged {
        /// How many, and which.
        damage: Damage,
        /// The share that is allowed.
        allowed: f64,
    },
    /// Documents that nothing can stand between.
    #[error(
        "the tokenizer has no token `{token}` to end a text with: set data.end_of_text to one that it has"
    )]
    EndOfText {
        /// The token asked for, or those that are known.
        token: String,
    },
    /// Conversations without a template.
    #[error(
        "conversations need the model's chat template, and {} has none (chat_template.jinja, chat_template in a \
         tokenizer_config.json, or tokenizer.chat_template in a GGUF file); a run names one in data.template",
        model.as_ref().map_or("the byte tokenizer".into(), |path| path.to_string_lossy())
    )]
    NoTemplate {
        /// Where it was looked for.
        model: Option<PathBuf>,
    },
    /// A chat template that cannot be used.
    #[error("{}: not a usable chat template", path.display())]
    Template {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: TemplateError,
    },
    /// A conversation that the chat template does not take.
    #[error("{reason}")]
    Conversation {
        /// What the template says.
        reason: String,
    },
    /// The date for chat templates.
    #[error("data.date = {date}: expected YYYY-MM-DD")]
    Date {
        /// The text found.
        date: String,
    },
    /// The tokenized data could not be written or read.
    #[error("cannot use the tokenized data in {}", path.display())]
    Cache {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A message that cannot be tokenized.
    #[error("the message")]
    Message(#[source] TokenizeError),
    /// The text has too few tokens to predict one from another.
    #[error("{} holds {tokens} tokens; at least 2 are needed", path.display())]
    TooShort {
        /// The text.
        path: PathBuf,
        /// How many it holds.
        tokens: u64,
    },
    /// Nothing to train on.
    #[error("{} holds no document with a token to train on", path.display())]
    NothingTrained {
        /// The first file.
        path: PathBuf,
    },
}

/// Why a chat template cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// The file is not the JSON of a tokenizer's settings.
    #[error("not valid JSON")]
    Json(#[source] serde_json::Error),
    /// The settings have no template.
    #[error("there is no chat_template in it")]
    Missing,
    /// The template itself.
    #[error("the template")]
    Jinja(#[source] minijinja::Error),
}

/// Why a tokenizer could not turn text into token ids or back.
#[derive(Debug, thiserror::Error)]
pub enum TokenizeError {
    /// The text is not UTF-8, which a `tokenizer.json` needs.
    #[error("not UTF-8 text")]
    NotUtf8(#[source] Utf8Error),
    /// An id outside the vocabulary.
    #[error("token {id} is not in the vocabulary of {vocab_size}")]
    UnknownToken {
        /// The id.
        id: u32,
        /// The vocabulary's size.
        vocab_size: usize,
    },
    /// The tokenizer failed.
    #[error("the tokenizer failed")]
    Tokenizer(#[source] tokenizers::Error),
}
