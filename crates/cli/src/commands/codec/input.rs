//! The tensor to encode, and encoding it.

use std::num::NonZero;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use thinwire_codec::{Codec, CodecSpec, EncodeError, Execution};

use crate::error::CommandError;
use crate::tensor::{self, Tensor};

/// What to encode, and how.
#[derive(Debug, Args)]
pub(super) struct Input {
    /// Codec and settings, as in `tah`, `tah:g=32,p=0.5`, `fixed:bits=6,group=64` or `raw:dtype=bf16`.
    #[arg(long, value_name = "SPEC")]
    codec: CodecSpec,
    /// Threads that share a message.
    #[arg(long, value_name = "N", default_value = "1")]
    threads: NonZero<usize>,
    /// Name of the tensor in a .safetensors file; may be left out if the file has only one.
    #[arg(long, value_name = "NAME")]
    tensor: Option<String>,
    /// A .safetensors file (F32, F16 or BF16 values), or a .npy file (little-endian f32 or f16, C order).
    #[arg(value_name = "IN")]
    pub(super) path: PathBuf,
}

/// A tensor that a codec refused.
#[derive(Debug, thiserror::Error)]
#[error("cannot encode tensor {tensor:?} of {}", path.display())]
struct NotEncoded {
    tensor: String,
    path: PathBuf,
    source: EncodeError,
}

impl Input {
    /// The codec. Samples in a file come for the first time, however often they are encoded.
    pub(super) fn build(&self) -> Result<Box<dyn Codec>, CommandError> {
        Ok(self.codec.build_memoryless(Execution { threads: self.threads, ..Execution::choose()? })?)
    }

    /// The tensor's name and the tensor.
    pub(super) fn read(&self) -> Result<(String, Tensor), CommandError> {
        Ok(tensor::read(&self.path, self.tensor.as_deref())?)
    }

    /// The tensor as a message, and the seconds it took.
    pub(super) fn encode(
        &self,
        name: &str,
        tensor: &Tensor,
        codec: &mut dyn Codec,
    ) -> Result<(Vec<u8>, f64), CommandError> {
        let x = tensor.view()?;
        let mut message = vec![0; codec.packed_size(x.shape(), x.dtype())?.bound()];
        let mut encode = || {
            codec.encode(x, &mut message).map_err(|source| NotEncoded {
                tensor: name.to_owned(),
                path: self.path.clone(),
                source,
            })
        };
        // The first call sizes the codec's scratch memory; the second shows what each further message costs.
        encode()?;
        let (length, seconds) = timed(encode);
        message.truncate(length?);
        Ok((message, seconds))
    }
}

/// The result of `work` and the seconds it took.
pub(super) fn timed<R>(work: impl FnOnce() -> R) -> (R, f64) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed().as_secs_f64())
}
