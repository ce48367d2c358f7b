use crate::Int4Error;
use crate::matrix::{check_len, elements};

/// A bit for each element of a matrix, row-major: element `j` of a row is bit `j % 8` of the row's byte `j / 8`. Every row
/// begins with a byte of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BitMatrix {
    pub(crate) shape: [usize; 2],
    pub(crate) bytes: Vec<u8>,
}

impl BitMatrix {
    /// A matrix without a set bit.
    ///
    /// # Errors
    /// [`Int4Error::TooLarge`].
    pub fn zeros(shape: [usize; 2]) -> Result<Self, Int4Error> {
        let len = elements("bit matrix", &[shape[0], shape[1].div_ceil(8)])?;
        Ok(Self { shape, bytes: vec![0; len] })
    }

    /// A matrix of `shape` `[rows, columns]` that lies in `bytes`.
    ///
    /// # Errors
    /// [`Int4Error::Length`] if `bytes` is not `rows * columns.div_ceil(8)` long.
    pub fn new(shape: [usize; 2], bytes: Vec<u8>) -> Result<Self, Int4Error> {
        let expected = elements("bit matrix", &[shape[0], shape[1].div_ceil(8)])?;
        check_len("bit matrix", &shape, bytes.len(), expected)?;
        Ok(Self { shape, bytes })
    }

    /// Rows and columns.
    pub const fn shape(&self) -> [usize; 2] {
        self.shape
    }

    /// The packed bits.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether the bit of an element is set.
    ///
    /// # Panics
    /// If there is no such element.
    pub fn get(&self, row: usize, column: usize) -> bool {
        assert!(column < self.shape[1], "column {column} of {}", self.shape[1]);
        self.row(row)[column / 8] >> (column % 8) & 1 == 1
    }

    /// The packed bits of a row.
    pub(crate) fn row(&self, row: usize) -> &[u8] {
        let len = self.shape[1].div_ceil(8);
        &self.bytes[row * len..][..len]
    }
}
