//! The thread that encodes and sends.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Instant;

use thinwire_codec::{Codec, DType, EncodeError, Shape, TensorView};
use thinwire_link::{FrameHeader, FrameSender};

use super::Terms;
use crate::config::NonFinitePolicy;
use crate::pipeline::compute::HostTensor;
use crate::pipeline::error::PipelineError;
use crate::pipeline::frames::{Arrival, FrameKey};
use crate::pipeline::inbox::Mailbox;
use crate::pipeline::meter::{Meter, Tracer, Work};

/// What the engine gives to be sent.
#[derive(Debug)]
pub(super) enum Outgoing {
    Tensor { key: FrameKey, tensor: HostTensor, ids: Vec<u64>, tag: u64 },
    Poisoned { key: FrameKey },
    Control { key: FrameKey, bytes: Vec<u8> },
    Abort { reason: String },
}

pub(super) struct SenderThread {
    pub(super) terms: Terms,
    pub(super) peer: usize,
    pub(super) link: Box<dyn FrameSender>,
    pub(super) codec: Box<dyn Codec>,
    pub(super) mailbox: Mailbox,
    pub(super) meter: Arc<Meter>,
    pub(super) tracer: Arc<Tracer>,
    pub(super) lane: String,
    /// Tensors sent so far.
    pub(super) sent: u64,
}

impl SenderThread {
    /// Sends until the queue closes or the link fails.
    pub(super) fn run(mut self, queue: &Receiver<Outgoing>) {
        let mut buffer = Vec::new();
        while let Ok(message) = queue.recv() {
            let sent = match message {
                Outgoing::Tensor { key, tensor, ids, tag } => {
                    self.send_tensor(key, &tensor, &ids, tag, &mut buffer)
                }
                Outgoing::Poisoned { key } => self.send_poisoned(key),
                Outgoing::Control { key, bytes } => self.send_plain(key, &bytes),
                Outgoing::Abort { reason } => {
                    // The run is over either way; the peer also learns it from the closing link.
                    let _ = self.link.abort(self.terms.run, &reason);
                    return;
                }
            };
            if let Err(error) = sent {
                let fatal = matches!(error, PipelineError::Link(_));
                self.mailbox.tell(Arrival::Failed(error));
                if fatal {
                    return;
                }
            }
        }
        let _ = self.link.close();
    }

    fn send_tensor(
        &mut self,
        key: FrameKey,
        tensor: &HostTensor,
        ids: &[u64],
        tag: u64,
        buffer: &mut Vec<u8>,
    ) -> Result<(), PipelineError> {
        let [samples, tokens, channels] = tensor.shape;
        let shape = Shape::new(samples, tokens, channels);
        let codec = |source| PipelineError::Codec { frame: key, source };
        let view = TensorView::new(shape, tensor.values.as_slice()).map_err(codec)?;
        let bound = self.codec.packed_size(shape, DType::F32).map_err(codec)?.bound();
        if buffer.len() < bound {
            buffer.resize(bound, 0);
        }
        let spec = self.codec.spec();
        let raw = spec.sends_raw(shape);
        let begin = Instant::now();
        let encoded = self.codec.encode_samples(ids, view, buffer);
        let span = if raw { "encode raw" } else { "encode" };
        self.meter
            .add_time(Work::Encode, self.tracer.record(&self.lane, span, begin, key.step, Some(key.index)));
        let length = match encoded {
            Ok(length) => length,
            Err(EncodeError::NonFinite { index, value }) => return self.lose(key, index, value),
            Err(source) => return Err(PipelineError::Encode { peer: self.peer, frame: key, source }),
        };
        let payload = &buffer[..length];
        self.meter.count(tensor.values.len(), length, raw);
        let number = self.sent;
        self.sent += 1;
        if self.terms.error_every > 0 && number.is_multiple_of(self.terms.error_every) {
            let stats = self.codec.measure(view, payload);
            let stats =
                stats.map_err(|source| PipelineError::Decode { peer: self.peer, frame: key, source })?;
            self.meter.add_error(&stats);
        }
        let header = FrameHeader {
            run: self.terms.run,
            step: key.step,
            micro_batch: key.index,
            kind: key.kind(),
            dtype: DType::F32,
            shape,
            codec: spec.sent_as(shape, DType::F32),
            tag,
            payload_len: length as u64,
        };
        self.send(key, &header, payload)
    }

    /// A value that is not finite: under `stop` the run ends, under `skip-step` the peer learns that the tensor is
    /// lost. An evaluation has no step to skip.
    fn lose(&mut self, key: FrameKey, index: usize, value: f32) -> Result<(), PipelineError> {
        let error =
            PipelineError::NotFinite { stage: self.terms.stage, peer: self.peer, frame: key, index, value };
        if self.terms.non_finite == NonFinitePolicy::Stop || key.poisoned_kind().is_none() {
            return Err(error);
        }
        self.mailbox.tell(Arrival::Lost(error));
        self.send_poisoned(key)
    }

    fn send_poisoned(&mut self, key: FrameKey) -> Result<(), PipelineError> {
        let kind = key.poisoned_kind().expect("only training frames are poisoned");
        let header = FrameHeader::without_tensor(self.terms.run, kind, key.step, key.index, 0);
        self.send(key, &header, &[])
    }

    fn send_plain(&mut self, key: FrameKey, bytes: &[u8]) -> Result<(), PipelineError> {
        let length = bytes.len() as u64;
        let header = FrameHeader::without_tensor(self.terms.run, key.kind(), key.step, key.index, length);
        self.send(key, &header, bytes)
    }

    fn send(&mut self, key: FrameKey, header: &FrameHeader, payload: &[u8]) -> Result<(), PipelineError> {
        let begin = Instant::now();
        let sent = self.link.send(header, payload);
        self.meter
            .add_time(Work::Send, self.tracer.record(&self.lane, "send", begin, key.step, Some(key.index)));
        Ok(sent?)
    }
}
