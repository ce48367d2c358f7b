//! The operators as an extension of Burn's backends: on `Flex` their forward passes, on `Autodiff` the same, recorded.

use std::sync::Arc;

use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Flex, backend_extension};
use burn_autodiff::checkpoint::strategy::CheckpointStrategy;

use crate::{AttentionShape, GradientSum, HostFn, RotaryTable, WeightLayout};
use crate::{activation, attention, cross_entropy, embedding, host, linear, norm, rotary};

/// One method for each operator; the functions of the same names document them.
#[backend_extension(Flex, Autodiff)]
pub(crate) trait FusedOps: Backend {
    fn embedding(weight: FloatTensor<Self>, ids: Vec<u32>, sum: Option<GradientSum>) -> FloatTensor<Self>;
    fn linear(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        layout: WeightLayout,
        sum: Option<GradientSum>,
    ) -> FloatTensor<Self>;
    fn linear_biased(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        layout: WeightLayout,
        sum: Option<GradientSum>,
    ) -> FloatTensor<Self>;
    fn rms_norm(x: FloatTensor<Self>, weight: FloatTensor<Self>, eps: f32) -> FloatTensor<Self>;
    fn layer_norm(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        eps: f32,
    ) -> FloatTensor<Self>;
    fn swiglu(gate: FloatTensor<Self>, up: FloatTensor<Self>) -> FloatTensor<Self>;
    fn gelu_tanh(x: FloatTensor<Self>) -> FloatTensor<Self>;
    fn rotary(
        x: FloatTensor<Self>,
        table: Arc<RotaryTable>,
        tokens: usize,
        start: usize,
    ) -> FloatTensor<Self>;
    fn attention(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        shape: AttentionShape,
    ) -> FloatTensor<Self>;
    fn cross_entropy(logits: FloatTensor<Self>, targets: Vec<u32>) -> FloatTensor<Self>;
    fn cross_entropy_of_columns(
        logits: FloatTensor<Self>,
        targets: Vec<u32>,
        gather: HostFn,
    ) -> FloatTensor<Self>;
    fn on_host(x: FloatTensor<Self>, forward: Option<HostFn>, backward: Option<HostFn>) -> FloatTensor<Self>;
}

impl FusedOps for Flex {
    fn embedding(weight: FloatTensor<Self>, ids: Vec<u32>, sum: Option<GradientSum>) -> FloatTensor<Self> {
        embedding::forward(weight, ids, sum).0
    }

    fn linear(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        layout: WeightLayout,
        sum: Option<GradientSum>,
    ) -> FloatTensor<Self> {
        linear::forward(x, weight, None, layout, sum).0
    }

    fn linear_biased(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        layout: WeightLayout,
        sum: Option<GradientSum>,
    ) -> FloatTensor<Self> {
        linear::forward(x, weight, Some(bias), layout, sum).0
    }

    fn rms_norm(x: FloatTensor<Self>, weight: FloatTensor<Self>, eps: f32) -> FloatTensor<Self> {
        norm::forward(x, weight, None, eps).0
    }

    fn layer_norm(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        eps: f32,
    ) -> FloatTensor<Self> {
        norm::forward(x, weight, Some(bias), eps).0
    }

    fn swiglu(gate: FloatTensor<Self>, up: FloatTensor<Self>) -> FloatTensor<Self> {
        activation::swiglu_forward(gate, up).0
    }

    fn gelu_tanh(x: FloatTensor<Self>) -> FloatTensor<Self> {
        activation::gelu_forward(x).0
    }

    fn rotary(
        x: FloatTensor<Self>,
        table: Arc<RotaryTable>,
        tokens: usize,
        start: usize,
    ) -> FloatTensor<Self> {
        rotary::forward(x, table, tokens, start).0
    }

    fn attention(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        shape: AttentionShape,
    ) -> FloatTensor<Self> {
        attention::forward([q, k, v], shape).0
    }

    fn cross_entropy(logits: FloatTensor<Self>, targets: Vec<u32>) -> FloatTensor<Self> {
        cross_entropy::forward(logits, targets).0
    }

    fn cross_entropy_of_columns(
        logits: FloatTensor<Self>,
        targets: Vec<u32>,
        gather: HostFn,
    ) -> FloatTensor<Self> {
        cross_entropy::forward_of_columns(logits, targets, &gather).0
    }

    fn on_host(
        x: FloatTensor<Self>,
        forward: Option<HostFn>,
        _backward: Option<HostFn>,
    ) -> FloatTensor<Self> {
        host::apply(x, forward.as_ref())
    }
}

impl<C: CheckpointStrategy> FusedOps for Autodiff<Flex, C> {
    fn embedding(weight: FloatTensor<Self>, ids: Vec<u32>, sum: Option<GradientSum>) -> FloatTensor<Self> {
        embedding::recorded::<C>(weight, ids, sum)
    }

    fn linear(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        layout: WeightLayout,
        sum: Option<GradientSum>,
    ) -> FloatTensor<Self> {
        linear::recorded::<C>(x, weight, layout, sum)
    }

    fn linear_biased(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        layout: WeightLayout,
        sum: Option<GradientSum>,
    ) -> FloatTensor<Self> {
        linear::recorded_biased::<C>(x, weight, bias, layout, sum)
    }

    fn rms_norm(x: FloatTensor<Self>, weight: FloatTensor<Self>, eps: f32) -> FloatTensor<Self> {
        norm::recorded_rms::<C>(x, weight, eps)
    }

    fn layer_norm(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        eps: f32,
    ) -> FloatTensor<Self> {
        norm::recorded_layer::<C>(x, weight, bias, eps)
    }

    fn swiglu(gate: FloatTensor<Self>, up: FloatTensor<Self>) -> FloatTensor<Self> {
        activation::swiglu_recorded::<C>(gate, up)
    }

    fn gelu_tanh(x: FloatTensor<Self>) -> FloatTensor<Self> {
        activation::gelu_recorded::<C>(x)
    }

    fn rotary(
        x: FloatTensor<Self>,
        table: Arc<RotaryTable>,
        tokens: usize,
        start: usize,
    ) -> FloatTensor<Self> {
        rotary::recorded::<C>(x, table, tokens, start)
    }

    fn attention(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        shape: AttentionShape,
    ) -> FloatTensor<Self> {
        attention::recorded::<C>([q, k, v], shape)
    }

    fn cross_entropy(logits: FloatTensor<Self>, targets: Vec<u32>) -> FloatTensor<Self> {
        cross_entropy::recorded::<C>(logits, targets)
    }

    fn cross_entropy_of_columns(
        logits: FloatTensor<Self>,
        targets: Vec<u32>,
        gather: HostFn,
    ) -> FloatTensor<Self> {
        cross_entropy::recorded_of_columns::<C>(logits, targets, &gather)
    }

    fn on_host(x: FloatTensor<Self>, forward: Option<HostFn>, backward: Option<HostFn>) -> FloatTensor<Self> {
        host::recorded::<C>(x, forward.as_ref(), backward)
    }
}
