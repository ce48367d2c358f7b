//! SHA-256 of files.

use std::fmt::Write;
use std::io::{self, Read};

use sha2::{Digest, Sha256};

/// `bytes` in lower-case hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes any text");
        text
    })
}

/// The SHA-256 of everything that is left in `input`, as [`hex`].
pub(super) fn sha256(mut input: impl Read) -> io::Result<String> {
    let mut sha = Sha256::new();
    let mut chunk = vec![0; 64 * 1024];
    loop {
        match input.read(&mut chunk)? {
            0 => return Ok(hex(&sha.finalize())),
            read => sha.update(&chunk[..read]),
        }
    }
}
