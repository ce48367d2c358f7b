//! Text from a prompt, token by token, through the parts of a model with compressed activations between them.
//!
//! As in an evaluation everything happens in one process: what leaves a part passes the boundary's codec before it
//! enters the next, the prompt as one message and every further token as one of its own.

mod error;
mod generation;
mod sampler;
mod session;
mod text;

pub use error::GenerateError;
pub use generation::{End, Generation, Request, Statistics};
pub use sampler::{Sampler, Sampling};
pub use session::Session;
pub use text::TextStream;
