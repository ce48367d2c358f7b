#![expect(clippy::inline_always, reason = "kernels are compiled inside each instruction set's entry")]

/// What becomes of the exact sums of a product.
///
/// A product's depth consists of segments, whose sums arrive one after the other.
pub(crate) trait Output: Sync {
    type Value: Send;

    /// Takes the sums of some columns of output row `row`, over segment `segment`.
    fn write(&self, row: usize, segment: usize, sums: &[i32], out: &mut [Self::Value]);
}

/// The sums themselves; the depth is one segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Exact;

impl Output for Exact {
    type Value = i32;

    #[inline(always)]
    fn write(&self, _row: usize, _segment: usize, sums: &[i32], out: &mut [i32]) {
        out.copy_from_slice(sums);
    }
}

/// `sum over the segments of scale * sums`, in f32, segment after segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scaled<'a> {
    /// One a segment.
    pub(crate) segments: &'a [f32],
    /// One a row, or none.
    pub(crate) rows: &'a [f32],
    /// Whether the output holds something that is added to.
    pub(crate) add: bool,
}

impl Output for Scaled<'_> {
    type Value = f32;

    #[inline(always)]
    fn write(&self, row: usize, segment: usize, sums: &[i32], out: &mut [f32]) {
        let mut scale = self.segments[segment];
        if let Some(row) = self.rows.get(row) {
            scale *= row;
        }
        if segment == 0 && !self.add {
            for (out, &sum) in out.iter_mut().zip(sums) {
                *out = scale * sum as f32;
            }
        } else {
            for (out, &sum) in out.iter_mut().zip(sums) {
                *out += scale * sum as f32;
            }
        }
    }
}
