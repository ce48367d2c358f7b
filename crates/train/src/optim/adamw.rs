//! `AdamW` with one f32 state for each parameter (Loshchilov and Hutter, 2019).

use burn::tensor::Tensor;
use thinwire_ops::{AdamWStep, adamw};

use crate::config::OptimizerConfig;
use crate::model::ParamSet;

/// The optimizer of one stage.
#[derive(Clone, Debug)]
pub struct AdamW {
    config: OptimizerConfig,
    states: Vec<Option<Moments>>,
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
        Self { config: config.clone(), states: vec![None; parameters] }
    }

    /// Updates every parameter that has a gradient. `gradients` are in the order of `params` and are multiplied by `clip`
    /// first.
    pub fn step(&mut self, params: &mut ParamSet, gradients: Vec<Option<Tensor<1>>>, rate: f64, clip: f64) {
        for ((parameter, state), gradient) in params.iter_mut().zip(&mut self.states).zip(gradients) {
            let Some(gradient) = gradient else { continue };
            let Moments { updates, first, second } = state.take().unwrap_or_else(|| {
                let [first, second] = [(); 2].map(|()| gradient.zeros_like());
                Moments { updates: 0, first, second }
            });
            let updates = updates + 1;
            let weight_decay = if parameter.decays() { self.config.weight_decay } else { 0.0 };
            let step = AdamWStep {
                rate,
                beta1: self.config.beta1 as f32,
                beta2: self.config.beta2 as f32,
                epsilon: self.config.epsilon as f32,
                weight_decay: weight_decay as f32,
                clip: clip as f32,
                updates,
            };
            let mut moments = thinwire_ops::Moments { first, second };
            adamw(&mut parameter.value, gradient, &mut moments, &step);
            let thinwire_ops::Moments { first, second } = moments;
            *state = Some(Moments { updates, first, second });
        }
    }

    /// The state of parameter `index`; `None` before its first update.
    pub fn moments(&self, index: usize) -> Option<Moments> {
        self.states[index].clone()
    }

    /// Puts back a state that [`AdamW::moments`] gave.
    pub fn restore(&mut self, index: usize, moments: Option<Moments>) {
        self.states[index] = moments;
    }
}
