//! What can end a run.

use std::io;
use std::path::PathBuf;

use rayon::ThreadPoolBuildError;
use thinwire_codec::{AqsgdSettings, CodecSpec, SpecError};
use thinwire_collective::CollectiveError;
use thinwire_link::TermsError;

use crate::checkpoint::CheckpointError;
use crate::config::{ByteSize, ConfigError};
use crate::data::DataError;
use crate::model::ShardError;
use crate::pipeline::PipelineError;
use crate::plan::{PlanError, TrafficError};
use crate::pretrained::TokenizerError;

/// Why a stage could not start or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The tokenizer.
    #[error("data.tokenizer of the configuration cannot be used")]
    Tokenizer(#[source] TokenizerError),
    /// A text.
    #[error("{key} of the configuration cannot be used")]
    Data {
        /// The setting that names it, dotted.
        key: &'static str,
        /// What is wrong.
        source: DataError,
    },
    /// The model that training starts from.
    #[error(transparent)]
    Pretrained(#[from] thinwire_pretrained::Error),
    /// The weights of the model that training starts from.
    #[error("cannot read the weights in {}", path.display())]
    Weights {
        /// The model.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A codec whose settings do not fit.
    #[error("a codec of the configuration cannot be used")]
    Codec(#[from] SpecError),
    /// The samples are more than a codec may remember.
    #[error(
        "the boundary in front of block {before}: {settings} would remember {samples} samples of {tokens} tokens, \
         {needed} at either end, and pipeline.memory.limit is {limit}: raise it, keep bf16, or choose another codec"
    )]
    Memory {
        /// The boundary.
        before: usize,
        /// Its codec.
        settings: AqsgdSettings,
        /// Samples of the training and the held-out data.
        samples: u64,
        /// Tokens of the longest.
        tokens: u64,
        /// Bytes of all of them.
        needed: ByteSize,
        /// Bytes that may be kept.
        limit: ByteSize,
    },
    /// There is no place for a codec's memory.
    #[error("cannot create the file in {} that a codec remembers samples in", folder.display())]
    MemoryFile {
        /// Its folder.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A codec whose messages depend on those before.
    #[error(
        "the boundary in front of block {before} has {codec}, whose messages depend on the visits before: gradients are \
         compared with codecs that remember nothing"
    )]
    Remembers {
        /// The boundary.
        before: usize,
        /// Its codec.
        codec: CodecSpec,
    },
    /// A tied matrix that is too large for its codec.
    #[error("pipeline.tied of the configuration cannot be used")]
    Tied(#[from] TrafficError),
    /// Two stages' settings cannot be compared.
    #[error(transparent)]
    Terms(#[from] TermsError),
    /// The automatic layer map is for the local launcher.
    #[error(
        "pipeline.layers = \"auto\" is measured by `thinwire train`, which starts all stages on one machine; stages \
         started by hand need the map written out"
    )]
    NoLayerMap,
    /// The model cannot be split as asked.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The model cannot be shared by so many ranks.
    #[error("tensor_parallel.ranks of the configuration cannot be used")]
    Ranks(#[from] ShardError),
    /// The ranks of a stage cannot meet.
    #[error("the ranks of a stage cannot be joined")]
    Group(#[from] CollectiveError),
    /// Gradients are compared over boundaries alone.
    #[error(
        "tensor_parallel.ranks = {ranks}: gradients are compared with stages of one rank, so that boundaries alone make them differ"
    )]
    ChainOfRanks {
        /// Ranks in the configuration.
        ranks: usize,
    },
    /// There are no threads to measure with.
    #[error("cannot start the threads to measure with")]
    Threads(#[from] ThreadPoolBuildError),
    /// There is no such stage.
    #[error("stage {stage} does not exist: pipeline.stages = {stages}, counted from 0")]
    NoSuchStage {
        /// The stage asked for.
        stage: usize,
        /// Stages in the configuration.
        stages: usize,
    },
    /// A checkpoint could not be written or read.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// No checkpoint that all stages have.
    #[error("there is no checkpoint in {folder} that all stages have complete; start anew with --overwrite")]
    NothingToResume {
        /// This stage's folder.
        folder: String,
    },
    /// The pipeline.
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
    /// What happens could not be recorded.
    #[error("cannot record what happens")]
    Events(#[source] Box<dyn std::error::Error + Send + Sync>),
}
