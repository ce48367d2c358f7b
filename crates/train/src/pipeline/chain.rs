//! A whole pipeline in one thread: the passes, the codecs and the updates of its stages without links, so the same bits.

use crc32fast::Hasher;
use thinwire_codec::{Codec, DType, Shape, TensorView, TensorViewMut};

use super::compute::{Compute, Forwarded, HostTensor};
use super::error::PipelineError;
use super::exchange::StepUp;
use super::frames::{Content, FrameKey};
use super::pass::Pass;
use super::step::{not_finite, square_norms};
use super::tied::{Gradients, Tie, checksum, tie_here};
use crate::data::MicroBatch;
use crate::optim::{AdamW, RateSchedule, clip_factor};

/// One stage's share of the work.
#[derive(Debug)]
pub struct ChainStage {
    /// Its part of the model.
    pub compute: Compute,
    /// Its optimizer.
    pub optimizer: AdamW,
}

/// What passes a boundary, through the codecs of the two directions.
#[derive(Debug)]
pub struct Crossing {
    /// Codec of the activations.
    pub forward: Box<dyn Codec>,
    /// Codec of the gradients.
    pub backward: Box<dyn Codec>,
}

/// Whether what passes a boundary is encoded and decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// By the codecs, as in a run.
    Compressed,
    /// It arrives as it left.
    Exact,
}

/// The gradient of a step, and what is known of it.
#[derive(Clone, Debug)]
pub struct StepGradient {
    /// Mean loss in nats a token.
    pub loss: f64,
    /// Global gradient norm before clipping.
    pub norm: f64,
    /// By stage, in parameter order; `None` for a frozen parameter. Both copies of a tied matrix have their sum.
    pub stages: Vec<Gradients>,
}

/// The stages of a pipeline, in order.
#[derive(Debug)]
pub struct Chain {
    stages: Vec<ChainStage>,
    crossings: Vec<Crossing>,
    tied: Box<dyn Codec>,
    exact: Box<dyn Codec>,
    rates: RateSchedule,
    clip_norm: f64,
}

impl Chain {
    /// Joins `stages` by `crossings`. `tied` is the codec of a tied matrix's gradient, `exact` one that changes nothing.
    ///
    /// # Panics
    /// When there is not one crossing between any two stages.
    pub fn new(
        stages: Vec<ChainStage>,
        crossings: Vec<Crossing>,
        [tied, exact]: [Box<dyn Codec>; 2],
        rates: RateSchedule,
        clip_norm: f64,
    ) -> Self {
        assert_eq!(stages.len(), crossings.len() + 1, "a crossing between any two stages");
        Self { stages, crossings, tied, exact, rates, clip_norm }
    }

    /// The stages.
    pub fn stages(&self) -> &[ChainStage] {
        &self.stages
    }

    /// The gradient of step `step`, counted from 1, on `batches`, its micro-batches.
    ///
    /// # Errors
    /// A value that is not finite: there is no step to skip.
    pub fn gradient(
        &mut self,
        step: u64,
        batches: &[MicroBatch],
        wire: Wire,
    ) -> Result<StepGradient, PipelineError> {
        let mut pass = Pass::new(step, batches);
        for index in 0..batches.len() as u32 {
            self.forward(&mut pass, index, wire)?;
            self.backward(&pass, index, wire)?;
        }
        let mut stages: Vec<Gradients> =
            self.stages.iter_mut().map(|stage| stage.compute.take_gradients()).collect();
        let mut up = StepUp::default();
        for (at, (stage, gradients)) in self.stages.iter().zip(&mut stages).enumerate() {
            let part = stage.compute.part();
            let mut norms = square_norms(part, gradients);
            tie_here(part, gradients, &mut norms);
            if let Some(error) = not_finite(part, &norms, at, step) {
                return Err(error);
            }
            up.square_norms.extend(norms);
        }
        self.tie(step, wire, &mut up, &mut stages)?;
        Ok(StepGradient { loss: pass.loss(), norm: up.square_norms.iter().sum::<f64>().sqrt(), stages })
    }

