//! A matrix that the embedding and the head share, each with a copy of its own.
//!
//! Their gradients are added, embedding first, and both apply the same update. The first stage sends its share up the
//! chain, the last one sends its own down, each through a codec. What a stage has sent it also adds in the form that
//! the other end decodes, so that both ends compute the same sum.

use burn::tensor::Tensor;
use crc32fast::Hasher;
use serde::{Deserialize, Serialize};
use thinwire_codec::{Codec, DType, EncodeError, PackedSize, Shape, TensorView, TensorViewMut};
use thinwire_ops::square_norm;

use super::error::PipelineError;
use super::exchange::StepUp;
use super::frames::{FrameKey, Topic};
use crate::model::{ParamSet, Part};

/// The gradients of a stage's parameters, in order.
pub type Gradients = Vec<Option<Tensor<1>>>;

/// What the first stage sends when the head is on another.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Share {
    /// CRC-32 of the embedding's copy before the update.
    checksum: u32,
    /// The embedding's share of the gradient, encoded; `None` when the step is lost.
    #[serde(with = "serde_bytes")]
    gradient: Option<Vec<u8>>,
}

/// Where a stage has the copies, in one step.
#[derive(Debug)]
pub(super) struct Tie<'a> {
    params: &'a ParamSet,
    embedding: Option<usize>,
    head: Option<usize>,
    codec: &'a mut dyn Codec,
    /// CRC-32 of the matrix's copy here, where the other one is elsewhere.
    checksum: u32,
    /// The matrix as one sample: rows are tokens.
    shape: Shape,
    step: u64,
    /// The stage that has the head.
    last: usize,
}

impl<'a> Tie<'a> {
    /// The copy that `part` has, of `stages` in all, whose whole is `checksum`; `None` when it has none or both ([`tie_here`]),
    /// or the model does not tie them.
    pub(super) fn of(
        part: &'a Part,
        checksum: u32,
        codec: &'a mut dyn Codec,
        step: u64,
        stages: usize,
    ) -> Option<Self> {
        let shape = part.architecture().tied_shape()?;
        let (embedding, head) = part.tied();
        let params = part.params();
        let one = embedding.is_some() != head.is_some();
        one.then(|| Self { params, embedding, head, codec, checksum, shape, step, last: stages - 1 })
    }

    /// What goes up the chain, from the stage that has the embedding.
    pub(super) fn share(&mut self, gradients: &mut Gradients) -> Result<Option<Share>, PipelineError> {
        let Some(at) = self.embedding else { return Ok(None) };
        let checksum = self.checksum;
        Ok(Some(Share { checksum, gradient: self.encode(self.last, &mut gradients[at])? }))
    }

    /// On the stage that has the head: the sum takes the place of its gradient, and its norm that of both norms. Returns the
    /// head's share for the first stage.
    pub(super) fn add(
        &mut self,
        up: &mut StepUp,
        gradients: &mut Gradients,
    ) -> Result<Option<Vec<u8>>, PipelineError> {
        let Some(head) = self.head else { return Ok(None) };
        let share = up.tied.take().ok_or(PipelineError::TiedMissing)?;
        let (embedding, checksum) = (share.checksum, self.checksum);
        if embedding != checksum {
            let step = self.step - 1;
            return Err(PipelineError::TiedDiffer { step, embedding, head: checksum });
        }
        let theirs = share.gradient.map(|bytes| self.decode(0, &bytes)).transpose()?;
        let down = self.encode(0, &mut gradients[head])?;
        let sum = sum(theirs, gradients[head].take());
        count_once(&mut up.square_norms, sum.as_ref());
        gradients[head] = sum;
        Ok(down)
    }

    /// On the first stage: adds the head's share to the embedding's.
    pub(super) fn complete(
        &mut self,
        from_head: Option<Vec<u8>>,
        gradients: &mut Gradients,
    ) -> Result<(), PipelineError> {
        let Some(at) = self.embedding else { return Ok(()) };
        let theirs = from_head.map(|bytes| self.decode(self.last, &bytes)).transpose()?;
        gradients[at] = sum(gradients[at].take(), theirs);
        Ok(())
    }

