//! What can go wrong in an evaluation.

use std::io;
use std::path::PathBuf;

use thinwire_codec::{CodecError, DecodeError, EncodeError, SpecError};
use thinwire_collective::CollectiveError;

use crate::checkpoint::CheckpointError;
use crate::config::{ConfigError, LayerMapError};
use crate::data::DataError;
use crate::model::ShardError;
use crate::pretrained::TokenizerError;
use crate::run::{CHECKPOINTS, CONFIG_FILE, FindError};

/// Why there is no perplexity.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EvaluateError {
    /// The path leads to no model.
    #[error(
        "{} is no model: expected a run's folder (with {CONFIG_FILE} or {CHECKPOINTS}/ in it), a checkpoint (a folder \
         named as step-00000100), a Hugging Face folder (with config.json in it) or a .gguf file", path.display()
    )]
    NoModel {
        /// The path given.
        path: PathBuf,
    },
    /// The checkpoint cannot be found or read.
    #[error(transparent)]
    Find(FindError),
    /// A model of others cannot be opened or read.
    #[error(transparent)]
    Pretrained(#[from] thinwire_pretrained::Error),
    /// A model of others has sizes that none can have.
    #[error("the model's configuration")]
    Model(#[from] ConfigError),
    /// The model that the adapters are for cannot be read.
    #[error("cannot read the weights in {}", path.display())]
    Base {
        /// The model.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Nothing says which model the adapters are for.
    #[error(
        "the checkpoint has adapters alone, and no run's {CONFIG_FILE} says which model they are for: it stands in the \
         folder of the run, around {CHECKPOINTS}/"
    )]
    NoBase,
    /// The weights cannot be read.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The tokenizer.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// The text.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A codec whose settings do not fit.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The checkpoint's stages do not partition its model.
    #[error("the checkpoint's layer map")]
    LayerMap(#[source] LayerMapError),
    /// There is no such boundary.
    #[error(
        "boundary {before} does not exist: expected 0 (behind the embedding) to {layers} (in front of the head)"
    )]
    NoSuchBoundary {
        /// The boundary asked for.
        before: usize,
        /// Blocks of the model.
        layers: usize,
    },
    /// A boundary is named twice.
    #[error("boundary {before} is named twice")]
    DoubledBoundary {
        /// The boundary.
        before: usize,
    },
    /// Nothing says which codec the boundaries have.
    #[error("no run's thinwire.toml says which codec the boundaries have: choose one with --codec")]
    NoCodec,
    /// Nothing says where the tokenizer is.
    #[error(
        "the model needs `{id}`, and the run's thinwire.toml is not there: name the file with --tokenizer"
    )]
    NoTokenizer {
        /// The tokenizer that the model was trained with.
        id: String,
    },
    /// The tokenizer is another one than in training.
    #[error("the model was trained with `{expected}`, this is `{found}`")]
    OtherTokenizer {
        /// The tokenizer of training.
        expected: String,
        /// The one at hand.
        found: String,
    },
    /// The tokenizer has ids that the model does not have.
    #[error("the tokenizer has {tokenizer} ids, the model only {vocab}")]
    Vocabulary {
        /// Ids of the model.
        vocab: usize,
        /// Ids of the tokenizer.
        tokenizer: usize,
    },
    /// Sequences are longer than the model can take.
    #[error("sequences of {sequence} tokens: the model takes at most {context}")]
    Sequence {
        /// Tokens asked for.
        sequence: usize,
        /// The model's context.
        context: usize,
    },
    /// Windows of a text that leave tokens out between them.
    #[error("a stride of {stride} tokens: expected 1 to {sequence}, the length of a sequence")]
    Stride {
        /// Tokens from one window to the next.
        stride: usize,
        /// Tokens in a window.
        sequence: usize,
    },
    /// An activation that the codec refuses: a value that is not finite.
    #[error("boundary {before}: cannot encode the activation of micro-batch {micro_batch}")]
    Encode {
        /// The boundary.
        before: usize,
        /// The micro-batch, from 0.
        micro_batch: usize,
        /// What the codec says.
        source: EncodeError,
    },
    /// A message that its own codec refuses.
    #[error("boundary {before}: cannot decode the activation of micro-batch {micro_batch}")]
    Decode {
        /// The boundary.
        before: usize,
        /// The micro-batch, from 0.
        micro_batch: usize,
        /// What the codec says.
        source: DecodeError,
    },
    /// A shape that the codec cannot take.
    #[error("boundary {before}")]
    Shape {
        /// The boundary.
        before: usize,
        /// What the codec says.
        source: CodecError,
    },
    /// The ranks asked for cannot share the model.
    #[error(transparent)]
    Shard(#[from] ShardError),
    /// The ranks that share the model cannot add up.
    #[error("the ranks that share the model cannot add up")]
    Collective(#[from] CollectiveError),
    /// A loss that is not finite, or too large for a perplexity.
    #[error("the loss of micro-batch {micro_batch} is {loss} nats a token: there is no perplexity")]
    Loss {
        /// The micro-batch, from 0.
        micro_batch: usize,
        /// Mean over its tokens.
        loss: f64,
    },
}

impl From<FindError> for EvaluateError {
    fn from(error: FindError) -> Self {
        match error {
            FindError::Other { path } => Self::NoModel { path },
            error => Self::Find(error),
        }
    }
}
