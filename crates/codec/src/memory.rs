use std::collections::BTreeMap;
use std::fmt::Debug;
use std::mem;

use thiserror::Error;

/// What one end of a boundary keeps of every sample that has crossed it: `m` of AQ-SGD.
///
/// To a memory it is bytes under a number. The two ends of a boundary have one each, and must have the same in them.
pub trait SampleMemory: Debug + Send {
    /// Replaces the content of `kept` by what was written last for `sample`, by nothing if it has not been written.
    ///
    /// # Errors
    /// A sample that the memory was not made for, or one that cannot be read.
    fn read(&mut self, sample: u64, kept: &mut Vec<u8>) -> Result<(), MemoryError>;

    /// Keeps the content of `kept`, which is not empty, for `sample`, instead of what was kept before. `kept` may have any
    /// content afterwards.
    ///
    /// # Errors
    /// A sample that the memory was not made for, or one that it has no room for; then it keeps what it had.
    fn write(&mut self, sample: u64, kept: &mut Vec<u8>) -> Result<(), MemoryError>;

    /// The samples that have been written, in ascending order.
    fn samples(&self) -> Vec<u64>;

    /// Bytes kept of all of them.
    fn bytes(&self) -> u64;
}

/// Why a memory cannot be used any more.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// The memory is as large as it may become.
    #[error("sample {sample} does not fit: with it {needed} bytes would be kept, and the limit is {limit}")]
    Full {
        /// The sample's name.
        sample: u64,
        /// Bytes with this sample.
        needed: u64,
        /// Bytes that may be kept.
        limit: u64,
    },
    /// The memory was made for other samples.
    #[error("there is no sample {sample}: {samples} are known")]
    Unknown {
        /// The sample's name.
        sample: u64,
        /// Samples that there are, from 0.
        samples: u64,
    },
    /// What was read is not what was written.
    #[error("what is kept of sample {sample} is damaged")]
    Damaged {
        /// The sample's name.
        sample: u64,
    },
    /// The place where the memory lies fails.
    #[error("cannot {action} what is kept of sample {sample}: {reason}")]
    Failed {
        /// `read` or `write`.
        action: &'static str,
        /// The sample's name.
        sample: u64,
        /// What the system says.
        reason: String,
    },
}

/// A memory in this process.
#[derive(Debug)]
pub struct RamMemory {
    kept: BTreeMap<u64, Vec<u8>>,
    bytes: u64,
    samples: u64,
    limit: u64,
}

impl RamMemory {
    /// An empty memory for the samples `0..samples`, of at most `limit` bytes.
    pub const fn new(samples: u64, limit: u64) -> Self {
        Self { kept: BTreeMap::new(), bytes: 0, samples, limit }
    }

    /// An empty one as large as the machine has room for.
    pub(crate) fn boxed() -> Box<dyn SampleMemory> {
        Box::new(Self::new(u64::MAX, u64::MAX))
    }
}

impl SampleMemory for RamMemory {
    fn read(&mut self, sample: u64, kept: &mut Vec<u8>) -> Result<(), MemoryError> {
        kept.clear();
        kept.extend_from_slice(self.kept.get(&sample).map_or(&[], |kept| kept));
        Ok(())
    }

    /// Exchanges the old content for the new one; only a first one is copied.
    fn write(&mut self, sample: u64, kept: &mut Vec<u8>) -> Result<(), MemoryError> {
        if sample >= self.samples {
            return Err(MemoryError::Unknown { sample, samples: self.samples });
        }
        let old = self.kept.get(&sample).map_or(0, |old| old.len() as u64);
        let needed = self.bytes - old + kept.len() as u64;
        if needed > self.limit {
            return Err(MemoryError::Full { sample, needed, limit: self.limit });
        }
        match self.kept.get_mut(&sample) {
            Some(old) => mem::swap(old, kept),
            None => drop(self.kept.insert(sample, kept.clone())),
        }
        self.bytes = needed;
        Ok(())
    }

    fn samples(&self) -> Vec<u64> {
        self.kept.keys().copied().collect()
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// A memory in which nothing stays: to it, every sample comes for the first time.
///
/// For tensors none of which comes again, as in a single evaluation of a text.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoMemory;

impl SampleMemory for NoMemory {
    fn read(&mut self, _: u64, kept: &mut Vec<u8>) -> Result<(), MemoryError> {
        kept.clear();
        Ok(())
    }

    fn write(&mut self, _: u64, _: &mut Vec<u8>) -> Result<(), MemoryError> {
        Ok(())
    }

    fn samples(&self) -> Vec<u64> {
        Vec::new()
    }

    fn bytes(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_counts_what_is_kept_now() {
        let mut memory = RamMemory::new(8, 10);
        let mut kept = vec![9];
        memory.read(7, &mut kept).unwrap();
        assert!(kept.is_empty());
        memory.write(7, &mut vec![1; 6]).unwrap();
        assert_eq!(
            memory.write(3, &mut vec![2; 5]),
            Err(MemoryError::Full { sample: 3, needed: 11, limit: 10 })
        );
        memory.write(7, &mut vec![3; 5]).unwrap();
        memory.write(3, &mut vec![2; 5]).unwrap();
        assert_eq!(memory.write(8, &mut vec![1]), Err(MemoryError::Unknown { sample: 8, samples: 8 }));
        memory.read(7, &mut kept).unwrap();
        assert_eq!((kept, memory.samples(), memory.bytes()), (vec![3; 5], vec![3, 7], 10));
    }
}
