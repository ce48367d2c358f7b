//! `thinwire codec`: the codecs on tensors in files.

mod decode;
mod encode;
mod input;
mod report;
mod roundtrip;

use clap::{Args, Subcommand};

use crate::error::CommandError;
use crate::output::Output;

/// Encode and decode tensors in .safetensors and .npy files.
///
/// A tensor's last dimension is channels, the one before it tokens, all others together samples.
#[derive(Debug, Args)]
pub(crate) struct Codec {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Encode(encode::Encode),
    Decode(decode::Decode),
    Roundtrip(roundtrip::Roundtrip),
}

impl Codec {
    pub(crate) fn run(self, output: Output) -> Result<(), CommandError> {
        match self.action {
            Action::Encode(action) => action.run(output),
            Action::Decode(action) => action.run(output),
            Action::Roundtrip(action) => action.run(output),
        }
    }
}
