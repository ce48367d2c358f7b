#![doc = include_str!("../README.md")]

mod error;
mod gemm;
mod isa;
mod matrix;
mod simd;

pub use error::Int4Error;
pub use gemm::{Operand, product, product_batched};
pub use isa::Isa;
pub use matrix::{Int4Matrix, Int4View, Int8View};
