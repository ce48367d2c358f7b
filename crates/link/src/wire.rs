//! Taking little-endian fields off a slice.

use crate::frame::FrameError;

/// A cursor that knows what it was reading when the bytes ran out, and refuses left-over ones.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// The next `length` bytes, which are `what`.
    pub(crate) fn take(&mut self, length: usize, what: &'static str) -> Result<&'a [u8], FrameError> {
        let (taken, rest) = self.bytes.split_at_checked(length).ok_or(FrameError::Truncated {
            what,
            needed: length as u64,
            available: self.bytes.len() as u64,
        })?;
        self.bytes = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], FrameError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N, what)?);
        Ok(array)
    }

    pub(crate) fn u8(&mut self, what: &'static str) -> Result<u8, FrameError> {
        self.array::<1>(what).map(|[byte]| byte)
    }

    pub(crate) fn u32(&mut self, what: &'static str) -> Result<u32, FrameError> {
        self.array(what).map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self, what: &'static str) -> Result<u64, FrameError> {
        self.array(what).map(u64::from_le_bytes)
    }

    /// Refuses bytes after the end.
    pub(crate) fn finish(self) -> Result<(), FrameError> {
        match self.bytes.len() {
            0 => Ok(()),
            extra => Err(FrameError::TrailingBytes { extra: extra as u64 }),
        }
    }
}
