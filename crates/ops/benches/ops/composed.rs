//! The operators composed of Burn's own operations, as a model without this crate would write them.

use burn::tensor::{Bool, Int, Tensor, TensorData, activation};
use thinwire_ops::AttentionShape;

pub(crate) fn rms_norm(x: Tensor<2>, weight: Tensor<1>, eps: f32) -> Tensor<2> {
    let deviation = (x.clone().square().mean_dim(1) + eps).sqrt();
    x / deviation * weight.unsqueeze::<2>()
}

pub(crate) fn layer_norm(x: Tensor<2>, weight: Tensor<1>, bias: Tensor<1>, eps: f32) -> Tensor<2> {
    let x = x.clone() - x.mean_dim(1);
    rms_norm(x, weight, eps) + bias.unsqueeze::<2>()
}

pub(crate) fn swiglu(gate: Tensor<2>, up: Tensor<2>) -> Tensor<2> {
    activation::silu(gate) * up
}

pub(crate) fn gelu_tanh(x: Tensor<2>) -> Tensor<2> {
    let scale = 2.0 * (2.0 / std::f64::consts::PI).sqrt();
    let inner = (x.clone().square() * (0.044_715 * scale) + scale) * x.clone();
    x * activation::sigmoid(inner)
}

pub(crate) fn rotary(x: Tensor<2>, [cos, sin]: [Tensor<4>; 2], [samples, tokens]: [usize; 2]) -> Tensor<2> {
    let [rows, width] = x.dims();
    let half = cos.dims()[3];
    let x = x.reshape([samples, tokens, width / (2 * half), 2 * half]).swap_dims(1, 2);
    let (a, b) = (x.clone().narrow(3, 0, half), x.narrow(3, half, half));
    let first = a.clone() * cos.clone() - b.clone() * sin.clone();
    Tensor::cat(vec![first, b * cos + a * sin], 3).swap_dims(1, 2).reshape([rows, width])
}

pub(crate) fn attention([q, k, v]: [Tensor<2>; 3], shape: AttentionShape) -> Tensor<2> {
    let AttentionShape { samples, queries: tokens, query_heads, kv_heads, head_dim, .. } = shape;
    let split = |x: Tensor<2>, heads| x.reshape([samples, tokens, heads, head_dim]).swap_dims(1, 2);
    let repeat = |x: Tensor<2>| {
        let shared = query_heads / kv_heads;
        let x = split(x, kv_heads).unsqueeze_dim::<5>(2);
        let x = x.expand([samples, kv_heads, shared, tokens, head_dim]);
        x.reshape([samples, query_heads, tokens, head_dim])
    };
    let future: Vec<bool> = (0..tokens * tokens).map(|i| i % tokens > i / tokens).collect();
    let future = Tensor::<4, Bool>::from_data(TensorData::new(future, [1, 1, tokens, tokens]), &q.device());
    let scores = (split(q, query_heads) * (head_dim as f64).powf(-0.5)).matmul(repeat(k).transpose());
    let weights = activation::softmax(scores.mask_fill(future, f32::NEG_INFINITY), 3);
    weights.matmul(repeat(v)).swap_dims(1, 2).reshape([samples * tokens, query_heads * head_dim])
}

pub(crate) fn cross_entropy(logits: Tensor<2>, targets: Tensor<1, Int>) -> Tensor<1> {
    let n = targets.dims()[0];
    activation::log_softmax(logits, 1).gather(1, targets.reshape([n, 1])).reshape([n]).neg()
}
