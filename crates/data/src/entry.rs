//! A token in tokenized data: 32 bits, the id and two flags.

/// Set in tokens that the model learns to predict.
pub(crate) const TRAINED: u32 = 1 << 31;
/// Set in the first token of each document.
pub(crate) const START: u32 = 1 << 30;
/// Ids lie below this.
pub(crate) const IDS: u32 = 1 << 30;

/// The token's id.
pub(crate) fn id(entry: u32) -> u32 {
    entry & (IDS - 1)
}

/// Whether the model learns to predict the token.
pub(crate) fn is_trained(entry: u32) -> bool {
    entry & TRAINED != 0
}

/// Whether the token begins a document.
pub(crate) fn is_start(entry: u32) -> bool {
    entry & START != 0
}
