//! A model cut into parts computes the same bits as the whole, and no parameter is cut off from its gradient.

use burn::tensor::{Device, Int, Tensor, TensorData};
use thinwire_train::config::{Family, StageUnits, Unit};
use thinwire_train::model::{Activation, Architecture, Part, token_losses};

const SAMPLES: usize = 2;
const TOKENS: usize = 24;

fn architectures() -> Vec<Architecture> {
    let base = Architecture {
        family: Family::Llama,
        layers: 3,
        hidden: 32,
        heads: 4,
        kv_heads: 2,
        ffn: 48,
        context: TOKENS,
        vocab: 61,
        tied: false,
        norm_eps: 1e-5,
        rope_theta: 10_000.0,
    };
    let gpt2 = Architecture { family: Family::Gpt2, kv_heads: 4, ..base.clone() };
    let tied = |arch: &Architecture| Architecture { tied: true, ..arch.clone() };
    vec![tied(&base), tied(&gpt2), base, gpt2]
}

/// Loss and every gradient, the model cut in front of the given positions of its unit list.
fn run(arch: &Architecture, cuts: &[usize]) -> (f32, Vec<(String, Vec<f32>)>) {
    let device = Device::flex();
    let whole = StageUnits { embed: true, blocks: 0..arch.layers, head: true };
    let units: Vec<Unit> = whole.iter().collect();
    let edges: Vec<usize> = [0].into_iter().chain(cuts.iter().copied()).chain([units.len()]).collect();
    let parts: Vec<Part> =
        edges.windows(2).map(|e| Part::new(arch, &units[e[0]..e[1]], 7, &device)).collect();
    let id = |i: usize| i64::try_from(i * i * 31 % arch.vocab).unwrap();
    let autodiff = device.autodiff();
    let tokens =
        |offset| TensorData::new((0..SAMPLES * TOKENS).map(|i| id(i + offset)).collect(), [SAMPLES, TOKENS]);
    let inputs = Tensor::<2, Int>::from_data(tokens(0), &autodiff);
    let targets = Tensor::<2, Int>::from_data(tokens(1), &autodiff).reshape([SAMPLES * TOKENS]);

    let leaves: Vec<_> = parts.iter().map(|p| p.params().leaves()).collect();
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
    let loss = token_losses(logits, targets).sum();

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
        let grads = leaves[index].gradients(&mut tape);
        let named = part.params().iter().zip(grads).map(|(p, g)| {
            let g = g.unwrap_or_else(|| panic!("{} has no gradient", p.name));
            (p.name.clone(), g.into_data().try_to_vec::<f32>().unwrap())
        });
        gradients.splice(0..0, named);
    }
    (loss.into_scalar(), gradients)
}

#[test]
fn any_cut_gives_the_same_bits() {
    for arch in architectures() {
        let whole = run(&arch, &[]);
        for cuts in [vec![1], vec![2], vec![4], vec![1, 3], vec![1, 2, 3, 4]] {
            let cut = run(&arch, &cuts);
            assert_eq!(whole.0.to_bits(), cut.0.to_bits(), "{:?} cut at {cuts:?}: loss", arch.family);
            assert_eq!(whole.1.len(), cut.1.len());
            for ((name, a), (other, b)) in whole.1.iter().zip(&cut.1) {
                assert_eq!(name, other);
                let equal = a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits());
                assert!(equal, "{:?} cut at {cuts:?}: gradient of {name}", arch.family);
            }
        }
    }
}

#[test]
fn every_parameter_has_a_gradient() {
    for arch in architectures() {
        for (name, gradient) in run(&arch, &[]).1 {
            assert!(gradient.iter().all(|g| g.is_finite()), "{name}: not finite");
            assert!(gradient.iter().any(|&g| g != 0.0), "{name}: all zero");
        }
    }
}
