//! What one forward pass works on.

use sha2::{Digest, Sha256};

/// `samples` sequences of `tokens` token ids each, and the token that follows every one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MicroBatch {
    /// Sequences.
    pub samples: usize,
    /// Tokens of each sequence.
    pub tokens: usize,
    /// `[samples, tokens]`, row-major.
    pub inputs: Vec<u32>,
    /// `[samples, tokens]`, row-major: what the model has to predict.
    pub targets: Vec<u32>,
    /// `[samples, tokens]`, row-major: which targets count in the loss. `None` when all of them do.
    pub mask: Option<Vec<bool>>,
    /// What each sample is called whenever it comes again: its place in the data set.
    pub ids: Vec<u64>,
    /// Fingerprint of samples, tokens, inputs, targets and mask. Stages compare it, so none computes with another's data.
    pub tag: u64,
}

impl MicroBatch {
    /// A mask that leaves nothing out is none.
    pub(super) fn new(
        samples: usize,
        tokens: usize,
        inputs: Vec<u32>,
        targets: Vec<u32>,
        mask: Option<Vec<bool>>,
        ids: Vec<u64>,
    ) -> Self {
        let mask = mask.filter(|mask| mask.contains(&false));
        let mut hash = Sha256::new();
        hash.update((samples as u64).to_le_bytes());
        hash.update((tokens as u64).to_le_bytes());
        for id in inputs.iter().chain(&targets) {
            hash.update(id.to_le_bytes());
        }
        for &counts in mask.iter().flatten() {
            hash.update([u8::from(counts)]);
        }
        let digest = hash.finalize();
        let tag = u64::from_le_bytes(std::array::from_fn(|byte| digest[byte]));
        Self { samples, tokens, inputs, targets, mask, ids, tag }
    }

    /// The same, its samples those of another data set, which are counted on from the `offset` of that before.
    #[must_use]
    pub fn counted_from(mut self, offset: u64) -> Self {
        self.ids.iter_mut().for_each(|id| *id += offset);
        self
    }

    /// How many targets count in the loss.
    pub fn trained(&self) -> usize {
        match &self.mask {
            Some(mask) => mask.iter().filter(|&&counts| counts).count(),
            None => self.targets.len(),
        }
    }
}
