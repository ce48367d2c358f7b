//! How a stored matrix differs from Hugging Face's.

/// The way from the stored layout to Hugging Face's. Shapes are row-major: `[rows, columns]`, or `[values]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Not at all.
    Same,
    /// Stored `[columns, rows]`.
    Transposed,
    /// Within each of `heads` equal parts, the rows of rotary pair `(i, i + n / 2)` are stored as `(2 i, 2 i + 1)`.
    Interleaved {
        /// Number of parts.
        heads: usize,
    },
}

impl Layout {
    /// Hugging Face's shape of a tensor stored in `shape`.
    pub(crate) fn shape(self, shape: &[usize]) -> Vec<usize> {
        match self {
            Self::Same | Self::Interleaved { .. } => shape.into(),
            Self::Transposed => shape.iter().rev().copied().collect(),
        }
    }

    /// Puts the values of a tensor stored in `shape` in Hugging Face's order.
    pub(crate) fn to_hugging_face(self, values: Vec<f32>, shape: &[usize]) -> Vec<f32> {
        let rows = shape.first().copied().unwrap_or(1);
        if self == Self::Same || values.is_empty() {
            return values;
        }
        let columns = values.len() / rows;
        match self {
            Self::Same => values,
            Self::Transposed => {
                let column = |c| (0..rows).map(move |r| (r, c));
                (0..columns).flat_map(column).map(|(r, c)| values[r * columns + c]).collect()
            }
            Self::Interleaved { heads } => {
                let half = rows / heads / 2;
                let stored = |row: usize| {
                    let (head, within) = (row / (2 * half), row % (2 * half));
                    head * 2 * half + within % half * 2 + within / half
                };
                let row = |row| &values[stored(row) * columns..][..columns];
                (0..rows).flat_map(row).copied().collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transposed() {
        let values = Layout::Transposed.to_hugging_face(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]);
        assert_eq!(values, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
        assert_eq!(Layout::Transposed.shape(&[2, 3]), [3, 2]);
    }

    #[test]
    fn interleaved_pairs_are_parted() {
        // Two heads of four rows, two columns. Row r of a head is stored: 0, 2, 1, 3.
        let row = |r: u8| [f32::from(r), f32::from(r) + 0.5];
        let stored: Vec<f32> = [0, 2, 1, 3, 4, 6, 5, 7].into_iter().flat_map(row).collect();
        let expected: Vec<f32> = (0..8).flat_map(row).collect();
        assert_eq!(Layout::Interleaved { heads: 2 }.to_hugging_face(stored, &[8, 2]), expected);
    }
}
