//! Number formats of stored tensors, and their way to f32.
//!
//! The quantized ones are those of ggml: a row is a sequence of blocks, each with its own scales. Values are computed
//! as ggml's reference code does, in f32, operation by operation, so they agree to the bit.

mod block;
mod super_block;

use half::{bf16, f16};

/// How the values of a tensor are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(non_camel_case_types, reason = "the names of the GGUF format")]
pub enum Format {
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary16.
    F16,
    /// The upper half of a binary32.
    BF16,
    /// Blocks of 32: scale, 4 bits around 8.
    Q4_0,
    /// Blocks of 32: scale and minimum, 4 bits.
    Q4_1,
    /// Blocks of 32: scale, 5 bits around 16.
    Q5_0,
    /// Blocks of 32: scale, signed bytes.
    Q8_0,
    /// Blocks of 256 with 8 scales and minima of 6 bits, 4 bits.
    Q4_K,
    /// Blocks of 256 with 8 scales and minima of 6 bits, 5 bits.
    Q5_K,
    /// Blocks of 256 with 16 scales of 8 bits, 6 bits around 32.
    Q6_K,
}

impl Format {
    /// Every format, in the order of the documentation.
    pub const ALL: [Self; 10] = [
        Self::F32,
        Self::F16,
        Self::BF16,
        Self::Q4_0,
        Self::Q4_1,
        Self::Q5_0,
        Self::Q8_0,
        Self::Q4_K,
        Self::Q5_K,
        Self::Q6_K,
    ];

    /// Values in a block.
    pub const fn block_len(self) -> usize {
        match self {
            Self::F32 | Self::F16 | Self::BF16 => 1,
            Self::Q4_0 | Self::Q4_1 | Self::Q5_0 | Self::Q8_0 => 32,
            Self::Q4_K | Self::Q5_K | Self::Q6_K => 256,
        }
    }

    /// Bytes of a block.
    pub const fn block_bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::BF16 => 2,
            Self::Q4_0 => 18,
            Self::Q4_1 => 20,
            Self::Q5_0 => 22,
            Self::Q8_0 => 34,
            Self::Q4_K => 144,
            Self::Q5_K => 176,
            Self::Q6_K => 210,
        }
    }

    /// Bytes of a tensor; `None` if its rows are not whole blocks, or the number is no `u64`.
    pub fn bytes(self, shape: &[usize]) -> Option<u64> {
        let row = shape.last().copied().unwrap_or(1);
        if !row.is_multiple_of(self.block_len()) {
            return None;
        }
        let rows = shape.iter().rev().skip(1).try_fold(1_u64, |rows, &len| rows.checked_mul(len as u64))?;
        let row = ((row / self.block_len()) as u64).checked_mul(self.block_bytes() as u64)?;
        rows.checked_mul(row)
    }

    /// Writes the values of whole blocks to `out`.
    ///
    /// # Panics
    /// `bytes` and `out` are not the same number of blocks.
    pub fn decode(self, bytes: &[u8], out: &mut [f32]) {
        let (from, to) = (bytes.chunks_exact(self.block_bytes()), out.chunks_exact_mut(self.block_len()));
        assert!(
            from.remainder().is_empty() && from.len() == to.len() && to.len() * self.block_len() == out.len()
        );
        let blocks = bytes.chunks_exact(self.block_bytes()).zip(out.chunks_exact_mut(self.block_len()));
        match self {
            Self::F32 => {
                each(blocks, |[a, b, c, d], [y]: &mut [f32; 1]| *y = f32::from_le_bytes([*a, *b, *c, *d]))
            }
            Self::F16 => {
                each(blocks, |[a, b], [y]: &mut [f32; 1]| *y = f16::from_le_bytes([*a, *b]).to_f32())
            }
            Self::BF16 => {
                each(blocks, |[a, b], [y]: &mut [f32; 1]| *y = bf16::from_le_bytes([*a, *b]).to_f32())
            }
            Self::Q4_0 => each(blocks, block::q4_0),
            Self::Q4_1 => each(blocks, block::q4_1),
            Self::Q5_0 => each(blocks, block::q5_0),
            Self::Q8_0 => each(blocks, block::q8_0),
            Self::Q4_K => each(blocks, super_block::q4_k),
            Self::Q5_K => each(blocks, super_block::q5_k),
            Self::Q6_K => each(blocks, super_block::q6_k),
        }
    }
}

/// Runs `decode` on every block of a fixed size.
fn each<'a, const BYTES: usize, const LEN: usize>(
    blocks: impl Iterator<Item = (&'a [u8], &'a mut [f32])>,
    decode: impl Fn(&[u8; BYTES], &mut [f32; LEN]),
) {
    for (bytes, out) in blocks {
        decode(bytes.try_into().expect("block_bytes"), out.try_into().expect("block_len"));
    }
}

/// The f16 at `at`, as f32.
fn half_at(bytes: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([bytes[at], bytes[at + 1]]).to_f32()
}
