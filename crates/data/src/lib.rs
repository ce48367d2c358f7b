//! Texts and conversations to micro-batches of token ids.
//!
//! Files ([`Format`]) become documents, documents tokens ([`Dataset`], on disk when there are many), tokens sequences
//! ([`Packing`]), and sequences the micro-batches of each step ([`Batches`]). What a step trains on is a function of the
//! files, the settings, the seed and the step's number alone, so every stage can work it out for itself and a resumed run
//! needs no replay.

mod batches;
mod cache;
mod chat;
mod conversation;
mod corpus;
mod damage;
mod dataset;
mod encoder;
mod entry;
mod error;
pub mod hash;
mod micro_batch;
mod rows;
mod settings;
mod shuffle;
mod source;
mod store;
mod template;
mod tokenizer;
mod tokenizer_source;
mod windows;

pub use batches::{BatchSize, Batches, evaluation};
pub use chat::ChatPrompt;
pub use corpus::Corpus;
pub use damage::Damage;
pub use dataset::{Cache, Dataset, Progress, Summary};
pub use error::{DataError, TemplateError, TokenizeError};
pub use micro_batch::MicroBatch;
pub use settings::{Columns, DEFAULT_DATE, DataSettings, Format, Packing};
pub use source::require_files;
pub use tokenizer::{ModelTexts, Tokenizer};
pub use tokenizer_source::TokenizerSource;
pub use windows::WindowSize;
