#![doc = include_str!("../README.md")]

mod baseline;
mod bits;
mod error;
mod gemm;
mod hadamard;
mod isa;
mod leverage;
mod lsq;
mod matrix;
mod operator;
mod quantize;
mod random;
mod rows;
mod simd;
mod split;

pub use baseline::{EightBit, Outliers, Rounding};
pub use bits::BitMatrix;
pub use error::Int4Error;
pub use gemm::{Operand, product, product_batched, scaled_product};
pub use hadamard::{Block, hadamard};
pub use isa::Isa;
pub use leverage::{Sampling, drawn_probability, probabilities};
pub use lsq::{BlockChoice, Step, mean_squared_error, search_block};
pub use matrix::{Int4Matrix, Int4View, Int8View};
pub use operator::{GradientSummary, forward, input_gradient, weight_gradient};
pub use quantize::Quantized;
pub use random::Key;
pub use split::SplitGradient;
