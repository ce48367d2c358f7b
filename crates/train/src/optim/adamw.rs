//! `AdamW` with one f32 state for each parameter (Loshchilov and Hutter, 2019).

use burn::optim::{AdamWConfig, AdamWState, AdaptiveMomentumState, Optimizer};
use burn::tensor::Tensor;

use crate::config::OptimizerConfig;
use crate::model::ParamSet;

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
    pub fn new(config: &OptimizerConfig, parameters: usize) -> Self {
        let build = |weight_decay| {
            AdamWConfig::new()
                .with_beta_1(config.beta1 as f32)
                .with_beta_2(config.beta2 as f32)
                .with_epsilon(config.epsilon as f32)
                .with_weight_decay(weight_decay)
                .build()
        };
        Self {
            decaying: build(config.weight_decay as f32),
            plain: build(0.0),
            states: vec![None; parameters],
        }
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
    pub fn restore(&mut self, index: usize, moments: Option<Moments>) {
        self.states[index] = moments.map(|Moments { updates, first, second }| {
            AdamWState::new(AdaptiveMomentumState::new(updates, first, second))
        });
    }
}

impl std::fmt::Debug for AdamW {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AdamW").field("parameters", &self.states.len()).finish_non_exhaustive()
    }
}
