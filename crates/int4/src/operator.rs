//! The three products of a linear layer (paper, sections 3.3 and 4.2).

#![expect(clippy::inline_always, reason = "kernels are compiled inside each instruction set's entry")]

mod finish;
mod forward;
mod input_gradient;
mod weight_gradient;

pub use forward::forward;
pub use input_gradient::input_gradient;
pub use weight_gradient::weight_gradient;

use crate::Int4Error;
use crate::matrix::check_equal;
use crate::quantize::Quantized;
use crate::split::SplitGradient;

/// What a gradient's product tells besides the gradient.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GradientSummary {
    /// Rows of the split gradient that took part, of twice as many as the gradient has.
    pub kept: usize,
    /// The sum of the gradient with respect to the quantized matrix, clamped elements included, times the codes: what
    /// [`Step::gradient`](crate::Step::gradient) takes.
    pub codes: f64,
}

/// Whether the shapes of `dY` `[N, C]`, `X` `[N, D]` and `W` `[C, D]` agree.
fn check_shapes(dy: &SplitGradient, x: &Quantized, w: &Quantized) -> Result<(), Int4Error> {
    check_equal("rows of the gradient and the input", dy.shape()[0], x.shape()[0])?;
    check_equal("columns of the gradient and rows of the weight", dy.shape()[1], w.shape()[0])?;
    check_equal("columns of the input and the weight", x.shape()[1], w.shape()[1])
}
