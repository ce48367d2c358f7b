//! Tensors in host memory, and what becomes of a micro-batch on the device.

use burn::tensor::{Device, Int, Tensor, TensorData};

use crate::config::Dtype;
use crate::data::MicroBatch;
use crate::model::Part;

/// A tensor in host memory, on its way between a stage and a link: `[samples, tokens, channels]`, row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct HostTensor {
    /// Samples, tokens, channels.
    pub shape: [usize; 3],
    /// The values.
    pub values: Vec<f32>,
}

/// The summed loss of the targets that count, as a tensor and in nats.
pub(super) fn loss_of(part: &Part, logits: Tensor<2>, batch: &MicroBatch) -> (Tensor<1>, f64) {
    let device = &logits.device();
    let targets = ids(&batch.targets, [batch.samples, batch.tokens], device).flatten::<1>(0, 1);
    let losses = part.token_losses(logits, targets);
    let loss = match &batch.mask {
        Some(mask) => (losses * weights(mask, device)).sum(),
        None => losses.sum(),
    };
    let sum: f32 = loss.clone().into_scalar();
    (loss, f64::from(sum))
}

/// 1 for a target that counts, 0 for another.
fn weights(mask: &[bool], device: &Device) -> Tensor<1> {
    let weights: Vec<f32> = mask.iter().map(|&counts| f32::from(u8::from(counts))).collect();
    Tensor::from_data(TensorData::new(weights, [mask.len()]), device)
}

/// `shape: [samples, tokens]`.
pub(super) fn ids(tokens: &[u32], shape: [usize; 2], device: &Device) -> Tensor<2, Int> {
    let ids: Vec<i64> = tokens.iter().map(|&id| i64::from(id)).collect();
    Tensor::from_data(TensorData::new(ids, shape), device)
}

/// In `dtype`.
pub(super) fn upload(tensor: HostTensor, dtype: Dtype, device: &Device) -> Tensor<3> {
    dtype.cast(Tensor::from_data(TensorData::new(tensor.values, tensor.shape), device))
}

pub(super) fn download(tensor: Tensor<3>) -> HostTensor {
    let shape = tensor.dims();
    HostTensor { shape, values: values(tensor) }
}

pub(super) fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    Dtype::F32.cast(tensor).into_data().try_into_vec::<f32>().expect("the values are f32")
}
