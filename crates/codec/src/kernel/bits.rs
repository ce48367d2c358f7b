//! Codes of 2 to 16 bits to and from a bit stream: code `i` is bits `i * width ..` of it, least significant bit
//! first, bit `j` of the stream is bit `j % 8` of byte `j / 8`. The last byte is filled with zeros.

mod portable;

use crate::DecodeError;

macro_rules! by_width {
    ($width:expr, $function:path, $($argument:expr),*) => {{
        use $function as function;
        match $width {
            2 => function::<2>($($argument),*),
            3 => function::<3>($($argument),*),
            4 => function::<4>($($argument),*),
            5 => function::<5>($($argument),*),
            6 => function::<6>($($argument),*),
            7 => function::<7>($($argument),*),
            8 => function::<8>($($argument),*),
            9 => function::<9>($($argument),*),
            10 => function::<10>($($argument),*),
            11 => function::<11>($($argument),*),
            12 => function::<12>($($argument),*),
            13 => function::<13>($($argument),*),
            14 => function::<14>($($argument),*),
            15 => function::<15>($($argument),*),
            16 => function::<16>($($argument),*),
            width => unreachable!("codes of {width} bits"),
        }
    }};
}

/// Bytes of `codes` codes of `width` bits.
pub(crate) fn packed_len(codes: usize, width: u32) -> usize {
    (codes * width as usize).div_ceil(8)
}

/// Packs codes below `2^width` into `out`, exactly [`packed_len`] bytes.
pub(crate) fn pack(width: u32, codes: &[u16], out: &mut [u8]) {
    debug_assert_eq!(out.len(), packed_len(codes.len(), width));
    by_width!(width, portable::pack, codes, out);
}

/// The inverse of [`pack`].
pub(crate) fn unpack(width: u32, bytes: &[u8], codes: &mut [u16]) {
    debug_assert_eq!(bytes.len(), packed_len(codes.len(), width));
    by_width!(width, portable::unpack, bytes, codes);
}

/// Refuses a stream of `codes` codes whose last byte has bits set behind the last code.
pub(crate) fn check_padding(
    codes: usize,
    width: u32,
    bytes: &[u8],
    section: &'static str,
) -> Result<(), DecodeError> {
    let used = codes * width as usize % 8;
    match bytes.last() {
        Some(last) if used != 0 && last >> used != 0 => Err(DecodeError::UnusedBits { section }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_is_least_significant_bit_first_at_every_width_and_length() {
        for width in 2..=16_u32 {
            for len in 0..=35_usize {
                let codes: Vec<u16> =
                    (0..len).map(|i| ((i as u32 * 40503 + 1) & ((1 << width) - 1)) as u16).collect();
                let mut bytes = vec![0xff; packed_len(len, width)];
                pack(width, &codes, &mut bytes);
                let bit = |j: usize| u16::from(bytes[j / 8] >> (j % 8) & 1);
                for (i, &code) in codes.iter().enumerate() {
                    let read = (0..width as usize).map(|b| bit(i * width as usize + b) << b).sum::<u16>();
                    assert_eq!(read, code, "width {width}, code {i} of {len}");
                }
                assert!(check_padding(len, width, &bytes, "test").is_ok());
                let mut back = vec![0xffff; len];
                unpack(width, &bytes, &mut back);
                assert_eq!(back, codes, "width {width}, length {len}");
            }
        }
    }

    #[test]
    fn set_padding_is_refused() {
        assert!(check_padding(3, 3, &[0, 0b0000_0001], "test").is_ok());
        assert!(check_padding(3, 3, &[0, 0b0000_0010], "test").is_err());
        assert!(check_padding(8, 3, &[0, 0, 0xff], "test").is_ok());
        assert!(check_padding(0, 3, &[], "test").is_ok());
    }
}
