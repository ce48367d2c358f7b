//! The half of a key that stays on its machine.

use std::{
    fmt, fs, io,
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
};

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use ring::{
    rand::SystemRandom,
    signature::{Ed25519KeyPair, KeyPair as _},
};
use rustls::pki_types::{PrivatePkcs8KeyDer, pem::PemObject as _};

use super::PublicKey;

/// An Ed25519 secret key: a stage's identity. Its `Debug` form shows the public key only.
pub struct SecretKey {
    pkcs8: PrivatePkcs8KeyDer<'static>,
    public: PublicKey,
}

/// A key file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The file could not be read.
    #[error("cannot read the key file {}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file could not be written; one that exists is never overwritten.
    #[error("cannot write the key file {}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Other users of the machine can read or change the file.
    #[error("the key file {} is open to others (mode {mode:03o}); make it yours alone: chmod 600 {}",
        .path.display(), .path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The file holds something else.
    #[error("the key file {} is not an Ed25519 secret key in PKCS#8 PEM", .path.display())]
    Format {
        /// The file.
        path: PathBuf,
    },
}

/// More than any Ed25519 key file needs, in bytes.
const LARGEST_FILE: u64 = 16 * 1024;

const PEM_LABEL: &str = "PRIVATE KEY";

impl SecretKey {
    /// A fresh key from the system's random source.
    ///
    /// # Panics
    /// If the system has no working random source.
    pub fn generate() -> Self {
        let document =
            Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("the system's random source works");
        Self::from_pkcs8(document.as_ref().to_vec()).expect("a key just made is valid")
    }

    /// The key in `path`, PKCS#8 PEM.
    ///
    /// # Errors
    /// [`KeyError`]: unreadable, another format or, on Unix, accessible to group or others.
    pub fn load(path: &Path) -> Result<Self, KeyError> {
        let read = |source| KeyError::Read { path: path.to_owned(), source };
        let file = fs::File::open(path).map_err(read)?;
        refuse_exposed(path, &file.metadata().map_err(read)?)?;
        let mut pem = Vec::new();
        file.take(LARGEST_FILE).read_to_end(&mut pem).map_err(read)?;
        PrivatePkcs8KeyDer::from_pem_slice(&pem)
            .ok()
            .and_then(|der| Self::from_pkcs8(der.secret_pkcs8_der().to_vec()))
            .ok_or_else(|| KeyError::Format { path: path.to_owned() })
    }

    /// Writes the key to a new file, PKCS#8 PEM, for its owner alone (mode 0600 on Unix).
    ///
    /// # Errors
    /// [`KeyError::Write`], also where the file exists.
    pub fn save(&self, path: &Path) -> Result<(), KeyError> {
        create_private(path)
            .and_then(|mut file| {
                file.write_all(self.to_pem().as_bytes())?;
                file.sync_all()
            })
            .map_err(|source| KeyError::Write { path: path.to_owned(), source })
    }

    /// The half to give to others.
    pub fn public(&self) -> PublicKey {
        self.public
    }

    pub(crate) fn pkcs8(&self) -> &PrivatePkcs8KeyDer<'static> {
        &self.pkcs8
    }

    fn from_pkcs8(der: Vec<u8>) -> Option<Self> {
        // "Maybe unchecked": other tools write version 1, which has no public key to check against.
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).ok()?;
        let public = PublicKey::new(pair.public_key().as_ref().try_into().ok()?);
        Some(Self { pkcs8: der.into(), public })
    }

    fn to_pem(&self) -> String {
        let base64 = BASE64.encode(self.pkcs8.secret_pkcs8_der());
        let mut lines = String::new();
        for (position, character) in base64.chars().enumerate() {
            if position % 64 == 0 {
                lines.push('\n');
            }
            lines.push(character);
        }
        format!("-----BEGIN {PEM_LABEL}-----{lines}\n-----END {PEM_LABEL}-----\n")
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretKey").field("public", &self.public).finish_non_exhaustive()
    }
}

#[cfg(unix)]
fn refuse_exposed(path: &Path, metadata: &fs::Metadata) -> Result<(), KeyError> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = metadata.permissions().mode() & 0o777;
    let others = mode & 0o077;
    if others == 0 { Ok(()) } else { Err(KeyError::Exposed { path: path.to_owned(), mode }) }
}

#[cfg(not(unix))]
fn refuse_exposed(_path: &Path, _metadata: &fs::Metadata) -> Result<(), KeyError> {
    Ok(())
}

fn create_private(path: &Path) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
