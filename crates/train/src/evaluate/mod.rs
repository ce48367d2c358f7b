//! Perplexity of a text with the activations at the boundaries compressed, as in a pipeline, and without.
//!
//! Everything happens in one process: the model is cut into parts, and what leaves a part is encoded and decoded by the
//! boundary's codec before it enters the next, so the result is that of stages with links between them, bit for bit. Ranks that
//! share a model are threads, and add up as they would over links.

mod base;
mod boundary;
mod error;
mod model;
mod perplexity;
mod ranks;
mod sharing;

pub use boundary::Boundary;
pub use error::EvaluateError;
pub use model::SavedModel;
pub(crate) use model::Source;
pub use perplexity::{Perplexity, Pipeline};
pub use sharing::Sharing;
