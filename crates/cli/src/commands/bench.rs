//! `thinwire bench`: speed on this machine.

use std::fmt;
use std::hint::black_box;
use std::num::NonZero;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use half::{bf16, f16};
use serde::Serialize;
use thinwire_codec::{
    CodecSpec, DType, Execution, Isa, Shape, TensorView, TensorViewMut, Values, ValuesMut,
};

use crate::error::CommandError;
use crate::output::Output;

/// Channels of the tensors.
const CHANNELS: usize = 1024;

/// Tokens after which the tensor repeats itself.
const PERIOD: usize = 1024;

/// Measure speed on this machine.
#[derive(Debug, Args)]
pub(crate) struct Bench {
    #[command(subcommand)]
    subject: Subject,
}

#[derive(Debug, Subcommand)]
enum Subject {
    Codec(CodecBench),
}

impl Bench {
    pub(crate) fn run(self, output: Output) -> Result<(), CommandError> {
        let Subject::Codec(bench) = self.subject;
        bench.run(output)
    }
}

/// Encode and decode tensors that imitate activations, beside a plain copy of the same tensor, on every instruction set
/// of this processor.
///
/// The three take turns; of each the fastest counts. One result for each combination of codec, instruction set, number
/// format, size and threads.
#[derive(Debug, Args)]
struct CodecBench {
    /// Codecs, such as tah or fixed:bits=8; may be given again.
    #[arg(long = "codec", value_name = "SPEC", default_values = ["f32", "bf16", "fixed:bits=4", "fixed", "fixed:bits=8", "tah", "tah:a=c", "tah:tau=0"])]
    codecs: Vec<CodecSpec>,
    /// Instruction sets: portable, avx2, avx512, neon [default: all this processor has].
    #[arg(long = "isa", value_name = "ISA")]
    isas: Vec<Isa>,
    /// Number formats of the tensor.
    #[arg(long = "dtype", value_name = "DTYPE", value_delimiter = ',', default_values = ["f32", "f16", "bf16"])]
    dtypes: Vec<DType>,
    /// Sizes of the tensor in KiB, whatever its format.
    #[arg(long, value_name = "KIB", value_delimiter = ',', default_values = ["4", "64", "1024", "8192", "65536", "262144"])]
    kib: Vec<NonZero<usize>>,
    /// Threads.
    #[arg(long, value_name = "N", value_delimiter = ',', default_values = ["1", "2"])]
    threads: Vec<NonZero<usize>>,
    /// A tenth of a second for each combination instead of a half, and sizes of 64 KiB and 8 MiB only.
    #[arg(long)]
    quick: bool,
}

