//! Text to micro-batches: tokenizers, corpora, and the order in which windows of them are trained on.
//!
//! What a step trains on is a function of the text, the settings, the seed and the step's number alone, so
//! every stage can work it out for itself and a resumed run needs no replay.

mod batches;
mod corpus;
mod error;
mod hash;
mod micro_batch;
mod shuffle;
mod tokenizer;
mod tokenizer_source;
mod windows;

pub use batches::{BatchSize, Batches, evaluation};
pub use corpus::Corpus;
pub use error::{DataError, TokenizeError};
pub use micro_batch::MicroBatch;
pub use tokenizer::Tokenizer;
pub use tokenizer_source::TokenizerSource;
