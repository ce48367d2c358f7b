//! `thinwire codec encode`

use std::path::PathBuf;

use clap::Args;

use super::input::Input;
use super::report::Packed;
use crate::error::CommandError;
use crate::message_file::{Description, MessageFile};
use crate::output::Output;

/// Encode a tensor into a message file, which `codec decode` reads.
#[derive(Debug, Args)]
pub(super) struct Encode {
    #[command(flatten)]
    input: Input,
    /// The message file to write.
    #[arg(long, value_name = "OUT")]
    out: PathBuf,
}

impl Encode {
    pub(super) fn run(self, output: Output) -> Result<(), CommandError> {
        let (name, tensor) = self.input.read()?;
        let mut codec = self.input.build()?;
        let (message, _) = self.input.encode(&name, &tensor, &mut *codec)?;
        let packed = Packed::new(codec.spec(), name.clone(), &tensor, message.len())?;
        let description = Description { tensor: name, shape: tensor.dims().to_vec(), codec: codec.spec() };
        MessageFile { description, dtype: tensor.dtype(), message }.write(&self.out)?;
        Ok(output.print(&packed)?)
    }
}
