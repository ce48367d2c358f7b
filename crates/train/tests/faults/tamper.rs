//! A link whose sending half changes, repeats or swallows frames.

use thinwire_codec::{CodecSpec, DType, Shape, TensorView};
use thinwire_link::{FrameHeader, FrameSender, Link, LinkError};

/// What becomes of a frame that is to be sent, an abort included.
pub(crate) enum Fate {
    /// It passes.
    Pass,
    /// Another one passes instead.
    Instead(FrameHeader, Vec<u8>),
    /// It passes, and another one after it.
    AndThen(FrameHeader, Vec<u8>),
    /// The sender fails.
    Fail(LinkError),
    /// Neither it nor anything later passes, and the link stays open: a process that is stopped.
    Mute,
    /// Neither it nor anything later passes, and the link breaks: a process that is killed.
    Vanish,
}

/// `link`, each of whose outgoing frames is judged.
pub(crate) fn tampered(link: Link, judge: impl FnMut(&FrameHeader, &[u8]) -> Fate + Send + 'static) -> Link {
    let sender = Tampering { inner: Some(link.sender), judge };
    Link { sender: Box::new(sender), ..link }
}

/// `header` with a raw f32 message of this shape, all of one value. The codec's own encoder takes no NaN, so it encodes
/// zeros.
pub(crate) fn all(value: f32, header: &FrameHeader, shape: Shape) -> Fate {
    let mut codec = "f32".parse::<CodecSpec>().unwrap().build().unwrap();
    let zeros = vec![0.0f32; shape.samples * shape.tokens * shape.channels];
    let mut payload = vec![0; codec.packed_size(shape, DType::F32).unwrap().bound()];
    codec.encode(TensorView::new(shape, zeros.as_slice()).unwrap(), &mut payload).unwrap();
    let start = payload.len() - size_of_val(zeros.as_slice());
    payload.truncate(start);
    payload.extend(value.to_le_bytes().repeat(zeros.len()));
    Fate::Instead(FrameHeader { shape, payload_len: payload.len() as u64, ..*header }, payload)
}

struct Tampering<J> {
    inner: Option<Box<dyn FrameSender>>,
    judge: J,
}

impl<J: FnMut(&FrameHeader, &[u8]) -> Fate + Send> FrameSender for Tampering<J> {
    fn send(&mut self, header: &FrameHeader, payload: &[u8]) -> Result<(), LinkError> {
        let Some(inner) = &mut self.inner else { return Ok(()) };
        match (self.judge)(header, payload) {
            Fate::Pass => inner.send(header, payload),
            Fate::Instead(header, payload) => inner.send(&header, &payload),
            Fate::AndThen(other, other_payload) => {
                inner.send(header, payload)?;
                inner.send(&other, &other_payload)
            }
            Fate::Fail(error) => Err(error),
            Fate::Mute => {
                std::mem::forget(self.inner.take());
                Ok(())
            }
            Fate::Vanish => {
                self.inner = None;
                Ok(())
            }
        }
    }

    fn close(&mut self) -> Result<(), LinkError> {
        self.inner.as_mut().map_or(Ok(()), |inner| inner.close())
    }
}
