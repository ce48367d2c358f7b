use std::marker::PhantomData;

use half::{bf16, f16};

use crate::element::Element;
use crate::kernel::LANES;
use crate::kernel::difference::{Add, Subtract};
use crate::message::{Max, Payload};
use crate::raw::{Raw, RawSettings};
use crate::scale::MessageScale;
use crate::threads::Workers;
use crate::{DType, MemoryError, SampleMemory};

/// One end of a boundary: its memory, and the message that is being worked on.
#[derive(Debug)]
pub(super) struct End {
    memory: Box<dyn SampleMemory>,
    /// The number format of the memory.
    keep: DType,
    /// Those of the message come first.
    samples: Vec<Sample>,
    /// Samples of the message.
    count: usize,
    /// Values of a sample.
    len: usize,
    /// The tensor as the receiver has it.
    pub(super) values: Vec<f32>,
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
        Self { memory, keep, samples: Vec::new(), count: 0, len: 0, values: Vec::new() }
    }

    /// Begins a message of `samples` samples of `len` values each.
    pub(super) fn begin(
        &mut self,
        names: impl Iterator<Item = u64>,
        samples: usize,
        len: usize,
    ) -> Result<(), MemoryError> {
        self.samples.resize_with(self.samples.len().max(samples), Sample::default);
        self.values.resize(samples * len, 0.0);
        (self.count, self.len) = (samples, len);
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
        &mut self.values[i * self.len..][..self.len]
    }

    /// As many of the values that are remembered of sample `i`, as bytes, as the message has; 0 where there are none yet.
    /// And the sample's values.
    fn kept_and_values(&mut self, i: usize) -> (&mut [u8], &mut [f32]) {
        let (kept, bytes) = (&mut self.samples[i].kept, self.len * self.keep.size());
        kept.resize(kept.len().max(bytes), 0);
        (&mut kept[..bytes], &mut self.values[i * self.len..][..self.len])
    }

    /// Makes `x - m` the values of sample `i`, `m` being what is remembered.
    pub(super) fn subtract<E: Element>(
        &mut self,
        workers: &Workers,
        i: usize,
        x: &[E],
    ) -> Result<(), MemoryError> {
        let max = match self.keep {
            DType::F32 => self.subtract_as::<E, f32>(workers, i, x),
            DType::F16 => self.subtract_as::<E, f16>(workers, i, x),
            DType::BF16 => self.subtract_as::<E, bf16>(workers, i, x),
        };
        self.whole(i, max)
    }

    fn subtract_as<E: Element, K: Element>(&mut self, workers: &Workers, i: usize, x: &[E]) -> f32 {
        let max = Max::default();
        let (m, values) = self.kept_and_values(i);
        let part = part(workers, x.len());
        let parts = x.chunks(part).zip(m.chunks(part * K::DTYPE.size())).zip(values.chunks_mut(part));
        workers.enter(x.len(), || {
            workers.for_each(parts, |((x, m), out)| {
                max.note(workers.isa.run(Subtract { x, m, format: PhantomData::<K>, out }));
            });
        });
        max.into_inner()
    }

    /// Adds `m` to the values of sample `i`, and makes them what is to be remembered of it. Tokens beyond them stay as they are.
    pub(super) fn add(&mut self, workers: &Workers, i: usize) -> Result<(), MemoryError> {
        let max = match self.keep {
            DType::F32 => self.add_as::<f32>(workers, i),
            DType::F16 => self.add_as::<f16>(workers, i),
            DType::BF16 => self.add_as::<bf16>(workers, i),
        };
        self.whole(i, max)
    }

    fn add_as<K: Element>(&mut self, workers: &Workers, i: usize) -> f32 {
        let max = Max::default();
        let len = self.len;
        let (m, values) = self.kept_and_values(i);
        let part = part(workers, len);
        let parts = m.chunks_mut(part * K::DTYPE.size()).zip(values.chunks_mut(part));
        workers.enter(len, || {
            workers.for_each(parts, |(m, values)| {
                max.note(workers.isa.run(Add { m, format: PhantomData::<K>, values }));
            });
        });
        max.into_inner()
    }

    /// Nothing is ever remembered that is not finite.
    fn whole(&self, i: usize, max: f32) -> Result<(), MemoryError> {
        if max.is_finite() { Ok(()) } else { Err(MemoryError::Damaged { sample: self.name(i) }) }
    }

    /// Makes the values of sample `i`, of which nothing is remembered, what is to be.
    pub(super) fn keep_first(&mut self, workers: &Workers, i: usize) {
        let mut keep = Raw(RawSettings { dtype: self.keep });
        let (kept, values) = self.kept_and_values(i);
        keep.encode(workers, &kept.len(), values, MessageScale::ONE, kept);
    }

    /// Remembers the samples of the message.
    pub(super) fn commit(&mut self) -> Result<(), MemoryError> {
        let Self { memory, samples, count, .. } = self;
        samples[..*count].iter_mut().try_for_each(|sample| memory.write(sample.name, &mut sample.kept))
    }
}

/// Values of the part of a sample that each thread gets.
fn part(workers: &Workers, values: usize) -> usize {
    values.div_ceil(workers.worth(values)).next_multiple_of(LANES)
}
