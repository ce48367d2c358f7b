//! The pipeline: stages that exchange compressed activations and gradients.

mod chain;
mod compute;
mod engine;
mod error;
mod exchange;
mod frames;
mod inbox;
mod meter;
mod neighbor;
mod pass;
mod schedule;
mod step;
mod stop;
mod team;
mod tied;

pub use chain::{Chain, ChainStage, Crossing, StepGradient, Wire};
pub use compute::{Compute, Extended, Forwarded, HostTensor};
pub use engine::{Attachment, Engine, EngineSettings, Evaluation};
pub use error::PipelineError;
pub use frames::{Content, FrameKey};
pub use neighbor::{Codecs, Terms};
pub use schedule::{Action, actions};
pub use step::StepReport;
pub use stop::Stop;
pub use team::Team;
pub(crate) use team::groups;
pub use tied::Gradients;
