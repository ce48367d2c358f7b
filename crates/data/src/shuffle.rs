//! A permutation that depends on a key alone, on every platform and in every version.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sha2::{Digest, Sha256};

/// The numbers `0..len` in an order drawn for (`seed`, `epoch`): Fisher and Yates' shuffle on a `ChaCha8`
/// stream.
///
/// # Panics
/// From 2^32 numbers on: 4 bytes each are held.
pub(super) fn permutation(len: usize, seed: u64, epoch: u64) -> Vec<u32> {
    let len = u32::try_from(len).expect("fewer than 2^32 sequences");
    let mut key = Sha256::new_with_prefix(b"thinwire data order");
    key.update(seed.to_le_bytes());
    key.update(epoch.to_le_bytes());
    let mut random = ChaCha8Rng::from_seed(key.finalize().into());

    let mut order: Vec<u32> = (0..len).collect();
    for last in (1..len as usize).rev() {
        // The high half of a product is uniform over 0..=last to within 2^-64 of a chance.
        let pick = (u128::from(random.next_u64()) * (last as u128 + 1)) >> 64;
        order.swap(last, pick as usize);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_frozen() {
        // From an independent implementation of ChaCha8 and SHA-256.
        assert_eq!(permutation(8, 0, 0), [7, 2, 0, 1, 4, 5, 6, 3]);
        assert_eq!(permutation(8, 0, 1), [5, 3, 1, 6, 4, 2, 7, 0]);
        assert_eq!(permutation(8, 1, 0), [2, 6, 7, 3, 0, 4, 5, 1]);
    }

    #[test]
    fn every_place_is_equally_likely() {
        const EPOCHS: u64 = 6000;
        let mut counts = [[0u32; 6]; 6];
        for epoch in 0..EPOCHS {
            for (place, item) in permutation(6, 3, epoch).into_iter().enumerate() {
                counts[place][item as usize] += 1;
            }
        }
        // 1000 expected, standard deviation 29: 5 of them.
        assert!(counts.iter().flatten().all(|count| (855..1145).contains(count)), "{counts:?}");
    }

    #[test]
    fn tiny_lengths() {
        assert!(permutation(0, 0, 0).is_empty());
        assert_eq!(permutation(1, 0, 0), [0]);
    }
}
