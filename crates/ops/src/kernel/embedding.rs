//! Rows of a matrix by their numbers.

use pulp::Arch;
use rayon::prelude::*;

use super::columns::AddRows;

/// Values that one task clears.
const TASK: usize = 1 << 18;

/// The rows `ids` of a matrix of `width` columns.
pub(crate) fn gather(matrix: &[f32], width: usize, ids: &[u32]) -> Vec<f32> {
    let mut out = Vec::with_capacity(ids.len() * width);
    for &id in ids {
        out.extend_from_slice(row(matrix, width, id));
    }
    out
}

/// Adds row `i` of `rows` to row `ids[i]` of a matrix of `width` columns, in order.
pub(crate) fn scatter(matrix: &mut [f32], width: usize, ids: &[u32], rows: &[f32]) {
    for (&id, row) in ids.iter().zip(rows.chunks(width)) {
        let start = id as usize * width;
        Arch::new().dispatch(AddRows { sum: &mut matrix[start..start + width], rows: row });
    }
}

/// Sets every value to zero.
pub(crate) fn clear(values: &mut [f32]) {
    values.par_chunks_mut(TASK).for_each(|piece| piece.fill(0.0));
}

fn row(matrix: &[f32], width: usize, id: u32) -> &[f32] {
    let start = id as usize * width;
    &matrix[start..start + width]
}