    /// The message with `gradient` for stage `peer`, whose value becomes what is decoded there. `None` when the step is
    /// lost.
    fn encode(
        &mut self,
        peer: usize,
        gradient: &mut Option<Tensor<1>>,
    ) -> Result<Option<Vec<u8>>, PipelineError> {
        let Some(exact) = gradient.take() else { return Ok(None) };
        let frame = self.frame();
        let mut values = exact.into_data().try_into_vec::<f32>().expect("gradients are f32");
        let mut bytes = vec![0; self.size()?.bound()];
        let view = TensorView::new(self.shape, values.as_slice())
            .map_err(|source| PipelineError::Codec { frame, source })?;
        match self.codec.encode(view, &mut bytes) {
            Ok(length) => bytes.truncate(length),
            // The norm has told: the step is lost already.
            Err(EncodeError::NonFinite { .. }) => return Ok(None),
            Err(source) => return Err(PipelineError::Encode { peer, frame, source }),
        }
        self.decode_into(peer, &bytes, &mut values)?;
        *gradient = Some(self.params.upload(values));
        Ok(Some(bytes))
    }

    /// The share in a message from stage `peer`.
    fn decode(&mut self, peer: usize, bytes: &[u8]) -> Result<Tensor<1>, PipelineError> {
        let (size, found) = (self.size()?, bytes.len());
        if !size.admits(found) {
            let (step, expected) = (self.step, size.bound());
            return Err(PipelineError::TiedLength { peer, step, found, expected });
        }
        let mut values = vec![0.0; self.shape.tokens * self.shape.channels];
        self.decode_into(peer, bytes, &mut values)?;
        Ok(self.params.upload(values))
    }

    fn decode_into(&mut self, peer: usize, bytes: &[u8], values: &mut [f32]) -> Result<(), PipelineError> {
        let frame = self.frame();
        let view = TensorViewMut::new(self.shape, values)
            .map_err(|source| PipelineError::Codec { frame, source })?;
        self.codec.decode(bytes, view).map_err(|source| PipelineError::Decode { peer, frame, source })
    }

    /// Bytes of a share's message.
    fn size(&self) -> Result<PackedSize, PipelineError> {
        let size = self.codec.packed_size(self.shape, DType::F32);
        size.map_err(|source| PipelineError::Codec { frame: self.frame(), source })
    }

    fn frame(&self) -> FrameKey {
        FrameKey::control(Topic::Step, self.step)
    }
}

/// The CRC-32 of the copy that a part has, or of the rows that a rank has of it, where the other copy is on another stage.
pub(super) fn checksum(part: &Part) -> Option<Hasher> {
    let (embedding, head) = part.tied();
    let at = embedding.xor(head)?;
    let mut hasher = Hasher::new();
    let parameter = part.params().iter().nth(at).expect("the position is the set's own");
    hasher.update(parameter.value.to_data().as_bytes());
    Some(hasher)
}

/// Where a part has both copies, or a rank its rows of both: their sum takes the place of either gradient, and its square that of
/// both in `squares`, one for each parameter that is trained.
///
/// A step in which a square is not finite is lost, and the squares have to tell which.
pub(super) fn tie_here(part: &Part, gradients: &mut Gradients, squares: &mut [f64]) {
    let (Some(embedding), Some(head)) = part.tied() else { return };
    if let [first, .., last] = squares
        && first.is_finite()
        && last.is_finite()
    {
        let sum = sum(gradients[embedding].take(), gradients[head].take());
        count_once(squares, sum.as_ref());
        gradients[embedding].clone_from(&sum);
        gradients[head] = sum;
    }
}

/// The matrix is one parameter, the model's first: its norm counts once, there.
fn count_once(squares: &mut [f64], sum: Option<&Tensor<1>>) {
    if let [first, .., last] = squares {
        (*first, *last) = (sum.map_or(0.0, square_norm), 0.0);
    }
}

/// `None` when either share is lost, so on both ends.
fn sum(embedding: Option<Tensor<1>>, head: Option<Tensor<1>>) -> Option<Tensor<1>> {
    embedding.zip(head).map(|(embedding, head)| embedding + head)
}
