use super::finish::finish;
use super::{GradientSummary, check_shapes};
use crate::gemm::output::Scaled;
use crate::gemm::{Job, Operand, multiply};
use crate::leverage::{Kept, Sampling};
use crate::matrix::{check_len, elements};
use crate::quantize::Quantized;
use crate::random::Key;
use crate::split::{SplitGradient, row_norms};
use crate::{Int4Error, Isa};

/// `dx` `[N, D] = (step_W (dY codes_W) o unclamped_X) H`, from the split gradient `dY` `[N, C]`, the input `X` `[N, D]` and the
/// weight `W` `[C, D]`. Of the 2 N rows of the split gradient those are multiplied that `sampling` keeps, by the scores
/// `|row of dY|`; draws are those of `key`.
///
/// # Errors
/// [`Int4Error::Mismatch`] if shapes differ, [`Int4Error::TooDeep`], [`Int4Error::Length`].
pub fn input_gradient(
    isa: Isa,
    dy: &SplitGradient,
    x: &Quantized,
    w: &Quantized,
    (sampling, key): (Sampling, Key),
    dx: &mut [f32],
) -> Result<GradientSummary, Int4Error> {
    check_shapes(dy, x, w)?;
    let [rows, columns] = x.shape();
    check_len(
        "gradient of the input",
        &[rows, columns],
        dx.len(),
        elements("gradient of the input", &[rows, columns])?,
    )?;
    let norms = row_norms(isa, dy.codes()).into_iter().enumerate();
    let scores: Vec<f32> = norms.map(|(i, norm)| norm * dy.steps()[i / rows]).collect();
    let kept = Kept::choose(sampling, &scores, rows, key);

    // Upper rows come first.
    let uppers = kept.rows.partition_point(|&row| (row as usize) < rows);
    clear_others(dx, columns, &kept.rows[..uppers]);
    let output_rows: Vec<u32> = kept.rows.iter().map(|&row| row % rows as u32).collect();
    let weights: Vec<f32> = kept.weights.iter().map(|weight| weight.get()).collect();
    let scales = dy.steps().map(|step| w.scale() * step);
    let depth = w.shape()[0];
    let codes = Operand::from(dy.codes().view());
    let job = |part: usize, range: std::ops::Range<usize>| -> Result<_, Int4Error> {
        let output = Scaled { segments: &scales[part..=part], rows: &weights[range.clone()], add: part == 1 };
        let a = codes.select(&kept.rows[range.clone()])?;
        Ok(Job { a, segments: std::slice::from_ref(&depth), rows: Some(&output_rows[range]), output })
    };
    let jobs = [job(0, 0..uppers)?, job(1, uppers..kept.rows.len())?];
    multiply(isa, &jobs, Operand::from(w.codes().view()).transposed(), dx)?;
    Ok(GradientSummary { kept: kept.rows.len(), codes: finish(isa, dx, x) })
}

/// Zeros the rows that are not among `rows`, which ascend.
fn clear_others(values: &mut [f32], columns: usize, rows: &[u32]) {
    let mut rows = rows.iter().peekable();
    for (i, values) in values.chunks_exact_mut(columns.max(1)).enumerate() {
        if rows.next_if(|&&row| row as usize == i).is_none() {
            values.fill(0.0);
        }
    }
}