    /// Applies a gradient that was made for step `step`.
    pub fn update(&mut self, step: u64, gradient: StepGradient) {
        let clip = clip_factor(gradient.norm, self.clip_norm);
        let rate = self.rates.at(step - 1);
        for (stage, gradients) in self.stages.iter_mut().zip(gradient.stages) {
            stage.optimizer.step(stage.compute.part_mut().params_mut(), gradients, rate, clip);
        }
    }

    fn forward(&mut self, pass: &mut Pass<'_>, index: u32, wire: Wire) -> Result<(), PipelineError> {
        let frame = FrameKey { content: Content::Forward, step: pass.step, index };
        let batch = &pass.batches[index as usize];
        let mut entered = None;
        for (at, stage) in self.stages.iter_mut().enumerate() {
            match stage.compute.forward(index, batch, entered.take(), pass.weight) {
                Forwarded::Hidden(h) => {
                    let codec = &mut *self.crossings[at].forward;
                    entered = Some(cross(codec, wire, h, frame, at + 1)?);
                }
                Forwarded::Loss(sum) if sum.is_finite() => pass.add_loss(sum, batch),
                Forwarded::Loss(loss) => return Err(PipelineError::LossNotFinite { stage: at, frame, loss }),
            }
        }
        Ok(())
    }

    fn backward(&mut self, pass: &Pass<'_>, index: u32, wire: Wire) -> Result<(), PipelineError> {
        let frame = FrameKey { content: Content::Backward, step: pass.step, index };
        let mut upstream = None;
        for (at, stage) in self.stages.iter_mut().enumerate().rev() {
            let gradient = stage.compute.backward(index, upstream.take());
            if let (Some(gradient), Some(before)) = (gradient, at.checked_sub(1)) {
                let codec = &mut *self.crossings[before].backward;
                upstream = Some(cross(codec, wire, gradient, frame, before)?);
            }
        }
        Ok(())
    }

    /// Brings both gradients of a tied matrix to one sum, as the end of a step does.
    fn tie(
        &mut self,
        step: u64,
        wire: Wire,
        up: &mut StepUp,
        gradients: &mut [Gradients],
    ) -> Result<(), PipelineError> {
        let codec = match wire {
            Wire::Compressed => &mut *self.tied,
            Wire::Exact => &mut *self.exact,
        };
        let count = self.stages.len();
        let [first, last] = [0, count - 1].map(|at| self.stages[at].compute.part());
        let [first_sum, last_sum] =
            [first, last].map(|part| checksum(part).map(Hasher::finalize).unwrap_or_default());
        if let Some(mut tie) = Tie::of(first, first_sum, codec, step, count) {
            up.tied = tie.share(&mut gradients[0])?;
        }
        let down = match Tie::of(last, last_sum, codec, step, count) {
            Some(mut tie) => tie.add(up, &mut gradients[count - 1])?,
            None => None,
        };
        match Tie::of(first, first_sum, codec, step, count) {
            Some(mut tie) => tie.complete(down, &mut gradients[0]),
            None => Ok(()),
        }
    }
}

/// What stage `peer` gets of `tensor`.
fn cross(
    codec: &mut dyn Codec,
    wire: Wire,
    mut tensor: HostTensor,
    frame: FrameKey,
    peer: usize,
) -> Result<HostTensor, PipelineError> {
    if wire == Wire::Exact {
        return Ok(tensor);
    }
    let unfit = |source| PipelineError::Codec { frame, source };
    let [samples, tokens, channels] = tensor.shape;
    let shape = Shape::new(samples, tokens, channels);
    let mut message = vec![0; codec.packed_size(shape, DType::F32).map_err(unfit)?.bound()];
    let view = TensorView::new(shape, tensor.values.as_slice()).map_err(unfit)?;
    let length = codec.encode(view, &mut message);
    let length = length.map_err(|source| PipelineError::Encode { peer, frame, source })?;
    let out = TensorViewMut::new(shape, tensor.values.as_mut_slice()).map_err(unfit)?;
    codec.decode(&message[..length], out).map_err(|source| PipelineError::Decode { peer, frame, source })?;
    Ok(tensor)
}
