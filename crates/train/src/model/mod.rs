//! Decoder-only language models as a list of units: embedding, blocks, head.

mod architecture;
mod attention;
mod block;
mod cache;
mod embedding;
mod head;
mod init;
mod leaves;
mod linear;
mod lora;
mod norm;
mod params;
mod shard;
mod slice;
mod unit;

pub use architecture::Architecture;
pub use cache::KvCache;
pub use head::token_losses;
pub use leaves::{GradientSums, Leaves};
pub use lora::Lora;
pub(crate) use lora::names as lora_names;
pub use params::{Init, Matrix, ParamSet, Parameter, Vector};
pub use shard::{Shard, ShardError};
pub use slice::Slice;
pub use unit::{Activation, Part, Start};
