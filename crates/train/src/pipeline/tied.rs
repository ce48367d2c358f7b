//! A matrix that the embedding and the head share, each with a copy of its own.
//!
//! Their gradients are added, embedding first, and both apply the same update. The first stage sends its share up the
//! chain, the last one sends its own down, so that both ends compute the same sum.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};
use thinwire_ops::square_norm;

use super::error::PipelineError;
use super::exchange::StepUp;
use crate::model::{ParamSet, Parameter, Part};

/// The gradients of a stage's parameters, in order.
pub(super) type Gradients = Vec<Option<Tensor<1>>>;

/// What the first stage sends when the head is on another.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Share {
    /// CRC-32 of the embedding's copy before the update.
    checksum: u32,
    /// The embedding's share of the gradient; `None` when the step is lost.
    gradient: Option<Vec<f32>>,
}

/// Where a stage has the copies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tie<'a> {
    params: &'a ParamSet,
    embedding: Option<usize>,
    head: Option<usize>,
}

impl<'a> Tie<'a> {
    /// The copies that `part` has; `None` when it has none, or the model does not tie them.
    pub(super) fn of(part: &'a Part) -> Option<Self> {
        let (embedding, head) = part.tied();
        let any = embedding.or(head).is_some();
        any.then(|| Self { params: part.params(), embedding, head })
    }

    /// What goes up the chain, from the stage that has the embedding alone.
    pub(super) fn share(self, gradients: &Gradients) -> Option<Share> {
        let at = self.embedding.filter(|_| self.head.is_none())?;
        Some(Share { checksum: self.checksum(at), gradient: gradients[at].as_ref().map(values) })
    }

    /// On the stage that has the head: the sum takes the place of both gradients, and its norm that of both norms.
    /// Returns the head's share for the first stage, if that is another.
    pub(super) fn add(
        self,
        step: u64,
        up: &mut StepUp,
        gradients: &mut Gradients,
    ) -> Result<Option<Vec<f32>>, PipelineError> {
        let Some(head) = self.head else { return Ok(None) };
        let (theirs, to_send) = match (self.embedding, up.tied.take()) {
            (Some(at), _) => (gradients[at].take(), false),
            (None, Some(share)) => {
                let (embedding, head) = (share.checksum, self.checksum(head));
                if embedding != head {
                    return Err(PipelineError::TiedDiffer { step: step - 1, embedding, head });
                }
                (share.gradient.map(|gradient| self.upload(gradient)).transpose()?, true)
            }
            (None, None) => return Err(PipelineError::TiedMissing),
        };
        let ours = gradients[head].take();
        let down = ours.as_ref().filter(|_| to_send).map(values);
        let sum = theirs.zip(ours).map(|(theirs, ours)| theirs + ours);
        // The matrix is one parameter, the model's first: its norm counts once, there.
        if let [first, .., last] = up.square_norms.as_mut_slice() {
            (*first, *last) = (sum.as_ref().map_or(0.0, square_norm), 0.0);
        }
        if let Some(at) = self.embedding {
            gradients[at].clone_from(&sum);
        }
        gradients[head] = sum;
        Ok(down)
    }

    /// On the first stage: adds the head's share to the embedding's.
    pub(super) fn complete(
        self,
        from_head: Vec<f32>,
        gradients: &mut Gradients,
    ) -> Result<(), PipelineError> {
        let Some(at) = self.embedding.filter(|_| self.head.is_none()) else { return Ok(()) };
        let theirs = self.upload(from_head)?;
        gradients[at] = gradients[at].take().map(|ours| ours + theirs);
        Ok(())
    }

    fn upload(self, gradient: Vec<f32>) -> Result<Tensor<1>, PipelineError> {
        let at = self.embedding.or(self.head);
        let expected = at.and_then(|at| self.params.iter().nth(at)).map_or(0, Parameter::len);
        if gradient.len() != expected {
            return Err(PipelineError::TiedLength { found: gradient.len(), expected });
        }
        Ok(self.params.upload(gradient))
    }

    fn checksum(self, at: usize) -> u32 {
        let value = self.params.iter().nth(at).expect("the position is the set's own").value.to_data();
        crc32fast::hash(value.as_bytes())
    }
}

fn values(tensor: &Tensor<1>) -> Vec<f32> {
    tensor.clone().into_data().try_into_vec::<f32>().expect("gradients are f32")
}
