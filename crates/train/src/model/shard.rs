//! Which share of a model one rank computes.

use std::ops::Range;

use super::{Architecture, Slice};

/// One rank of those that share every layer of a model (Shoeybi et al., 2019, section 3): it has some of the heads, of the
/// feed-forward channels and of the vocabulary, and all of everything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    rank: usize,
    ranks: usize,
}

/// A number of ranks that cannot share a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShardError {
    /// Heads cannot be cut.
    #[error(
        "{ranks} ranks cannot share {heads} heads with {kv_heads} key and value heads evenly: expected {}",
        either(allowed)
    )]
    Heads {
        /// Ranks asked for.
        ranks: usize,
        /// Heads of the model.
        heads: usize,
        /// Key and value heads.
        kv_heads: usize,
        /// The numbers of ranks that can.
        allowed: Vec<usize>,
    },
    /// There are fewer of something than ranks.
    #[error("{ranks} ranks cannot share {count} {what}: at most {count} can")]
    Few {
        /// Ranks asked for.
        ranks: usize,
        /// What there are too few of.
        what: &'static str,
        /// How many there are.
        count: usize,
    },
}

fn either(counts: &[usize]) -> String {
    let texts: Vec<String> = counts.iter().map(ToString::to_string).collect();
    match texts.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => texts.concat(),
    }
}

impl Shard {
    /// All of a model.
    pub const WHOLE: Self = Self { rank: 0, ranks: 1 };

    /// The shares of a model for `ranks` ranks, in their order.
    ///
    /// # Errors
    /// The ranks do not divide its heads, or are more than it has feed-forward channels or token ids.
    pub fn all(arch: &Architecture, ranks: usize) -> Result<Vec<Self>, ShardError> {
        let Architecture { heads, kv_heads, ffn, vocab, .. } = *arch;
        let divides = |&ranks: &usize| heads.is_multiple_of(ranks) && kv_heads.is_multiple_of(ranks);
        if ranks == 0 || !divides(&ranks) {
            let allowed = (1..=kv_heads).filter(divides).collect();
            return Err(ShardError::Heads { ranks, heads, kv_heads, allowed });
        }
        for (what, count) in [("feed-forward channels", ffn), ("token ids", vocab)] {
            if count < ranks {
                return Err(ShardError::Few { ranks, what, count });
            }
        }
        Ok((0..ranks).map(|rank| Self { rank, ranks }).collect())
    }

    /// The share of another rank.
    pub(super) fn of_rank(self, rank: usize) -> Self {
        Self { rank, ..self }
    }

    /// This rank.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// How many share the model.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Whether it is all of the model.
    pub fn is_whole(&self) -> bool {
        self.ranks == 1
    }

    /// The rank's share of `count` things, as even as it goes: the first ranks have one more.
    pub fn share(&self, count: usize) -> Range<usize> {
        let (each, more) = (count / self.ranks, count % self.ranks);
        let start = |rank: usize| rank * each + rank.min(more);
        start(self.rank)..start(self.rank + 1)
    }

    /// The channels of its share of `heads` heads of `dim` channels each.
    pub(super) fn channels(&self, heads: usize, dim: usize) -> Range<usize> {
        let heads = self.share(heads);
        heads.start * dim..heads.end * dim
    }

    /// Its rows of a matrix of the vocabulary.
    pub(super) fn vocabulary(&self, arch: &Architecture) -> Slice {
        Slice::along([arch.vocab, arch.hidden], 0, &[self.share(arch.vocab)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Family;

    fn arch(heads: usize, kv_heads: usize) -> Architecture {
        Architecture {
            family: Family::Llama,
            layers: 1,
            hidden: 72,
            heads,
            head_dim: None,
            kv_heads,
            ffn: 7,
            context: 8,
            vocab: 11,
            tied: false,
            norm_eps: 1e-5,
            rope_theta: 1e4,
            rope_scaling: None,
            lora: None,
        }
    }

    #[test]
    fn shares_are_even_and_leave_nothing_out() {
        let shards = Shard::all(&arch(9, 3), 3).unwrap();
        assert_eq!(shards.iter().map(|shard| shard.share(11)).collect::<Vec<_>>(), [0..4, 4..8, 8..11]);
        assert_eq!(shards[2].channels(9, 8), 48..72);
        assert_eq!(Shard::all(&arch(9, 3), 1).unwrap(), [Shard::WHOLE]);
    }

    #[test]
    fn ranks_that_do_not_divide_the_heads_are_refused() {
        for (heads, kv_heads, ranks, expected) in [
            (9, 3, 2, "expected 1 or 3"),
            (12, 12, 5, "expected 1, 2, 3, 4, 6 or 12"),
            (4, 1, 2, "2 ranks cannot share 4 heads with 1 key and value heads evenly: expected 1"),
            (4, 4, 0, "expected 1, 2 or 4"),
            (8, 8, 8, "8 ranks cannot share 7 feed-forward channels: at most 7 can"),
        ] {
            let error = Shard::all(&arch(heads, kv_heads), ranks).unwrap_err().to_string();
            assert!(error.ends_with(expected), "{error}");
        }
    }
}
