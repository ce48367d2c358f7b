//! Two ends of a boundary whose memories can be looked into.

use std::num::NonZero;
use std::sync::{Arc, Mutex};

use thinwire_codec::{
    AqsgdSettings, Codec, CodecSpec, DType, DecodeError, Execution, Isa, MemoryError, RamMemory,
    SampleMemory, Shape, TensorView, TensorViewMut,
};

/// A memory that a test can look into.
#[derive(Debug, Clone)]
pub(crate) struct Glass(Arc<Mutex<RamMemory>>);

impl Glass {
    pub(crate) fn new(limit: u64) -> Self {
        Self(Arc::new(Mutex::new(RamMemory::new(u64::MAX, limit))))
    }

    /// Everything that is kept.
    pub(crate) fn content(&self) -> Vec<(u64, Vec<u8>)> {
        let mut memory = self.0.lock().unwrap();
        let all = memory.samples().into_iter().map(|sample| {
            let mut kept = Vec::new();
            memory.read(sample, &mut kept).unwrap();
            (sample, kept)
        });
        all.collect()
    }
}

impl SampleMemory for Glass {
    fn read(&mut self, sample: u64, kept: &mut Vec<u8>) -> Result<(), MemoryError> {
        self.0.lock().unwrap().read(sample, kept)
    }

    fn write(&mut self, sample: u64, kept: &mut Vec<u8>) -> Result<(), MemoryError> {
        self.0.lock().unwrap().write(sample, kept)
    }

    fn samples(&self) -> Vec<u64> {
        self.0.lock().unwrap().samples()
    }

    fn bytes(&self) -> u64 {
        self.0.lock().unwrap().bytes()
    }
}

/// An encoder and a decoder, and what each remembers.
pub(crate) struct Ends {
    pub(crate) encoder: Box<dyn Codec>,
    pub(crate) decoder: Box<dyn Codec>,
    pub(crate) sent: Glass,
    pub(crate) received: Glass,
}

impl Ends {
    pub(crate) fn new(spec: &str) -> Self {
        let plain = execution(Isa::choose().unwrap(), 1);
        Self::with(spec, [plain, plain], [u64::MAX; 2])
    }

    /// How the two ends compute, and what they may keep.
    pub(crate) fn with(spec: &str, executions: [Execution; 2], limits: [u64; 2]) -> Self {
        let settings = settings(spec);
        let [sent, received] = limits.map(Glass::new);
        let build = |execution| {
            settings.build(execution, Box::new(sent.clone()), Box::new(received.clone())).unwrap()
        };
        let [encoder, decoder] = executions.map(build);
        Self { encoder, decoder, sent, received }
    }

    /// The message of `x`.
    pub(crate) fn encode(&mut self, ids: &[u64], shape: Shape, x: &[f32]) -> Vec<u8> {
        let mut message = vec![0xa5; self.encoder.packed_size(shape, DType::F32).unwrap().bound()];
        let length =
            self.encoder.encode_samples(ids, TensorView::new(shape, x).unwrap(), &mut message).unwrap();
        message.truncate(length);
        message
    }

    pub(crate) fn decode(&mut self, shape: Shape, message: &[u8]) -> Result<Vec<f32>, DecodeError> {
        let mut out = vec![f32::NAN; shape.elements().unwrap()];
        self.decoder.decode(message, TensorViewMut::new(shape, &mut out[..]).unwrap()).map(|()| out)
    }

    /// The message of `x`, and what becomes of it.
    pub(crate) fn pass(&mut self, ids: &[u64], shape: Shape, x: &[f32]) -> (Vec<u8>, Vec<f32>) {
        let message = self.encode(ids, shape, x);
        let decoded = self.decode(shape, &message).unwrap();
        (message, decoded)
    }
}

pub(crate) fn execution(isa: Isa, threads: usize) -> Execution {
    Execution { isa, threads: NonZero::new(threads).unwrap() }
}

pub(crate) fn settings(spec: &str) -> AqsgdSettings {
    match spec.parse().unwrap() {
        CodecSpec::Aqsgd(settings) => settings,
        other => panic!("{other}"),
    }
}

pub(crate) fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}
