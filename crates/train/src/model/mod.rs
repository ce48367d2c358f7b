//! Decoder-only language models as a list of units: embedding, blocks, head.

mod architecture;
mod attention;
mod block;
mod cache;
mod embedding;
mod head;
mod init;
mod linear;
mod norm;
mod params;
mod unit;

pub use architecture::Architecture;
pub use cache::KvCache;
pub use head::token_losses;
pub use params::{GradientSums, Init, Leaves, Matrix, ParamSet, Parameter, Vector};
pub use unit::{Activation, Part};
