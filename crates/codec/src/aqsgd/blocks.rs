//! A message's payload: one block for each sample.
//!
//! | bytes | content |
//! |---|---|
//! | 8 | the sample's name |
//! | 4 | CRC-32 of what is remembered of it, 0 if it comes for the first time |
//! | … | a message of `[1, tokens, channels]`: raw if it comes for the first time, else of fixed point |

use crate::{CodecId, DecodeError, HEADER_LEN};

/// Bytes in front of a block's message.
pub(super) const BLOCK_HEADER_LEN: usize = 12;

/// One sample on the wire.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block<'a> {
    pub(super) sample: u64,
    /// Of what the sender remembers; `None` if it sends the sample for the first time.
    pub(super) checksum: Option<u32>,
    /// Raw if there is no checksum.
    pub(super) message: &'a [u8],
}

impl Block<'_> {
    /// Writes a block's header, all of `out`.
    pub(super) fn write_header(sample: u64, checksum: Option<u32>, out: &mut [u8]) {
        let (name, sum) = out.split_at_mut(size_of::<u64>());
        name.copy_from_slice(&sample.to_le_bytes());
        sum.copy_from_slice(&checksum.unwrap_or(0).to_le_bytes());
    }
}

/// What the messages of blocks are like.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lengths {
    /// The codec of a sample that comes for the first time, and bytes of its message.
    pub(super) first: (CodecId, usize),
    /// Bytes of the message of a difference.
    pub(super) difference: usize,
}

impl Lengths {
    /// Bytes of the longest block.
    pub(super) fn longest(self) -> Option<usize> {
        self.first.1.max(self.difference).checked_add(BLOCK_HEADER_LEN)
    }

    /// The blocks of a message, whose header is still in front of them. After the first error there are none.
    pub(super) fn blocks(
        self,
        message: &[u8],
        samples: usize,
    ) -> impl Iterator<Item = Result<Block<'_>, DecodeError>> {
        let mut at = HEADER_LEN;
        (0..samples).map_while(move |_| {
            let block = (at <= message.len()).then(|| self.block(message, at));
            at = match &block {
                Some(Ok(block)) => at + BLOCK_HEADER_LEN + block.message.len(),
                _ => usize::MAX,
            };
            block
        })
    }

    /// The block at byte `at` of the message.
    fn block(self, message: &[u8], at: usize) -> Result<Block<'_>, DecodeError> {
        let needs = |length: usize| DecodeError::Length { expected: at + length, got: message.len() };
        let (header, rest) =
            message[at..].split_at_checked(BLOCK_HEADER_LEN).ok_or(needs(BLOCK_HEADER_LEN + HEADER_LEN))?;
        let &codec = rest.get(1).ok_or(needs(BLOCK_HEADER_LEN + HEADER_LEN))?;
        let (first, length) = self.first;
        let (is_first, length) = match codec {
            codec if codec == u8::from(first) => (true, length),
            codec if codec == u8::from(CodecId::Fixed) => (false, self.difference),
            got => return Err(DecodeError::Codec { expected: CodecId::Fixed, got }),
        };
        let (name, sum) = header.split_first_chunk().expect("a block's header begins with a name");
        let sum = u32::from_le_bytes(*sum.first_chunk().expect("and ends with a checksum"));
        if is_first && sum != 0 {
            return Err(DecodeError::UnusedBits { section: "checksum" });
        }
        let message = rest.get(..length).ok_or(needs(BLOCK_HEADER_LEN + length))?;
        Ok(Block { sample: u64::from_le_bytes(*name), checksum: (!is_first).then_some(sum), message })
    }
}
