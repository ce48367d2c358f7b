#![doc = include_str!("../README.md")]
#![cfg_attr(
    not(target_arch = "x86_64"),
    expect(dead_code, reason = "the vector kernels are written for the instruction sets of x86-64 only")
)]

mod aqsgd;
mod codec;
mod dtype;
mod element;
mod error;
mod fixed;
mod group;
mod isa;
mod kernel;
mod memory;
mod message;
mod raw;
mod raw_below;
mod scale;
mod shape;
mod simd;
mod spec;
mod stats;
mod tah;
mod tensor;
mod threads;

pub use aqsgd::AqsgdSettings;
pub use codec::{Codec, CodecId, PackedSize};
pub use dtype::DType;
pub use error::{CodecError, DecodeError, EncodeError, SpecError};
pub use fixed::FixedSettings;
pub use group::{GroupSettings, Quantizer};
pub use isa::{Execution, Isa};
pub use memory::{MemoryError, NoMemory, RamMemory, SampleMemory};
pub use message::{FORMAT_VERSION, HEADER_LEN};
pub use raw::RawSettings;
pub use shape::Shape;
pub use spec::{CodecSpec, Fields};
pub use stats::ErrorStats;
pub use tah::{Allocation, Selection, TahSettings};
pub use tensor::{TensorView, TensorViewMut, Values, ValuesMut};
