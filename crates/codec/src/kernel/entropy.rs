//! The entropy of an allocation tile (TAH-Quant, equations 1 and 2, with the minus sign that makes even tiles high).

mod portable;

/// `epsilon` of equation 1 and `varsigma` of equation 2. The tile was scaled by the message scale.
const EPSILON: f32 = 1e-12;

/// `H = - sum p_k ln(p_k + 1e-12)` with `p_k = |a_k| / (sum |a| + 1e-12)`.
///
/// The quotient is `|a_k| * (1 / (sum + 1e-12))`. Both sums run over 16 lanes, element `i` in lane `i % 16`,
/// starting from 0 and in the order of the elements; then lane `j` takes lane `j + 8`, then `j + 4`, `j + 2` and
/// `j + 1`. The sum of `p ln(p + 1e-12)` is subtracted from 0.
pub(crate) fn entropy(tile: &[f32]) -> f32 {
    portable::entropy(tile)
}
