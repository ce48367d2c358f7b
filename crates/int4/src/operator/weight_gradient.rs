use super::finish::finish;
use super::{GradientSummary, check_shapes};
use crate::gemm::output::Scaled;
use crate::gemm::{Job, Operand, multiply};
use crate::leverage::{Kept, Sampling, Weight};
use crate::matrix::{check_len, elements};
use crate::quantize::Quantized;
use crate::random::Key;
use crate::split::{SplitGradient, row_norms};
use crate::{Int4Error, Isa};

/// `dw` `[C, D] = (step_X (dY^T codes_X) o unclamped_W) H`, from the split gradient `dY` `[N, C]`, the input `X` `[N, D]` and
/// the weight `W` `[C, D]`. Of the 2 N rows of the split gradient those are multiplied that `sampling` keeps, by the scores
/// `|row of dY| |row of X|`; draws are those of `key`.
///
/// # Errors
/// [`Int4Error::Mismatch`] if shapes differ, [`Int4Error::TooDeep`], [`Int4Error::Length`].
pub fn weight_gradient(
    isa: Isa,
    dy: &SplitGradient,
    x: &Quantized,
    w: &Quantized,
    (sampling, key): (Sampling, Key),
    dw: &mut [f32],
) -> Result<GradientSummary, Int4Error> {
    check_shapes(dy, x, w)?;
    check_len(
        "gradient of the weight",
        &w.shape(),
        dw.len(),
        elements("gradient of the weight", &w.shape())?,
    )?;
    let rows = x.shape()[0];
    let kept = Kept::choose(sampling, &scores(isa, dy, x), rows, key);
    let segments = Segments::new(&kept, rows);
    let scales: Vec<f32> =
        segments.scales.iter().map(|&(part, scale)| x.scale() * dy.steps()[part] * scale).collect();

    let mut a = Operand::from(dy.codes().view()).select(&segments.gradient_rows)?;
    if let Some(multipliers) = &segments.multipliers {
        a = a.multiply_rows(multipliers)?;
    }
    let b = Operand::from(x.codes().view()).select(&segments.input_rows)?.transposed();
    let output = Scaled { segments: &scales, rows: &[], add: false };
    let job = Job { a: a.transposed(), segments: &segments.lengths, rows: None, output };
    multiply(isa, &[job], b, dw)?;
    Ok(GradientSummary { kept: kept.rows.len(), codes: finish(isa, dw, w) })
}

/// `|row of dY| |row of X|` of the rows of the split gradient.
fn scores(isa: Isa, dy: &SplitGradient, x: &Quantized) -> Vec<f32> {
    let inputs = row_norms(isa, x.codes());
    let rows = inputs.len();
    let gradients = row_norms(isa, dy.codes()).into_iter().enumerate();
    gradients.map(|(i, norm)| norm * dy.steps()[i / rows] * inputs[i % rows]).collect()
}

/// Kept rows in an order in which those with a scale in common are neighbours.
struct Segments {
    gradient_rows: Vec<u32>,
    input_rows: Vec<u32>,
    /// None if all are 1.
    multipliers: Option<Vec<u8>>,
    lengths: Vec<usize>,
    /// Of each segment, whether it is of the upper (0) or lower (1) matrix, and the scale of its weights.
    scales: Vec<(usize, f32)>,
}

impl Segments {
    /// `rows` is how many the gradient has; the others are of the lower matrix.
    fn new(kept: &Kept, rows: usize) -> Self {
        let whole = kept.weights.iter().all(|&weight| weight == Weight::ONE);
        let unit = if whole { 1.0 } else { 8.0 };
        let part = |row: u32| row as usize / rows;
        let mut order: Vec<(u32, Weight)> =
            kept.rows.iter().copied().zip(kept.weights.iter().copied()).collect();
        order.sort_unstable_by_key(|&(row, weight)| (part(row), weight.exponent, row));
        let runs = order.chunk_by(|a, b| part(a.0) == part(b.0) && a.1.exponent == b.1.exponent);
        let (mut lengths, mut scales): (Vec<_>, Vec<_>) =
            runs.map(|run| (run.len(), (part(run[0].0), run[0].1.power() / unit))).unzip();
        if lengths.is_empty() {
            (lengths, scales) = (vec![0], vec![(0, 1.0)]);
        }
        Self {
            gradient_rows: order.iter().map(|&(row, _)| row).collect(),
            input_rows: order.iter().map(|&(row, _)| row % rows as u32).collect(),
            multipliers: (!whole).then(|| order.iter().map(|(_, weight)| weight.eighths).collect()),
            lengths,
            scales,
        }
    }
}
