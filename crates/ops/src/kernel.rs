//! The loops, over plain slices. Vector code is written once over [`pulp::Simd`] and compiled for each instruction set
//! that `pulp` knows; the set is chosen at run time. Work is cut into pieces of fixed sizes, whatever the number of
//! threads that share them.

#![expect(
    clippy::inline_always,
    reason = "a function that is not inlined is compiled without its instructions"
)]

pub(crate) mod activation;
pub(crate) mod adamw;
pub(crate) mod attention;
pub(crate) mod columns;
pub(crate) mod cross_entropy;
pub(crate) mod embedding;
pub(crate) mod lanes;
pub(crate) mod norm;
pub(crate) mod product;
pub(crate) mod rotary;
pub(crate) mod rows;
pub(crate) mod sum;
