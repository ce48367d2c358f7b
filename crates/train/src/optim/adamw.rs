//! AdamW with one f32 state for each parameter (Loshchilov and Hutter, 2019).

use burn::optim::{AdamWConfig, AdamWState, AdaptiveMomentumState, Optimizer};
use burn::tensor::Tensor;

use crate::model::ParamSet;

/// AdamW's constants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hyper {
    /// Decay of the first moment.
    pub beta1: f32,
    /// Decay of the second moment.
    pub beta2: f32,
    /// Added to the root of the second moment.
    pub epsilon: f32,
    /// Decoupled weight decay of matrices; norms and biases have none.
    pub weight_decay: f32,
}

/// The optimizer of one stage.
#[derive(Clone)]
pub struct AdamW {
    decaying: burn::optim::AdamW,
    plain: burn::optim::AdamW,
    states: Vec<Option<AdamWState<1>>>,
}

/// One parameter's state, as a checkpoint keeps it.
#[derive(Clone, Debug)]
pub struct Moments {
    /// Updates made so far.
    pub updates: usize,
    /// Running mean of the gradient.
    pub first: Tensor<1>,
    /// Running mean of its square.
    pub second: Tensor<1>,
}

impl AdamW {
    /// A fresh state for `parameters` parameters.
    pub fn new(hyper: Hyper, parameters: usize) -> Self {
        let build = |weight_decay| {
            AdamWConfig::new()
                .with_beta_1(hyper.beta1)
                .with_beta_2(hyper.beta2)
                .with_epsilon(hyper.epsilon)
                .with_weight_decay(weight_decay)
                .build()
        };
        Self { decaying: build(hyper.weight_decay), plain: build(0.0), states: vec![None; parameters] }
    }

    /// Updates every parameter that has a gradient. `gradients` are in the order of `params` and already clipped.
    pub fn step(&mut self, params: &mut ParamSet, gradients: Vec<Option<Tensor<1>>>, rate: f64) {
        for ((parameter, state), gradient) in params.iter_mut().zip(&mut self.states).zip(gradients) {
            let Some(gradient) = gradient else { continue };
            let rule = if parameter.decays() { &self.decaying } else { &self.plain };
            let (value, next) = rule.step(rate, parameter.value.clone(), gradient, state.take());
            parameter.value = value;
            *state = next;
        }
    }

    /// The state of parameter `index`; `None` before its first update.
    pub fn moments(&self, index: usize) -> Option<Moments> {
        self.states[index].as_ref().map(|AdamWState { momentum }| Moments {
            updates: momentum.time,
            first: momentum.moment_1.clone(),
            second: momentum.moment_2.clone(),
        })
    }

    /// Puts back a state that [`AdamW::moments`] gave.
    pub fn restore(&mut self, index: usize, moments: Moments) {
        let Moments { updates, first, second } = moments;
        self.states[index] = Some(AdamWState::new(AdaptiveMomentumState::new(updates, first, second)));
    }
}

impl std::fmt::Debug for AdamW {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AdamW").field("parameters", &self.states.len()).finish_non_exhaustive()
    }
}
