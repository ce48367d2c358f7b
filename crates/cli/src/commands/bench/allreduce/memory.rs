//! Whether the tensors of all ranks fit.

use thinwire_train::config::ByteSize;

/// What a rank takes beside its tensors, in bytes.
const BESIDE: u64 = 64 << 20;

/// Tensors that do not fit into memory.
#[derive(Debug, thiserror::Error)]
#[error(
    "{ranks} ranks with tensors of {size} need {needed} bytes of memory, and {available} are available: choose smaller \
     --sizes, fewer --ranks, or no --compensation separate"
)]
pub(super) struct TooLarge {
    ranks: usize,
    size: ByteSize,
    needed: u64,
    available: u64,
}

/// Compares what ranks that hold `numbers` numbers a value need with what is `available`, in bytes.
pub(super) fn check(
    ranks: usize,
    size: ByteSize,
    numbers: u64,
    available: Option<u64>,
) -> Result<(), TooLarge> {
    let each = size.0.saturating_mul(numbers).saturating_add(BESIDE);
    let needed = each.saturating_mul(ranks as u64);
    match available {
        Some(available) if needed > available => Err(TooLarge { ranks, size, needed, available }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ranks_count() {
        let size = ByteSize(1 << 30);
        let needed = 4 * ((5 << 30) + BESIDE);
        check(4, size, 5, Some(needed)).unwrap();
        let error = check(4, size, 5, Some(needed - 1)).unwrap_err().to_string();
        assert!(error.starts_with("4 ranks with tensors of 1GiB need 21743271936 bytes"), "{error}");
        check(4, size, 5, None).unwrap();
        check(4, ByteSize(u64::MAX), 5, Some(u64::MAX - 1)).unwrap_err();
    }
}
