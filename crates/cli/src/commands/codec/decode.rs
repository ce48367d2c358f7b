//! `thinwire codec decode`

use std::path::PathBuf;

use clap::Args;

use super::report::Packed;
use crate::error::CommandError;
use crate::message_file::MessageFile;
use crate::output::Output;
use crate::tensor;

/// Decode a message file, as `codec encode` writes it, into a .safetensors or .npy file.
///
/// Name, shape and number format are those of the tensor that was encoded.
#[derive(Debug, Args)]
pub(super) struct Decode {
    /// The message file.
    #[arg(value_name = "IN")]
    path: PathBuf,
    /// The .safetensors or .npy file to write.
    #[arg(long, value_name = "OUT")]
    out: PathBuf,
}

impl Decode {
    pub(super) fn run(self, output: Output) -> Result<(), CommandError> {
        let file = MessageFile::read(&self.path)?;
        let tensor = file.decode(&self.path)?;
        tensor::write(&self.out, &file.description.tensor, &tensor)?;
        let description = file.description;
        let packed = Packed::new(description.codec, description.tensor, &tensor, file.message.len())?;
        Ok(output.print(&packed)?)
    }
}