impl CodecBench {
    fn run(self, output: Output) -> Result<(), CommandError> {
        let isas = if self.isas.is_empty() { Isa::available() } else { self.isas };
        let (budget, kib) = if self.quick {
            let sizes = [64, 8192].map(|size| NonZero::new(size).unwrap_or(NonZero::<usize>::MIN));
            (Duration::from_millis(100), sizes.to_vec())
        } else {
            (Duration::from_millis(500), self.kib)
        };
        for &dtype in &self.dtypes {
            for kib in &kib {
                let tensor = Tensor::activation(dtype, kib.get() * 1024);
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

/// What one codec did with one tensor.
#[derive(Debug, Serialize)]
struct Row {
    codec: CodecSpec,
    isa: &'static str,
    threads: usize,
    dtype: &'static str,
    /// Of the tensor.
    bytes: usize,
    elements: usize,
    bits_per_element: f64,
    rel_sq_error: f64,
    /// Elements a second, and billions of the tensor's bytes a second.
    encode: Speed,
    decode: Speed,
    copy: Speed,
    encode_of_copy: f64,
    decode_of_copy: f64,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct Speed {
    elements_per_second: f64,
    gb_per_second: f64,
}

fn measure(
    spec: CodecSpec,
    execution: Execution,
    x: &Tensor,
    budget: Duration,
) -> Result<Row, CommandError> {
    let mut codec = spec.build_with(execution)?;
    let (shape, view) = (x.shape(), TensorView::new(x.shape(), x.values())?);
    let mut message = vec![0; codec.packed_size(shape, view.dtype())?.bound()];
    let mut out = Tensor::zeros(view.dtype(), x.len());
    let mut fastest = [f64::INFINITY; 3];
    let start = Instant::now();
    let mut rounds = 0;
    while rounds < 3 || start.elapsed() < budget {
        let round = Instant::now();
        let bytes = codec.encode(black_box(view), black_box(&mut message))?;
        let encoded = Instant::now();
        codec.decode(
            black_box(&message[..bytes]),
            TensorViewMut::new(shape, black_box(&mut out).values_mut())?,
        )?;
        let decoded = Instant::now();
        black_box(&mut out).copy_from(black_box(x));
        let copied = Instant::now();
        let times = [encoded - round, decoded - encoded, copied - decoded];
        for (fastest, time) in fastest.iter_mut().zip(times) {
            *fastest = fastest.min(time.as_secs_f64());
        }
        rounds += 1;
    }
    let bytes = x.len() * view.dtype().size();
    let [encode, decode, copy] = fastest.map(|seconds| Speed {
        elements_per_second: x.len() as f64 / seconds,
        gb_per_second: bytes as f64 / seconds / 1e9,
    });
    Ok(Row {
        codec: spec,
        isa: execution.isa.name(),
        threads: execution.threads.get(),
        dtype: view.dtype().name(),
        bytes,
        elements: x.len(),
        bits_per_element: 8.0 * message.len() as f64 / x.len() as f64,
        rel_sq_error: codec.measure(view, &message)?.rel_sq_error(),
        encode,
        decode,
        copy,
        encode_of_copy: encode.elements_per_second / copy.elements_per_second,
        decode_of_copy: decode.elements_per_second / copy.elements_per_second,
    })
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let giga = |speed: Speed| speed.elements_per_second / 1e9;
        write!(
            f,
            "{:<40} {:<8} {:<4} {:>7} KiB {:>2} threads  encode {:>6.3} G/s {:>5.2} of copy  \
             decode {:>6.3} G/s {:>5.2} of copy  copy {:>6.3} G/s  {:>6.3} bits  error {:.1e}",
            self.codec.to_string(),
            self.isa,
            self.dtype,
            self.bytes / 1024,
            self.threads,
            giga(self.encode),
            self.encode_of_copy,
            giga(self.decode),
            self.decode_of_copy,
            giga(self.copy),
            self.bits_per_element,
            self.rel_sq_error,
        )
    }
}

/// `[1, tokens, CHANNELS]` in one of the number formats.
enum Tensor {
    F32(Vec<f32>),
    F16(Vec<f16>),
    BF16(Vec<bf16>),
}

impl Tensor {
    /// Every channel Gaussian, with scales between 1/3 and 3, one channel in a hundred fifty times larger.
    fn activation(dtype: DType, bytes: usize) -> Self {
        let tokens = (bytes / dtype.size() / CHANNELS).max(1);
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut uniform = || {
            // xorshift64: speed and shape are what counts here.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1 << 24) as f32
        };
        let scales: Vec<f32> = (0..CHANNELS)
            .map(|channel| {
                3_f32.powf(2.0 * uniform() - 1.0) * if channel % 100 == 7 { 50.0 } else { 1.0 }
            })
            .collect();
        let period: Vec<f32> = (0..tokens.min(PERIOD) * CHANNELS)
            .map(|i| ((0..12).map(|_| uniform()).sum::<f32>() - 6.0) * scales[i % CHANNELS])
            .collect();
        let values = period.iter().cycle().take(tokens * CHANNELS);
        match dtype {
            DType::F32 => Self::F32(values.copied().collect()),
            DType::F16 => Self::F16(values.map(|&value| f16::from_f32(value)).collect()),
            DType::BF16 => Self::BF16(values.map(|&value| bf16::from_f32(value)).collect()),
        }
    }

    fn zeros(dtype: DType, len: usize) -> Self {
        match dtype {
            DType::F32 => Self::F32(vec![0.0; len]),
            DType::F16 => Self::F16(vec![f16::ZERO; len]),
            DType::BF16 => Self::BF16(vec![bf16::ZERO; len]),
        }
    }

    fn len(&self) -> usize {
        self.values().len()
    }

    fn shape(&self) -> Shape {
        Shape::new(1, self.len() / CHANNELS, CHANNELS)
    }

    fn values(&self) -> Values<'_> {
        match self {
            Self::F32(values) => Values::F32(values),
            Self::F16(values) => Values::F16(values),
            Self::BF16(values) => Values::BF16(values),
        }
    }

    fn values_mut(&mut self) -> ValuesMut<'_> {
        match self {
            Self::F32(values) => ValuesMut::F32(values),
            Self::F16(values) => ValuesMut::F16(values),
            Self::BF16(values) => ValuesMut::BF16(values),
        }
    }

    /// Of the same format and length.
    fn copy_from(&mut self, other: &Self) {
        match (self, other) {
            (Self::F32(out), Self::F32(values)) => out.copy_from_slice(values),
            (Self::F16(out), Self::F16(values)) => out.copy_from_slice(values),
            (Self::BF16(out), Self::BF16(values)) => out.copy_from_slice(values),
            _ => unreachable!("made for the same tensor"),
        }
    }
}
