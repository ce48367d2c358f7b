use crate::Int4Error;

/// Product of a shape, checked.
pub(crate) fn elements(what: &'static str, shape: &[usize]) -> Result<usize, Int4Error> {
    let product = shape.iter().try_fold(1_usize, |product, &size| product.checked_mul(size));
    product.ok_or_else(|| Int4Error::TooLarge { what, shape: shape.to_vec() })
}

/// Whether a slice of `got` elements is `expected` long.
pub(crate) fn check_len(
    what: &'static str,
    shape: &[usize],
    got: usize,
    expected: usize,
) -> Result<(), Int4Error> {
    if got == expected {
        return Ok(());
    }
    Err(Int4Error::Length { what, shape: shape.to_vec(), got, expected })
}

/// Whether two dimensions that have to be equal are.
pub(crate) fn check_equal(what: &'static str, left: usize, right: usize) -> Result<(), Int4Error> {
    if left == right { Ok(()) } else { Err(Int4Error::Mismatch { what, left, right }) }
}

/// A borrowed matrix of 4-bit codes, row-major.
///
/// Codes are two's complement nibbles; quantizers make -7 to 7, and -8 is computed with like any other. Element `2 i` of a
/// row is the low nibble of the row's byte `i`, element `2 i + 1` the high one. Every row begins with a byte of its own:
/// a row of `columns` codes takes `columns.div_ceil(2)` bytes, and the last high nibble of an odd one is ignored.
#[derive(Debug, Clone, Copy)]
pub struct Int4View<'a> {
    shape: [usize; 2],
    bytes: &'a [u8],
}

impl<'a> Int4View<'a> {
    /// A matrix of `shape` `[rows, columns]` in `bytes`.
    ///
    /// # Errors
    /// [`Int4Error::Length`] if `bytes` is not `rows * columns.div_ceil(2)` long.
    pub fn new(shape: [usize; 2], bytes: &'a [u8]) -> Result<Self, Int4Error> {
        let expected = elements("4-bit matrix", &[shape[0], shape[1].div_ceil(2)])?;
        check_len("4-bit matrix", &shape, bytes.len(), expected)?;
        Ok(Self { shape, bytes })
    }

    /// Rows and columns.
    pub const fn shape(&self) -> [usize; 2] {
        self.shape
    }

    /// The packed codes.
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The packed codes of a row.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, row: usize) -> &'a [u8] {
        let len = self.shape[1].div_ceil(2);
        &self.bytes[row * len..][..len]
    }

    /// Every code, row-major, one a byte.
    pub fn codes(&self) -> Vec<i8> {
        let rows = (0..self.shape[0]).map(|row| self.row(row));
        rows.flat_map(|row| (0..self.shape[1]).map(|j| code(row, j))).collect()
    }
}

/// Code `j` of a packed row.
fn code(row: &[u8], j: usize) -> i8 {
    let byte = row[j / 2];
    (if j.is_multiple_of(2) { byte << 4 } else { byte }).cast_signed() >> 4
}

/// A matrix of 4-bit codes; its layout is that of [`Int4View`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Int4Matrix {
    pub(crate) shape: [usize; 2],
    pub(crate) bytes: Vec<u8>,
}

impl Int4Matrix {
    /// A matrix of zeros.
    ///
    /// # Errors
    /// [`Int4Error::TooLarge`].
    pub fn zeros(shape: [usize; 2]) -> Result<Self, Int4Error> {
        let len = elements("4-bit matrix", &[shape[0], shape[1].div_ceil(2)])?;
        Ok(Self { shape, bytes: vec![0; len] })
    }

    /// Packs codes, row-major, one a byte.
    ///
    /// # Errors
    /// [`Int4Error::Length`], or [`Int4Error::Code`] for a code outside `-8..=7`.
    pub fn from_codes(shape: [usize; 2], codes: &[i8]) -> Result<Self, Int4Error> {
        check_len("codes", &shape, codes.len(), elements("codes", &shape)?)?;
        if let Some(index) = codes.iter().position(|code| !(-8..=7).contains(code)) {
            return Err(Int4Error::Code { code: codes[index], index });
        }
        let mut matrix = Self::zeros(shape)?;
        if codes.is_empty() {
            return Ok(matrix);
        }
        let rows = matrix.bytes.chunks_exact_mut(shape[1].div_ceil(2)).zip(codes.chunks_exact(shape[1]));
        for (bytes, codes) in rows {
            for (byte, pair) in bytes.iter_mut().zip(codes.chunks(2)) {
                let nibble = |i: usize| pair.get(i).map_or(0, |code| code.cast_unsigned() & 15);
                *byte = nibble(0) | nibble(1) << 4;
            }
        }
        Ok(matrix)
    }

    /// Rows and columns.
    pub const fn shape(&self) -> [usize; 2] {
        self.shape
    }

    /// The same matrix, borrowed.
    pub fn view(&self) -> Int4View<'_> {
        Int4View { shape: self.shape, bytes: &self.bytes }
    }
}

/// A borrowed matrix of 8-bit codes, row-major.
#[derive(Debug, Clone, Copy)]
pub struct Int8View<'a> {
    pub(crate) shape: [usize; 2],
    pub(crate) codes: &'a [i8],
}

impl<'a> Int8View<'a> {
    /// A matrix of `shape` `[rows, columns]` in `codes`.
    ///
    /// # Errors
    /// [`Int4Error::Length`] if `codes` is not `rows * columns` long.
    pub fn new(shape: [usize; 2], codes: &'a [i8]) -> Result<Self, Int4Error> {
        check_len("8-bit matrix", &shape, codes.len(), elements("8-bit matrix", &shape)?)?;
        Ok(Self { shape, codes })
    }

    /// Rows and columns.
    pub const fn shape(&self) -> [usize; 2] {
        self.shape
    }

    /// The codes of a row.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, row: usize) -> &'a [i8] {
        &self.codes[row * self.shape[1]..][..self.shape[1]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn element_two_i_is_the_low_nibble() {
        let matrix = Int4Matrix::from_codes([2, 3], &[1, -2, 7, -7, 0, -8]).unwrap();
        assert_eq!(matrix.bytes, [0xe1, 0x07, 0x09, 0x08]);
        assert_eq!(matrix.view().codes(), [1, -2, 7, -7, 0, -8]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert_eq!(Int4Matrix::from_codes([1, 2], &[0, 8]), Err(Int4Error::Code { code: 8, index: 1 }));
        let error = Int4View::new([2, 3], &[0; 3]).unwrap_err();
        assert_eq!(error.to_string(), "4-bit matrix of shape [2, 3]: 3 elements, expected 4");
        assert!(matches!(Int4Matrix::zeros([usize::MAX, 3]), Err(Int4Error::TooLarge { .. })));
        assert!(matches!(Int8View::new([usize::MAX, 3], &[]), Err(Int4Error::TooLarge { .. })));
    }
}
