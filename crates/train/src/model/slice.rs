//! What one rank has of a tensor.

use std::iter;
use std::ops::Range;

/// All of a row-major tensor, or the part of it at some indices of one dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    whole: Vec<usize>,
    cut: Option<Cut>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Cut {
    dimension: usize,
    /// Ascending, none empty.
    ranges: Vec<Range<usize>>,
}

impl<const N: usize> From<[usize; N]> for Slice {
    fn from(shape: [usize; N]) -> Self {
        Self { whole: shape.to_vec(), cut: None }
    }
}

impl Slice {
    /// What is at `ranges` (ascending, apart from each other) along `dimension` of a tensor of `shape`; all of it if they are
    /// one range that leaves nothing out.
    ///
    /// # Panics
    /// When there is no such dimension, or not so many indices.
    pub fn along<const N: usize>(shape: [usize; N], dimension: usize, ranges: &[Range<usize>]) -> Self {
        let len = shape[dimension];
        assert!(ranges.iter().all(|range| range.end <= len), "{ranges:?} of {len}");
        let cut = (ranges.iter().map(ExactSizeIterator::len).sum::<usize>() < len)
            .then(|| Cut { dimension, ranges: ranges.to_vec() });
        Self { whole: shape.to_vec(), cut }
    }

    /// The shape of the whole tensor.
    pub fn whole(&self) -> &[usize] {
        &self.whole
    }

    /// Whether nothing is left out.
    pub fn is_whole(&self) -> bool {
        self.cut.is_none()
    }

    /// The shape of the part.
    pub fn shape(&self) -> Vec<usize> {
        let mut shape = self.whole.clone();
        if let Some(Cut { dimension, ranges }) = &self.cut {
            shape[*dimension] = ranges.iter().map(ExactSizeIterator::len).sum();
        }
        shape
    }

    /// The part of the values `whole`.
    ///
    /// # Panics
    /// When they are not as many as the tensor has.
    pub fn take(&self, whole: Vec<f32>) -> Vec<f32> {
        assert_eq!(whole.len(), self.whole.iter().product::<usize>(), "values of {:?}", self.whole);
        if self.is_whole() {
            return whole;
        }
        self.pieces().flat_map(|piece| &whole[piece]).copied().collect()
    }

    /// Puts the values `part` where they belong among those of the whole tensor.
    ///
    /// # Panics
    /// When either are not as many as the shapes say.
    pub fn put(&self, part: &[f32], whole: &mut [f32]) {
        assert_eq!(whole.len(), self.whole.iter().product::<usize>(), "values of {:?}", self.whole);
        let mut rest = part;
        for piece in self.pieces() {
            let (values, behind) = rest.split_at(piece.len());
            whole[piece].copy_from_slice(values);
            rest = behind;
        }
        assert!(rest.is_empty(), "{} values too many", rest.len());
    }

    /// Where the part's values are among all, in order.
    fn pieces(&self) -> impl Iterator<Item = Range<usize>> {
        let everything = || Cut { dimension: 0, ranges: iter::once(0..self.whole[0]).collect() };
        let Cut { dimension, ranges } = self.cut.clone().unwrap_or_else(everything);
        let inner: usize = self.whole[dimension + 1..].iter().product();
        let outer: usize = self.whole[..dimension].iter().product();
        let step = self.whole[dimension];
        (0..outer).flat_map(move |row| {
            let piece = move |range: Range<usize>| {
                (row * step + range.start) * inner..(row * step + range.end) * inner
            };
            ranges.clone().into_iter().map(piece)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn along<const N: usize>(shape: [usize; N], dimension: usize, ranges: &[[usize; 2]]) -> Slice {
        let ranges: Vec<_> = ranges.iter().map(|&[start, end]| start..end).collect();
        Slice::along(shape, dimension, &ranges)
    }

    fn check(slice: &Slice, shape: &[usize], expected: &[f32]) {
        let all: Vec<f32> = (0..12u8).map(f32::from).collect();
        assert_eq!(slice.shape(), shape);
        assert_eq!(slice.take(all.clone()), expected);
        let mut joined = vec![-1.0; 12];
        slice.put(expected, &mut joined);
        let put = joined.iter().filter(|&&value| value >= 0.0).count();
        assert_eq!(put, expected.len());
        assert!(joined.iter().zip(&all).all(|(joined, all)| *joined < 0.0 || joined == all));
    }

    #[test]
    fn parts_are_taken_and_put_back() {
        check(&along([3, 4], 0, &[[1, 2]]), &[1, 4], &[4.0, 5.0, 6.0, 7.0]);
        check(&along([3, 4], 1, &[[1, 3]]), &[3, 2], &[1.0, 2.0, 5.0, 6.0, 9.0, 10.0]);
        check(&along([2, 6], 1, &[[0, 1], [2, 3], [4, 5]]), &[2, 3], &[0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        check(&along([12], 0, &[[3, 5], [10, 12]]), &[4], &[3.0, 4.0, 10.0, 11.0]);
        let whole: Vec<f32> = (0..12u8).map(f32::from).collect();
        check(&along([3, 4], 1, &[[0, 4]]), &[3, 4], &whole);
        assert!(along([3, 4], 1, &[[0, 4]]).is_whole());
    }
}
