//! `thinwire codec roundtrip`

use std::fmt;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::input::{Input, timed};
use super::report::Packed;
use crate::error::CommandError;
use crate::output::Output;
use crate::tensor::{self, Tensor};

/// Encode and decode a tensor, and report size, error and time on this machine's processor.
#[derive(Debug, Args)]
pub(super) struct Roundtrip {
    #[command(flatten)]
    input: Input,
    /// Where to write the result, as tensor `decoded` of a .safetensors file or as a .npy file.
    #[arg(long, value_name = "OUT")]
    out: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
struct Report {
    #[serde(flatten)]
    packed: Packed,
    /// `|decoded - x|^2 / |x|^2`
    rel_sq_error: f64,
    max_abs_error: f64,
    encode_seconds: f64,
    decode_seconds: f64,
}

impl Roundtrip {
    pub(super) fn run(self, output: Output) -> Result<(), CommandError> {
        let (name, tensor) = self.input.read()?;
        let mut codec = self.input.build()?;
        let (message, encode_seconds) = self.input.encode(&name, &tensor, &mut *codec)?;
        let stats = codec.measure(tensor.view()?, &message)?;
        let mut decoded = Tensor::zeros(tensor.dims().to_vec(), tensor.dtype())?;
        let view = decoded.view_mut()?;
        let (result, decode_seconds) = timed(|| codec.decode(&message, view));
        result?;
        if let Some(out) = &self.out {
            tensor::write(out, "decoded", &decoded)?;
        }
        Ok(output.print(&Report {
            packed: Packed::new(codec.spec(), name, &tensor, message.len())?,
            rel_sq_error: stats.rel_sq_error(),
            max_abs_error: stats.max_abs_error,
            encode_seconds,
            decode_seconds,
        })?)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.packed)?;
        writeln!(
            f,
            "error    {:.3e} squared, relative to the tensor; {:.3e} at most",
            self.rel_sq_error, self.max_abs_error
        )?;
        let milliseconds = |seconds: f64| seconds * 1e3;
        write!(
            f,
            "time     {:.3} ms to encode, {:.3} ms to decode",
            milliseconds(self.encode_seconds),
            milliseconds(self.decode_seconds)
        )
    }
}
