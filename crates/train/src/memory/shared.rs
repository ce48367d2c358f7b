//! A memory with two owners.

use std::sync::{Arc, Mutex, MutexGuard};

use thinwire_codec::{MemoryError, SampleMemory};

/// A memory that a link's thread works with, and the engine looks at between two steps, when that thread rests.
#[derive(Debug, Clone)]
pub struct SharedMemory(Arc<Mutex<dyn SampleMemory>>);

impl SharedMemory {
    /// Shares `memory`.
    pub fn new(memory: impl SampleMemory + 'static) -> Self {
        Self(Arc::new(Mutex::new(memory)))
    }

    fn lock(&self) -> MutexGuard<'_, dyn SampleMemory + 'static> {
        self.0.lock().expect("no holder panics")
    }
}

impl SampleMemory for SharedMemory {
    fn read(&mut self, sample: u64, kept: &mut Vec<u8>) -> Result<(), MemoryError> {
        self.lock().read(sample, kept)
    }

    fn write(&mut self, sample: u64, kept: &mut Vec<u8>) -> Result<(), MemoryError> {
        self.lock().write(sample, kept)
    }

    fn samples(&self) -> Vec<u64> {
        self.lock().samples()
    }

    fn bytes(&self) -> u64 {
        self.lock().bytes()
    }
}
