//! Keys and values of the tokens that were seen, so that the next one costs one token's work.

use burn::tensor::{Device, Tensor};

use super::Part;
use super::attention::Heads;

/// The keys and values of one sequence in the blocks of a [`Part`].
///
/// All memory is taken at the start: `2 * capacity * kv_heads * head_dim` values a block.
#[derive(Clone, Debug)]
pub struct KvCache {
    /// One for each unit of the part; those of embedding and head stay empty.
    layers: Vec<LayerCache>,
    tokens: usize,
    capacity: usize,
}

/// Keys (after the rotation) and values of one block: `[capacity, kv_heads * head_dim]`, the first `tokens` rows filled.
#[derive(Clone, Debug)]
pub(crate) struct LayerCache {
    rows: Option<[Tensor<2>; 2]>,
    shape: [usize; 2],
    device: Device,
    tokens: usize,
}

impl KvCache {
    /// An empty cache for `part`, whose parameters are on `device`, with room for `capacity` tokens.
    ///
    /// # Panics
    /// When the capacity is above the model's context.
    pub fn new(part: &Part, capacity: usize, device: &Device) -> Self {
        let arch = part.architecture();
        assert!(capacity <= arch.context, "room for {capacity} tokens, of a context of {}", arch.context);
        let Heads { key_value, dim, .. } = Heads::of(arch, part.params().shard());
        let shape = [capacity, key_value * dim];
        let layer = || LayerCache { rows: None, shape, device: device.clone(), tokens: 0 };
        let layers = part.units().map(|_| layer()).collect();
        Self { layers, tokens: 0, capacity }
    }

    /// Tokens seen so far.
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// Counts `tokens` more; the position of the first of them.
    pub(super) fn advance(&mut self, samples: usize, tokens: usize) -> usize {
        assert_eq!(samples, 1, "a cache is for one sequence");
        let start = self.tokens;
        self.tokens += tokens;
        assert!(self.tokens <= self.capacity, "{} tokens, room for {}", self.tokens, self.capacity);
        start
    }

    /// The cache of the part's unit `index`, a block.
    pub(super) fn layer(&mut self, index: usize) -> &mut LayerCache {
        &mut self.layers[index]
    }
}

impl LayerCache {
    /// Appends keys and values, `[tokens, kv_heads * head_dim]` each; all of them up to here.
    pub(super) fn extend(&mut self, new: [Tensor<2>; 2]) -> [Tensor<2>; 2] {
        let end = self.tokens + new[0].dims()[0];
        let kind = (&self.device, new[0].dtype());
        let empty = || [(); 2].map(|()| Tensor::zeros(self.shape, kind));
        // Taken out, so that nothing else holds the storage and the rows are written in place.
        let [keys, values] = self.rows.take().unwrap_or_else(empty);
        let [new_keys, new_values] = new;
        let keys = keys.slice_assign([self.tokens..end, 0..self.shape[1]], new_keys);
        let values = values.slice_assign([self.tokens..end, 0..self.shape[1]], new_values);
        self.tokens = end;
        let filled = [&keys, &values].map(|rows| rows.clone().narrow(0, 0, end));
        self.rows = Some([keys, values]);
        filled
    }
}
