//! The thread that receives and decodes.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Instant;

use thinwire_codec::{Codec, DType, TensorViewMut};
use thinwire_link::{FrameHeader, FrameKind, FrameReceiver, LinkError, WaitingFor};

use super::Terms;
use crate::pipeline::compute::HostTensor;
use crate::pipeline::error::PipelineError;
use crate::pipeline::frames::{Arrival, Body, Content, FrameKey, Side};
use crate::pipeline::inbox::Mailbox;
use crate::pipeline::meter::{Meter, Tracer, Work};

pub(super) struct ReceiverThread {
    pub(super) terms: Terms,
    pub(super) side: Side,
    pub(super) peer: usize,
    pub(super) link: Box<dyn FrameReceiver>,
    pub(super) codec: Box<dyn Codec>,
    pub(super) mailbox: Mailbox,
    pub(super) meter: Arc<Meter>,
    pub(super) tracer: Arc<Tracer>,
    pub(super) lane: String,
}

impl ReceiverThread {
    /// Receives until the link ends, whose reason is the last arrival, or the engine is gone.
    pub(super) fn run(mut self) {
        let mut payload = Vec::new();
        loop {
            match self.receive(&mut payload) {
                Ok(Some((key, body))) => {
                    let due = Instant::now() + self.terms.latency;
                    if !self.mailbox.deliver(self.peer, key, body, due) {
                        return;
                    }
                }
                Ok(None) => {}
                Err(error) => return self.mailbox.tell(Arrival::Failed(error)),
            }
        }
    }

    /// One frame; `None` when nothing has come within the link's deadline. Whether something should have is for the
    /// engine to judge: between frames this thread has nothing to wait for.
    fn receive(&mut self, payload: &mut Vec<u8>) -> Result<Option<(FrameKey, Body)>, PipelineError> {
        let waiting_for = WaitingFor::new(self.expected_kind(), 0, 0, self.longest_payload());
        let header = match self.link.receive(&waiting_for, payload) {
            Ok(header) => header,
            Err(LinkError::Silent { progress, .. }) if progress.done == 0 => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let begin = Instant::now();
        let Some(key) = FrameKey::of(header.kind, header.step, header.micro_batch) else {
            let frame = FrameKey { content: Content::Control, step: header.step, index: header.micro_batch };
            return Err(self.mismatch(frame, "the kind", header.kind, "a frame of a step"));
        };
        if !self.comes_this_way(key.content) {
            return Err(self.mismatch(key, "the direction", header.kind, self.expected_kind()));
        }
        let body = match key.content {
            Content::Control => Body::Control(std::mem::take(payload)),
            _ if header.kind.is_poisoned() => Body::Poisoned,
            _ => Body::Tensor { tensor: self.decode(key, &header, payload)?, tag: header.tag },
        };
        let micro_batch = (key.content != Content::Control).then_some(key.index);
        self.meter
            .add_time(Work::Decode, self.tracer.record(&self.lane, "decode", begin, key.step, micro_batch));
        Ok(Some((key, body)))
    }

    fn decode(
        &mut self,
        key: FrameKey,
        header: &FrameHeader,
        payload: &[u8],
    ) -> Result<HostTensor, PipelineError> {
        let (shape, largest) = (header.shape, self.terms.largest);
        let codec = self.codec.spec().sent_as(shape, DType::F32);
        if header.codec != codec {
            return Err(self.mismatch(key, "the codec", header.codec, codec));
        }
        if header.dtype != DType::F32 {
            return Err(self.mismatch(key, "the dtype", header.dtype, DType::F32));
        }
        if shape.channels != largest.channels {
            return Err(self.mismatch(key, "the number of channels", shape.channels, largest.channels));
        }
        if shape.samples > largest.samples || shape.tokens > largest.tokens {
            return Err(self.mismatch(key, "the shape", shape, format!("at most {largest}")));
        }
        let mut values = vec![0.0f32; shape.samples * shape.tokens * shape.channels];
        let codec = |source| PipelineError::Codec { frame: key, source };
        let view = TensorViewMut::new(shape, values.as_mut_slice()).map_err(codec)?;
        self.codec.decode(payload, view).map_err(|source| PipelineError::Decode {
            peer: self.peer,
            frame: key,
            source,
        })?;
        Ok(HostTensor { shape: [shape.samples, shape.tokens, shape.channels], values })
    }

    /// Activations come from the previous stage, gradients from the next.
    fn comes_this_way(&self, content: Content) -> bool {
        match content {
            Content::Forward | Content::Eval => self.side == Side::Previous,
            Content::Backward => self.side == Side::Next,
            Content::Control => true,
        }
    }

    /// What the neighbour owes most of the time.
    fn expected_kind(&self) -> FrameKind {
        match self.side {
            Side::Previous => FrameKind::Forward,
            Side::Next => FrameKind::Backward,
        }
    }

    fn longest_payload(&self) -> u64 {
        let tensor = self.codec.longest_message(self.terms.largest, DType::F32).unwrap_or(0);
        self.terms.longest_control.max(tensor as u64)
    }

    fn mismatch(
        &self,
        frame: FrameKey,
        what: &'static str,
        found: impl Display,
        expected: impl Display,
    ) -> PipelineError {
        let (found, expected) = (found.to_string(), expected.to_string());
        PipelineError::Mismatch { peer: self.peer, frame, what, found, expected }
    }
}
