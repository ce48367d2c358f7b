//! A forward and a backward pass through the parts of a model, with what crosses a boundary in host memory.

use burn::tensor::{Device, Int, Tensor, TensorData};
use thinwire_train::config::{StageUnits, Unit};
use thinwire_train::model::{Activation, Part, token_losses};

/// What a pass computes.
pub(crate) struct Pass {
    /// `[samples * tokens, vocab]`.
    pub(crate) logits: Vec<f32>,
    /// Sum over the tokens.
    pub(crate) loss: f32,
    /// Of that sum, by parameter, in model order.
    pub(crate) gradients: Vec<(String, Vec<f32>)>,
}

/// The units of each part of a model of `layers` blocks that is cut in front of the given positions of its unit list.
pub(crate) fn cut(layers: usize, cuts: &[usize]) -> Vec<Vec<Unit>> {
    let whole = StageUnits::whole(layers);
    let units: Vec<Unit> = whole.iter().collect();
    let edges: Vec<usize> = [0].into_iter().chain(cuts.iter().copied()).chain([units.len()]).collect();
    edges.windows(2).map(|edge| units[edge[0]..edge[1]].to_vec()).collect()
}

/// One micro-batch of `shape` = [samples, tokens] through all parts and back.
pub(crate) fn pass(parts: &[Part], [inputs, targets]: [Vec<i64>; 2], shape: [usize; 2]) -> Pass {
    let autodiff = Device::flex().autodiff();
    let inputs = Tensor::<2, Int>::from_data(TensorData::new(inputs, shape), &autodiff);
    let targets = Tensor::<2, Int>::from_data(TensorData::new(targets, shape), &autodiff);

    let sums: Vec<_> = parts.iter().map(|p| p.params().gradient_sums()).collect();
    let leaves: Vec<_> = parts.iter().zip(&sums).map(|(p, sums)| p.params().leaves(sums)).collect();
    let mut entered = Vec::new();
    let mut left = Vec::new();
    let mut x = Activation::Ids(inputs);
    for (part, leaves) in parts.iter().zip(&leaves) {
        entered.push(x.clone());
        let y = part.forward(leaves, x);
        left.push(y.clone());
        x = match y {
            Activation::Hidden(h) => {
                let wire = h.inner().into_data();
                Activation::Hidden(Tensor::<3>::from_data(wire, &autodiff).require_grad())
            }
            other => other,
        };
    }
    let Activation::Logits(logits) = x else { panic!("the last part ends with the head") };
    let loss = token_losses(logits.clone(), targets.flatten(0, 1)).sum();

    let mut gradients = Vec::new();
    let mut upstream: Option<TensorData> = None;
    for (index, part) in parts.iter().enumerate().rev() {
        let mut tape = match (upstream.take(), &left[index]) {
            (Some(up), Activation::Hidden(h)) => {
                (h.clone() * Tensor::from_data(up, &autodiff)).sum().backward()
            }
            _ => loss.backward(),
        };
        if let Activation::Hidden(h) = &entered[index] {
            upstream = Some(h.grad_remove(&mut tape).expect("the boundary has a gradient").into_data());
        }
        leaves[index].add_gradients(&mut tape);
        let grads = sums[index].take();
        let (trained, frozen): (Vec<_>, Vec<_>) =
            part.params().iter().zip(grads).partition(|(p, _)| p.trainable);
        assert!(frozen.iter().all(|(_, g)| g.is_none()), "nothing is computed for what is frozen");
        let named = trained.into_iter().map(|(p, g)| {
            let g = g.unwrap_or_else(|| panic!("{} has no gradient", p.name));
            (p.name.clone(), g.into_data().try_to_vec::<f32>().unwrap())
        });
        gradients.splice(0..0, named);
    }
    let logits = logits.inner().into_data().try_to_vec().unwrap();
    Pass { logits, loss: loss.into_scalar(), gradients }
}
