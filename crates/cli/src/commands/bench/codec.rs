//! `thinwire bench codec`: encoding and decoding.

mod measure;
mod tensor;

use std::num::NonZero;
use std::time::Duration;

use clap::Args;
use thinwire_codec::{CodecSpec, DType, Execution, Isa};

use self::measure::measure;
use self::tensor::Tensor;
use crate::error::CommandError;
use crate::output::Output;

/// Encode and decode tensors that imitate activations, beside a plain copy of the same tensor, on every instruction set
/// of this processor.
///
/// They take turns with the raw codec; of each the fastest counts. One result for each combination of codec, instruction
/// set, number format, size and threads. It ends with the speed of a link from which on the raw values arrive before the
/// codec's: the size at which that falls below a link's own speed is the codec's `raw_below` for that link.
#[derive(Debug, Args)]
pub(super) struct CodecBench {
    /// Codecs, such as tah or fixed:bits=8; may be given again.
    #[arg(long = "codec", value_name = "SPEC", default_values = ["f32", "bf16", "fixed:bits=4", "fixed", "fixed:bits=8", "group", "tah", "tah:a=c", "tah:tau=0"])]
    codecs: Vec<CodecSpec>,
    /// Instruction sets: portable, avx2, avx512, neon [default: all this processor has].
    #[arg(long = "isa", value_name = "ISA")]
    isas: Vec<Isa>,
    /// Number formats of the tensor.
    #[arg(long = "dtype", value_name = "DTYPE", value_delimiter = ',', default_values = ["f32", "f16", "bf16"])]
    dtypes: Vec<DType>,
    /// Sizes of the tensor in KiB, whatever its format [default: 4,64,1024,8192,65536,262144].
    #[arg(long, value_name = "KIB", value_delimiter = ',')]
    kib: Vec<NonZero<usize>>,
    /// Samples that the tensor is cut into.
    #[arg(long, value_name = "N", default_value = "1")]
    samples: NonZero<usize>,
    /// Threads that share a message.
    #[arg(long, value_name = "N", value_delimiter = ',', default_values = ["1", "2"])]
    threads: Vec<NonZero<usize>>,
    /// A tenth of a second for each combination instead of a half, and by default sizes of 64 KiB and 8 MiB only.
    #[arg(long)]
    quick: bool,
}

impl CodecBench {
    pub(super) fn run(self, output: Output) -> Result<(), CommandError> {
        let isas = if self.isas.is_empty() { Isa::available() } else { self.isas };
        let (budget, sizes): (_, &[usize]) = if self.quick {
            (Duration::from_millis(100), &[64, 8192])
        } else {
            (Duration::from_millis(500), &[4, 64, 1024, 8192, 65536, 262_144])
        };
        let kib =
            if self.kib.is_empty() { sizes.to_vec() } else { self.kib.iter().map(|kib| kib.get()).collect() };
        for &dtype in &self.dtypes {
            for &kib in &kib {
                let tensor = Tensor::activation(dtype, kib.saturating_mul(1024), self.samples.get());
                for spec in &self.codecs {
                    for &isa in &isas {
                        for &threads in &self.threads {
                            output.print(&measure(*spec, Execution { isa, threads }, &tensor, budget)?)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }
}
