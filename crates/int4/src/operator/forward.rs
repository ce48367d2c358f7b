use crate::gemm::scaled_product;
use crate::matrix::check_equal;
use crate::quantize::Quantized;
use crate::{Int4Error, Isa};

/// `y` `[N, C] = X W^T` from the 4-bit `X` `[N, D]` and `W` `[C, D]`, both transformed in the same blocks, which cancel out:
/// `y = step_X step_W (codes_X codes_W^T)`, the product in integers. NaN throughout if an operand was not finite.
///
/// # Errors
/// [`Int4Error::Mismatch`] if columns or blocks differ, [`Int4Error::TooDeep`], [`Int4Error::Length`].
pub fn forward(isa: Isa, x: &Quantized, w: &Quantized, y: &mut [f32]) -> Result<(), Int4Error> {
    check_equal("columns of the input and the weight", x.shape()[1], w.shape()[1])?;
    check_equal("Hadamard blocks of the input and the weight", x.block().size(), w.block().size())?;
    let scale = x.scale() * w.scale();
    scaled_product(isa, x.codes().view().into(), w.codes().view().into(), scale, y)
}
