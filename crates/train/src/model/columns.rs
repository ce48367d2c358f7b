//! Logits of all ranks, of which each has some columns.

use super::Shard;
use crate::tensor_parallel::TensorGroup;

/// The rows of `vocab` logits that the ranks of `group` have together; `own` are those of `shard`. Zeros after a failure.
pub(super) fn gather(group: &TensorGroup, shard: Shard, vocab: usize, own: &[f32]) -> Vec<f32> {
    let widest = vocab.div_ceil(shard.ranks());
    let padded = pad(own, shard.share(vocab).len(), widest);
    let all = group.gather(&padded);
    let widths: Vec<usize> = shard.of_all_ranks().map(|rank| rank.share(vocab).len()).collect();
    join(&all, &widths, widest)
}

/// Rows of `width` values with zeros behind, so that they are as long on every rank.
fn pad(rows: &[f32], width: usize, widest: usize) -> Vec<f32> {
    let zeros = || std::iter::repeat_n(0.0, widest - width);
    rows.chunks_exact(width).flat_map(|row| row.iter().copied().chain(zeros())).collect()
}

/// The rows whose columns are in `all`, one rank's behind the other's, in rows of `widest` of which the first of `widths` count.
fn join(all: &[f32], widths: &[usize], widest: usize) -> Vec<f32> {
    let of_rank = all.len() / widths.len();
    let rows = of_rank / widest;
    let row = |row: usize| {
        let start = move |rank: usize| rank * of_rank + row * widest;
        widths.iter().enumerate().flat_map(move |(rank, &width)| &all[start(rank)..][..width])
    };
    (0..rows).flat_map(row).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_uneven_columns_are_joined() {
        let ranks = [&[1.0, 2.0, 6.0, 7.0][..], &[3.0, 4.0, 8.0, 9.0], &[5.0, 10.0]];
        let padded = ranks.iter().zip([2, 2, 1]).map(|(rows, width)| pad(rows, width, 2));
        let all = padded.collect::<Vec<_>>().concat();
        assert_eq!(all.len(), 12);
        let whole: Vec<f32> = (1..=10u8).map(f32::from).collect();
        assert_eq!(join(&all, &[2, 2, 1], 2), whole);
    }
}
