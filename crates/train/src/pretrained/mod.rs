//! Models that others made, as this crate's own: what they are, which weights, the same on every stage.

mod decoder;
mod fingerprint;
mod load;
mod tokenizer;

use thinwire_pretrained::DecoderConfig;

pub use fingerprint::fingerprint;
pub use load::{load_into, load_part, load_shard};
pub use tokenizer::{
    TokenizerError, is_model, load_tokenizer, load_tokenizer_and_stop, model_tokenizer, read_tokenizer,
};

use crate::config::ModelConfig;
use crate::model::Architecture;

impl From<&DecoderConfig> for Architecture {
    fn from(config: &DecoderConfig) -> Self {
        Self::new(&ModelConfig::from(config), config.vocab)
    }
}
