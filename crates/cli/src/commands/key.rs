//! `thinwire key`: the keys by which stages know each other.

use std::fmt;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use thinwire_link::SecretKey;

use crate::error::CommandError;
use crate::output::Output;

/// Make a stage's secret key, or show the public key of one.
///
/// The public key is what the configuration's `[[stage]]` entries pin.
#[derive(Debug, Args)]
pub(crate) struct Key {
    /// The key file, PKCS#8 PEM, readable by its owner only; made if it is not there.
    file: PathBuf,
}

#[derive(Debug, Serialize)]
struct Report {
    public_key: String,
    file: PathBuf,
    made: bool,
}

impl Key {
    pub(crate) fn run(self, output: Output) -> Result<(), CommandError> {
        let made = !self.file.exists();
        let key = if made { SecretKey::generate() } else { SecretKey::load(&self.file)? };
        if made {
            key.save(&self.file)?;
        }
        output.print(&Report { public_key: key.public().to_string(), file: self.file, made })?;
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.public_key)
    }
}
