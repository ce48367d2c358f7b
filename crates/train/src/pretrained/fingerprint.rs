//! Telling two models apart without reading them whole.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use thinwire_data::hash::hex;

/// Blocks that are read of each file, evenly spread, its first and last bytes among them.
const BLOCKS: u64 = 256;

/// Size of a block, in bytes.
const BLOCK: u64 = 4096;

/// A hash of the weights in `path`, a folder or a file: of each file's size and of 256 blocks of 4 KiB spread evenly
/// over it, files in the order of their names (which do not count).
///
/// A megabyte of each file is read, so stages can compare models of any size when they meet. Models of other training
/// differ in nearly every block; two that differ in some few values alone are not told apart.
///
/// # Errors
/// A file cannot be read.
pub fn fingerprint(path: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    for path in weight_files(path)? {
        let mut file = File::open(path)?;
        let size = file.metadata()?.len();
        hash.update(size.to_le_bytes());
        let last = size.saturating_sub(BLOCK);
        let mut block = Vec::new();
        for index in 0..BLOCKS {
            // No overflow: a file is far smaller than 2^56 bytes.
            file.seek(SeekFrom::Start(last * index / (BLOCKS - 1)))?;
            block.clear();
            (&mut file).take(BLOCK).read_to_end(&mut block)?;
            hash.update(&block);
        }
    }
    Ok(hex(&hash.finalize()))
}

/// The file, or the safetensors files of the folder.
fn weight_files(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "safetensors"));
    files.sort_unstable();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &[u8])]) -> String {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            fs::write(folder.path().join(name), bytes).unwrap();
        }
        fingerprint(folder.path()).unwrap()
    }

    #[test]
    fn weights_alone_count() {
        let weights: Vec<u8> = (0..2_000_000u32).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect();
        let whole = of(&[("model.safetensors", &weights)]);
        assert_eq!(whole, of(&[("a.safetensors", &weights), ("README.md", b"words")]));
        assert_ne!(whole, of(&[("model.safetensors", &weights[1..])]));
        let (front, back) = weights.split_at(1_000_000);
        assert_ne!(whole, of(&[("1.safetensors", front), ("2.safetensors", back)]));
        // Blocks begin every 7.8 kB here.
        for place in [0, 1_000_000, weights.len() - 8192] {
            let mut other = weights.clone();
            other[place..place + 8192].iter_mut().for_each(|byte| *byte ^= 1);
            assert_ne!(whole, of(&[("model.safetensors", &other)]), "{place}");
        }
    }
}
