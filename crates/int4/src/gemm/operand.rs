#![expect(clippy::inline_always, reason = "kernels are compiled inside each instruction set's entry")]

use crate::matrix::check_equal;
use crate::{Int4Error, Int4View, Int8View};

/// A matrix as a product takes it: `[outputs, depth]`, the products being summed over the depth.
///
/// A matrix of codes with rows of `depth` is one as it is; one with rows of `outputs` is after [`Operand::transposed`]. Either
/// can be narrowed to some of its rows without being copied.
#[derive(Debug, Clone, Copy)]
pub struct Operand<'a> {
    codes: Codes<'a>,
    transposed: bool,
    rows: Option<&'a [u32]>,
    multipliers: Option<&'a [u8]>,
}

#[derive(Debug, Clone, Copy)]
enum Codes<'a> {
    Int4(Int4View<'a>),
    Int8(Int8View<'a>),
}

impl<'a> From<Int4View<'a>> for Operand<'a> {
    fn from(view: Int4View<'a>) -> Self {
        Self { codes: Codes::Int4(view), transposed: false, rows: None, multipliers: None }
    }
}

impl<'a> From<Int8View<'a>> for Operand<'a> {
    fn from(view: Int8View<'a>) -> Self {
        Self { codes: Codes::Int8(view), transposed: false, rows: None, multipliers: None }
    }
}

impl<'a> Operand<'a> {
    /// The same matrix with rows and columns exchanged.
    #[must_use]
    pub const fn transposed(mut self) -> Self {
        self.transposed = !self.transposed;
        self
    }

    /// The matrix of these rows of the codes, in this order: outputs, or the depth if it is transposed.
    ///
    /// # Errors
    /// [`Int4Error::Row`] if there is no such row.
    pub fn select(mut self, rows: &'a [u32]) -> Result<Self, Int4Error> {
        let there = self.codes.shape()[0];
        if let Some(&row) = rows.iter().find(|&&row| row as usize >= there) {
            return Err(Int4Error::Row { row: row as usize, rows: there });
        }
        self.rows = Some(rows);
        Ok(self)
    }

    /// Multiplies every 4-bit code of selected row `i` by `multipliers[i]`, at most 15; the products are 8-bit codes.
    ///
    /// # Errors
    /// [`Int4Error::Mismatch`] if there are not as many as rows.
    ///
    /// # Panics
    /// If the codes are 8 bits wide or a multiplier is above 15.
    pub(crate) fn multiply_rows(mut self, multipliers: &'a [u8]) -> Result<Self, Int4Error> {
        assert!(matches!(self.codes, Codes::Int4(_)) && multipliers.iter().all(|&m| m <= 15));
        check_equal("rows and their multipliers", self.row_count(), multipliers.len())?;
        self.multipliers = Some(multipliers);
        Ok(self)
    }

    /// Rows of the product that this operand gives.
    pub fn outputs(&self) -> usize {
        if self.transposed { self.codes.shape()[1] } else { self.row_count() }
    }

    /// Elements that are summed over.
    pub fn depth(&self) -> usize {
        if self.transposed { self.row_count() } else { self.codes.shape()[1] }
    }

    pub(crate) const fn is_transposed(&self) -> bool {
        self.transposed
    }

    /// Whether every code fits in 4 bits.
    pub(crate) const fn is_nibbles(&self) -> bool {
        matches!(self.codes, Codes::Int4(_)) && self.multipliers.is_none()
    }

    /// The largest magnitude a code can have.
    pub(crate) const fn bound(&self) -> usize {
        if self.is_nibbles() { 8 } else { 128 }
    }

    fn row_count(&self) -> usize {
        self.rows.map_or(self.codes.shape()[0], <[u32]>::len)
    }

    /// Codes `first..first + out.len()` of row `i`; `first` is even.
    #[inline(always)]
    pub(crate) fn unpack(&self, i: usize, first: usize, out: &mut [i8]) {
        let row = self.rows.map_or(i, |rows| rows[i] as usize);
        match self.codes {
            Codes::Int8(view) => out.copy_from_slice(&view.row(row)[first..][..out.len()]),
            Codes::Int4(view) => {
                unpack_nibbles(&view.row(row)[first / 2..], out);
                if let Some(multipliers) = self.multipliers {
                    let multiplier = multipliers[i].cast_signed();
                    for code in out {
                        *code *= multiplier;
                    }
                }
            }
        }
    }
}

impl Codes<'_> {
    const fn shape(&self) -> [usize; 2] {
        match self {
            Self::Int4(view) => view.shape(),
            Self::Int8(view) => view.shape(),
        }
    }
}

#[inline(always)]
fn unpack_nibbles(bytes: &[u8], out: &mut [i8]) {
    let low = |byte: u8| ((byte & 15) ^ 8).wrapping_sub(8).cast_signed();
    let high = |byte: u8| ((byte >> 4) ^ 8).wrapping_sub(8).cast_signed();
    let (pairs, last) = out.as_chunks_mut::<2>();
    for (pair, &byte) in pairs.iter_mut().zip(bytes) {
        *pair = [low(byte), high(byte)];
    }
    if let [code] = last {
        *code = low(bytes[pairs.len()]);
    }
}
