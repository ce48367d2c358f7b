use rayon::prelude::*;

use crate::Int4Error;
use crate::matrix::{check_equal, check_len, elements};

/// The few largest values of a matrix, kept in f32 while the others are quantized (the paper's "outlier" in section 5.2).
#[derive(Debug, Clone, PartialEq)]
pub struct Outliers {
    shape: [usize; 2],
    /// Of each row the columns and values, by column.
    rows: Vec<Vec<(u32, f32)>>,
}

impl Outliers {
    /// Takes the largest magnitudes, a fraction from 0 to 1 of all values, out of `x` `[rows, columns]`, and leaves zeros there. Of equal ones
    /// the first go.
    ///
    /// # Errors
    /// [`Int4Error::Length`], or [`Int4Error::TooLarge`] for more than `2^32` columns.
    pub fn take(x: &mut [f32], shape: [usize; 2], fraction: f64) -> Result<Self, Int4Error> {
        check_len("values", &shape, x.len(), elements("values", &shape)?)?;
        if u32::try_from(shape[1]).is_err() {
            return Err(Int4Error::TooLarge { what: "values", shape: shape.to_vec() });
        }
        let mut rows = vec![Vec::new(); shape[0]];
        let count = ((x.len() as f64 * fraction).round() as usize).min(x.len());
        if let Some(last) = count.checked_sub(1) {
            let mut magnitudes: Vec<f32> = x.iter().map(|v| v.abs()).collect();
            let (larger, &mut least, _) = magnitudes.select_nth_unstable_by(last, |a, b| b.total_cmp(a));
            // Those that equal the last one do not all have a place.
            let mut places = count - larger.iter().filter(|magnitude| **magnitude != least).count();
            for (values, row) in x.chunks_exact_mut(shape[1]).zip(&mut rows) {
                for (column, value) in (0_u32..).zip(values) {
                    let magnitude = value.abs();
                    let equal = magnitude == least;
                    if magnitude > least || equal && places > 0 {
                        places -= usize::from(equal);
                        row.push((column, std::mem::take(value)));
                    }
                }
            }
        }
        Ok(Self { shape, rows })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.rows.iter().map(Vec::len).sum()
    }

    /// Adds the outliers' part of `X W^T`, for `w` `[C, columns]`, to `y` `[rows, C]`.
    ///
    /// # Errors
    /// [`Int4Error::Mismatch`] or [`Int4Error::Length`].
    pub fn add_product(&self, w: &[f32], w_shape: [usize; 2], y: &mut [f32]) -> Result<(), Int4Error> {
        check_equal("columns of the outliers and the weight", self.shape[1], w_shape[1])?;
        check_len("weight", &w_shape, w.len(), elements("weight", &w_shape)?)?;
        let shape = [self.shape[0], w_shape[0]];
        check_len("output", &shape, y.len(), elements("output", &shape)?)?;
        if !y.is_empty() && !w.is_empty() {
            y.par_chunks_exact_mut(shape[1]).zip(&self.rows).for_each(|(y, outliers)| {
                for (y, w) in y.iter_mut().zip(w.chunks_exact(w_shape[1])) {
                    *y += outliers.iter().map(|&(column, value)| value * w[column as usize]).sum::<f32>();
                }
            });
        }
        Ok(())
    }

    /// Adds the outliers' part of `dY^T X`, for `dy` `[rows, C]`, to `dw` `[C, columns]`.
    ///
    /// # Errors
    /// [`Int4Error::Mismatch`] or [`Int4Error::Length`].
    pub fn add_weight_gradient(
        &self,
        dy: &[f32],
        dy_shape: [usize; 2],
        dw: &mut [f32],
    ) -> Result<(), Int4Error> {
        check_equal("rows of the gradient and the outliers", dy_shape[0], self.shape[0])?;
        check_len("gradient", &dy_shape, dy.len(), elements("gradient", &dy_shape)?)?;
        let shape = [dy_shape[1], self.shape[1]];
        check_len("gradient of the weight", &shape, dw.len(), elements("gradient of the weight", &shape)?)?;
        if !dw.is_empty() {
            dw.par_chunks_exact_mut(shape[1]).enumerate().for_each(|(c, dw)| {
                for (dy, outliers) in dy.chunks_exact(shape[0]).zip(&self.rows) {
                    for &(column, value) in outliers {
                        dw[column as usize] += dy[c] * value;
                    }
                }
            });
        }
        Ok(())
    }
}
