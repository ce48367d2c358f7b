use crate::element::Element;
use crate::kernel::LANES;
use crate::kernel::difference::{Add, Subtract};
use crate::message::Payload;
use crate::raw::{Raw, RawSettings};
use crate::scale::MessageScale;
use crate::threads::Workers;
use crate::{DType, MemoryError, SampleMemory};

/// One end of a boundary: its memory, and the message that is being worked on.
#[derive(Debug)]
pub(super) struct End {
    memory: Box<dyn SampleMemory>,
    /// The number format of the memory.
    keep: Raw,
    /// Those of the message come first.
    samples: Vec<Sample>,
    /// Samples of the message.
    count: usize,
    /// The tensor as the receiver has it.
    pub(super) values: Vec<f32>,
    /// What is remembered of the sample that is being worked on.
    m: Vec<f32>,
}

/// A sample of the message.
#[derive(Debug, Default)]
struct Sample {
    name: u64,
    /// What is remembered of it: before the message, then after it.
    kept: Vec<u8>,
}

impl End {
    pub(super) fn new(keep: DType, memory: Box<dyn SampleMemory>) -> Self {
        let keep = Raw(RawSettings { dtype: keep });
        Self { memory, keep, samples: Vec::new(), count: 0, values: Vec::new(), m: Vec::new() }
    }

    /// Begins a message of `samples` samples of `len` values each.
    pub(super) fn begin(
        &mut self,
        names: impl Iterator<Item = u64>,
        samples: usize,
        len: usize,
    ) -> Result<(), MemoryError> {
        self.samples.resize_with(self.samples.len().max(samples), Sample::default);
        self.count = samples;
        self.values.resize(samples * len, 0.0);
        self.m.resize(len, 0.0);
        for (sample, name) in self.samples.iter_mut().zip(names) {
            sample.name = name;
            self.memory.read(name, &mut sample.kept)?;
        }
        Ok(())
    }

    /// The name of sample `i` of the message.
    pub(super) fn name(&self, i: usize) -> u64 {
        self.samples[i].name
    }

    /// CRC-32 of what is remembered of sample `i` of the message; `None` if it has not been seen.
    pub(super) fn checksum(&self, i: usize) -> Option<u32> {
        let kept = &self.samples[i].kept;
        (!kept.is_empty()).then(|| crc32fast::hash(kept))
    }

    /// The values of sample `i` of the message.
    pub(super) fn sample_mut(&mut self, i: usize) -> &mut [f32] {
        &mut self.values[i * self.m.len()..][..self.m.len()]
    }

    /// Recalls `m`, what is remembered of sample `i`: 0 for tokens that it does not have.
    pub(super) fn recall(&mut self, workers: &Workers, i: usize) -> Result<(), MemoryError> {
        let Sample { name, kept } = &self.samples[i];
        let size = self.keep.0.dtype.size();
        let values = self.m.len().min(kept.len() / size);
        let (m, missing) = self.m.split_at_mut(values);
        missing.fill(0.0);
        let bytes = &kept[..values * size];
        let read = self.keep.decode(workers, &bytes.len(), bytes, MessageScale::ONE, m);
        read.map_err(|_| MemoryError::Damaged { sample: *name })
    }

    /// Makes `x - m` the values of sample `i`, which has been recalled.
    pub(super) fn subtract<E: Element>(&mut self, workers: &Workers, i: usize, x: &[E]) {
        let Self { m, values, .. } = self;
        let (part, values) = (part(workers, m.len()), &mut values[i * m.len()..][..m.len()]);
        let parts = x.chunks(part).zip(m.chunks(part)).zip(values.chunks_mut(part));
        workers.enter(x.len(), || {
            workers.for_each(parts, |((x, m), out)| workers.isa.run(Subtract { x, m, out }));
        });
    }

    /// Adds `m` to the values of sample `i`, which has been recalled.
    pub(super) fn add(&mut self, workers: &Workers, i: usize) {
        let Self { m, values, .. } = self;
        let (part, values) = (part(workers, m.len()), &mut values[i * m.len()..][..m.len()]);
        let parts = m.chunks(part).zip(values.chunks_mut(part));
        workers.enter(m.len(), || {
            workers.for_each(parts, |(m, values)| workers.isa.run(Add { m, values }));
        });
    }

    /// Makes the values of sample `i` what is to be remembered of it. Tokens beyond them stay as they are.
    pub(super) fn keep(&mut self, workers: &Workers, i: usize) {
        let values = &self.values[i * self.m.len()..][..self.m.len()];
        let bytes = values.len() * self.keep.0.dtype.size();
        let kept = &mut self.samples[i].kept;
        kept.resize(kept.len().max(bytes), 0);
        self.keep.encode(workers, &bytes, values, MessageScale::ONE, &mut kept[..bytes]);
    }

    /// Remembers the samples of the message as [`End::keep`] left them.
    pub(super) fn commit(&mut self) -> Result<(), MemoryError> {
        self.samples[..self.count].iter().try_for_each(|sample| self.memory.write(sample.name, &sample.kept))
    }
}

/// Values of the part of a sample that each thread gets.
fn part(workers: &Workers, values: usize) -> usize {
    values.div_ceil(workers.worth(values)).next_multiple_of(LANES)
}
