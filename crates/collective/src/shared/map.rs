#![expect(unsafe_code, reason = "mapped memory as words")]

use std::fs::File;
use std::io;
use std::slice;
use std::sync::atomic::AtomicU64;

use memmap2::{MmapOptions, MmapRaw};

use crate::board::Memory;

/// A rank's file in memory.
#[derive(Debug)]
pub(super) struct Map {
    bytes: MmapRaw,
    /// Locked by the rank that writes.
    file: File,
    own: bool,
}

impl Map {
    /// The file of this rank, of a whole number of words, to be written.
    pub(super) fn own(file: File) -> io::Result<Self> {
        Ok(Self { bytes: MmapOptions::new().map_raw(&file)?, file, own: true })
    }

    /// The file of another rank, to be read.
    pub(super) fn other(file: File) -> io::Result<Self> {
        Ok(Self { bytes: MmapOptions::new().map_raw_read_only(&file)?, file, own: false })
    }
}

impl Memory for Map {
    #[expect(clippy::cast_ptr_alignment, reason = "a page is aligned for words")]
    fn words(&self) -> &[AtomicU64] {
        let words = self.bytes.len() / size_of::<AtomicU64>();
        // SAFETY: a mapping begins at a page, so words are aligned, and has `len` bytes until `bytes` is dropped, which outlives
        // the slice. Every bit pattern is a word. Other processes write them meanwhile, but this one makes no other references
        // than these to atomics, and of a read-only mapping the board makes relaxed loads alone.
        unsafe { slice::from_raw_parts(self.bytes.as_ptr().cast::<AtomicU64>(), words) }
    }

    fn is_abandoned(&self) -> bool {
        // A lock that can be shared is not held by the writer.
        if self.own || self.file.try_lock_shared().is_err() {
            return false;
        }
        // The next look takes it again; if it cannot be given back, it is no hindrance to anyone.
        let _ = self.file.unlock();
        true
    }
}
