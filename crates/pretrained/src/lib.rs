//! Language models on disk, in other people's formats.
//!
//! [`Pretrained::open`] takes a Hugging Face folder or a GGUF file and gives one view of both: a [`DecoderConfig`], and
//! f32 tensors by Hugging Face name, in Hugging Face's layout, one at a time. [`TokenizerFiles`] is the tokenizer that
//! came with them, and [`export()`] writes a folder that the transformers library loads.
//!
//! What loads and what is refused is listed in `docs/models.md`. No tensor library is involved, and no file is trusted:
//! lengths are checked before anything is allocated, and a field that asks for another computation than the supported
//! ones is an error.

#![forbid(unsafe_code)]

mod config;
mod error;
mod export;
mod folder;
mod format;
mod gguf;
#[cfg(feature = "hub")]
mod hub;
mod layout;
mod pretrained;
mod stored;
mod tokenizer;

pub use config::{DecoderConfig, Family, Rope, RopeScaling, TensorSpec};
pub use error::Error;
pub use export::{AdapterConfig, AdapterExport, Export, ExportFormat, export, export_adapter};
pub use format::Format;
pub use gguf::{Array, Gguf, Metadata, Value};
pub use pretrained::Pretrained;
pub use tokenizer::{SpecialToken, TokenizerFiles};
