//! What 4-bit training is measured against.

mod eight_bit;
mod outliers;

pub use eight_bit::{EightBit, Rounding};
pub use outliers::Outliers;
