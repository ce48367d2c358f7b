//! What AQ-SGD will remember, and where.

use std::num::NonZero;

use thinwire_codec::{AqsgdSettings, Codec, CodecSpec, Execution, NoMemory, RamMemory};

use super::{RunError, Setup};
use crate::config::{ByteSize, MemoryConfig, MemoryPlace};
use crate::data::Dataset;
use crate::memory::{BoundaryMemory, End, FileMemory, SharedMemory};

impl Setup {
    /// Refuses a boundary whose ends would have to remember more than the configuration lets them.
    pub(super) fn check_memory(&self) -> Result<(), RunError> {
        let limit = self.config.pipeline.memory.limit;
        for before in self.map.boundaries() {
            let CodecSpec::Aqsgd(settings) = self.config.pipeline.boundary(before).forward else { continue };
            let (samples, tokens) = (self.samples(), self.longest_sample());
            let needed = samples.saturating_mul(tokens).saturating_mul(self.token_bytes(settings));
            if needed > limit.0 {
                let needed = ByteSize(needed);
                return Err(RunError::Memory { before, settings, samples, tokens, needed, limit });
            }
        }
        Ok(())
    }

    /// The codec of the activations, at this `end` of the boundary in front of block `before`, and what it remembers.
    pub(super) fn activation_codec(
        &self,
        codec: CodecSpec,
        before: usize,
        end: End,
    ) -> Result<(Box<dyn Codec>, Option<BoundaryMemory>), RunError> {
        let CodecSpec::Aqsgd(settings) = codec else { return Ok((self.build(codec)?, None)) };
        let memory = self.memory(settings)?;
        let own = Box::new(memory.clone());
        let execution = self.execution()?;
        let codec = match end {
            End::Sent => settings.build(execution, own, Box::new(NoMemory)),
            End::Received => settings.build(execution, Box::new(NoMemory), own),
        };
        let memory = BoundaryMemory {
            before,
            end,
            keep: settings.keep,
            token_bytes: self.token_bytes(settings),
            tokens: self.longest_sample(),
            samples: self.samples(),
            memory,
        };
        Ok((codec?, Some(memory)))
    }

    fn memory(&self, settings: AqsgdSettings) -> Result<SharedMemory, RunError> {
        let MemoryConfig { place, limit, dir } = &self.config.pipeline.memory;
        Ok(match place {
            MemoryPlace::Ram => SharedMemory::new(RamMemory::new(self.samples(), limit.0)),
            MemoryPlace::File => {
                let folder = dir.as_ref().unwrap_or(&self.config.run.dir);
                let longest = self.longest_sample().saturating_mul(self.token_bytes(settings));
                let file = FileMemory::create(folder, self.samples(), longest);
                SharedMemory::new(
                    file.map_err(|source| RunError::MemoryFile { folder: folder.clone(), source })?,
                )
            }
        })
    }

    /// How codecs compute.
    pub(super) fn execution(&self) -> Result<Execution, RunError> {
        let threads = NonZero::new(self.config.pipeline.codec_threads).unwrap_or(NonZero::<usize>::MIN);
        Ok(Execution { threads, ..Execution::choose()? })
    }

    /// Sequences of the training data and, counted on, those of the held-out data.
    fn samples(&self) -> u64 {
        let heldout = |heldout: &Dataset| heldout.evaluation_samples(self.config.eval.tokens) as u64;
        self.first_heldout_sample() + self.heldout.as_ref().map_or(0, heldout)
    }

    /// The name of the first sequence of the held-out data.
    pub(super) fn first_heldout_sample(&self) -> u64 {
        self.batches.dataset().samples() as u64
    }

    /// Tokens of the longest sequence.
    fn longest_sample(&self) -> u64 {
        let heldout = self.heldout.as_ref().map_or(0, Dataset::longest);
        self.batches.dataset().longest().max(heldout) as u64
    }

    /// Bytes that are kept of a token.
    fn token_bytes(&self, settings: AqsgdSettings) -> u64 {
        (self.architecture.hidden as u64).saturating_mul(settings.keep.size() as u64)
    }
}
