//! Fused operators of language models with their own backward passes, for Burn's `flex` backend (CPU).
//!
//! Activations and the weights of linear layers may be `f32` or `bf16`. All arithmetic is in `f32`: what is `bf16` is
//! converted on the way in, kept as it came for the backward pass, and rounded on the way out.
//!
//! Each operator is one node of the autodiff graph. It keeps only what its backward pass needs (a norm keeps one number
//! a row, attention two of its inputs' size and one number a row and head) and writes its results in one pass, in place where
//! Burn shares the storage with nobody else.
//!
//! Every sum has an order that depends on shapes alone: the results are the same to the bit with any number of threads.
//! They differ in the last bits between instruction sets, because vectors of other widths sum in other orders.
//!
//! Arguments are those of an internal operator: shapes that do not fit each other panic with both shapes named. Values
//! that are not finite pass through to the results.

mod activation;
mod adamw;
mod attention;
mod cross_entropy;
mod embedding;
mod extension;
mod gradient_sum;
mod host;
mod kernel;
mod linear;
mod norm;
pub mod profile;
mod rotary;
mod tensor;

pub use activation::{gelu_tanh, swiglu};
pub use adamw::{AdamWStep, Moments, adamw, square_norm};
pub use attention::{AttentionShape, attention};
pub use cross_entropy::{cross_entropy, cross_entropy_of_columns};
pub use embedding::embedding;
pub use gradient_sum::GradientSum;
pub use host::{HostFn, on_host};
pub use linear::{WeightLayout, linear};
pub use norm::{layer_norm, rms_norm};
pub use rotary::{RotaryTable, rotary};
