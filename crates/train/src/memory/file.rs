//! A memory on a disk.
//!
//! The file is read and written where a sample's place is, not mapped into memory: of a mapped file, a full or failing
//! disk ends the process by a signal instead of an error that says what happened, and it takes `unsafe`. The system keeps
//! what fits of it in its page cache all the same.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use thinwire_codec::{MemoryError, SampleMemory};

/// A memory in a file without a name, which is gone with the process, however that ends. Only the samples written so
/// far take room on the disk, if its file system has sparse files.
#[derive(Debug)]
pub struct FileMemory {
    file: File,
    folder: PathBuf,
    /// Bytes of a sample's place.
    place: u64,
    /// Bytes kept of each sample.
    lengths: Vec<u32>,
    bytes: u64,
}

impl FileMemory {
    /// An empty memory in `folder` for the samples `0..samples`, of at most `longest` bytes each. In this process it takes
    /// 4 bytes a sample.
    ///
    /// # Errors
    /// The folder or the file cannot be created; a sample of 4 GiB or more.
    pub fn create(folder: &Path, samples: u64, longest: u64) -> io::Result<Self> {
        let too_large =
            || io::Error::new(io::ErrorKind::FileTooLarge, format!("{samples} samples of {longest} bytes"));
        u32::try_from(longest).map_err(|_| too_large())?;
        samples.checked_mul(longest).filter(|end| i64::try_from(*end).is_ok()).ok_or_else(too_large)?;
        fs::create_dir_all(folder)?;
        let file = tempfile::tempfile_in(folder)?;
        let lengths = vec![0; usize::try_from(samples).map_err(|_| too_large())?];
        Ok(Self { file, folder: folder.into(), place: longest, lengths, bytes: 0 })
    }

    /// Bytes kept of a sample.
    fn length(&mut self, sample: u64) -> Result<&mut u32, MemoryError> {
        let samples = self.lengths.len() as u64;
        let length = usize::try_from(sample).ok().and_then(|sample| self.lengths.get_mut(sample));
        length.ok_or(MemoryError::Unknown { sample, samples })
    }

    fn seek(&mut self, sample: u64) -> io::Result<&mut File> {
        self.file.seek(SeekFrom::Start(sample * self.place))?;
        Ok(&mut self.file)
    }

    fn failed(&self, action: &'static str, sample: u64) -> impl Fn(io::Error) -> MemoryError + use<> {
        let folder = self.folder.clone();
        move |error| MemoryError::Failed {
            action,
            sample,
            reason: format!("a file in {}: {error}", folder.display()),
        }
    }
}

impl SampleMemory for FileMemory {
    fn read(&mut self, sample: u64, kept: &mut Vec<u8>) -> Result<(), MemoryError> {
        kept.resize(*self.length(sample)? as usize, 0);
        if kept.is_empty() {
            return Ok(());
        }
        let read = self.seek(sample).and_then(|file| file.read_exact(kept));
        read.map_err(self.failed("read", sample))
    }

    fn write(&mut self, sample: u64, kept: &mut Vec<u8>) -> Result<(), MemoryError> {
        let (place, needed) = (self.place, kept.len() as u64);
        let old = *self.length(sample)?;
        if needed > place {
            return Err(MemoryError::Full { sample, needed, limit: place });
        }
        let written = self.seek(sample).and_then(|file| file.write_all(kept));
        written.map_err(self.failed("write", sample))?;
        *self.length(sample)? = needed as u32;
        self.bytes = self.bytes - u64::from(old) + needed;
        Ok(())
    }

    fn samples(&self) -> Vec<u64> {
        let seen = self.lengths.iter().enumerate().filter(|(_, length)| **length > 0);
        seen.map(|(sample, _)| sample as u64).collect()
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use thinwire_codec::RamMemory;

    use super::*;

    #[test]
    fn it_remembers_what_a_memory_in_the_process_does() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = FileMemory::create(&folder.path().join("new/folder"), 5, 8).unwrap();
        let mut ram = RamMemory::new(5, u64::MAX);
        let (mut from_file, mut from_ram) = (vec![7], vec![7]);
        for (sample, kept) in
            [(4, vec![1; 8]), (0, vec![2; 3]), (4, vec![3; 4]), (2, vec![4; 8]), (0, vec![5; 8])]
        {
            file.write(sample, &mut kept.clone()).unwrap();
            ram.write(sample, &mut kept.clone()).unwrap();
            for sample in 0..5 {
                file.read(sample, &mut from_file).unwrap();
                ram.read(sample, &mut from_ram).unwrap();
                assert_eq!(from_file, from_ram, "sample {sample}");
            }
            assert_eq!((file.samples(), file.bytes()), (ram.samples(), ram.bytes()));
        }
        assert_eq!(fs::read_dir(folder.path().join("new/folder")).unwrap().count(), 0, "it has no name");
    }

    #[test]
    fn what_has_no_place_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mut memory = FileMemory::create(folder.path(), 5, 8).unwrap();
        let mut kept = Vec::new();
        let unknown = MemoryError::Unknown { sample: 5, samples: 5 };
        assert_eq!(memory.write(5, &mut vec![1]), Err(unknown.clone()));
        assert_eq!(memory.read(5, &mut kept), Err(unknown));
        assert_eq!(
            memory.write(1, &mut vec![1; 9]),
            Err(MemoryError::Full { sample: 1, needed: 9, limit: 8 })
        );
        assert!(memory.samples().is_empty());
        assert!(FileMemory::create(folder.path(), u64::MAX, 8).is_err());
        assert!(FileMemory::create(folder.path(), 1, 1 << 32).is_err());
    }
}
