//! Exact sums: nothing is lost but the order of additions.

use std::collections::BTreeMap;

use thinwire_train::model::{Architecture, Slice};
use thinwire_train::pipeline::{Compute, Extended};

use crate::support::{alone, architectures, share, train};

/// Largest difference of a value, as a share of the largest in its tensor. Both sides add up some hundred products in f32, in orders
/// of their own, in each of a dozen layers one after the other.
const TOLERANCE: f32 = 2e-5;

/// What one rank has of a parameter's gradient.
struct Gradient {
    name: String,
    slice: Slice,
    partial: bool,
    values: Vec<f32>,
}

fn gradients(stages: &mut [Compute]) -> Vec<Gradient> {
    let of_stage = |stage: &mut Compute| {
        let gradients = stage.take_gradients();
        let params = stage.part().params();
        let named = params.iter().zip(gradients).filter(|(parameter, _)| parameter.trainable);
        let gradient = named.map(|(parameter, gradient)| Gradient {
            name: parameter.name.clone(),
            slice: parameter.slice.clone(),
            partial: parameter.partial,
            values: gradient.expect("every parameter has a gradient").into_data().try_into_vec().unwrap(),
        });
        gradient.collect::<Vec<_>>()
    };
    stages.iter_mut().flat_map(of_stage).collect()
}

/// The whole gradients that the ranks' make up; those that all ranks have are the same to the bit.
fn joined(ranks: Vec<Vec<Gradient>>) -> BTreeMap<String, Vec<f32>> {
    let mut joined: BTreeMap<String, Vec<f32>> = BTreeMap::new();
    for (rank, gradients) in ranks.into_iter().enumerate() {
        for Gradient { name, slice, partial, values } in gradients {
            let whole =
                joined.entry(name.clone()).or_insert_with(|| vec![0.0; slice.whole().iter().product()]);
            if partial {
                whole.iter_mut().zip(&values).for_each(|(sum, value)| *sum += value);
            } else if slice.is_whole() && rank > 0 {
                assert!(*whole == values, "{name}: another gradient on rank {rank}");
            } else {
                slice.put(&values, whole);
            }
        }
    }
    joined
}

fn close(found: &[f32], expected: &[f32], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let scale = expected.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
    assert!(scale > 0.0, "{what}: all zero");
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= TOLERANCE * scale, "{what}: {found}, {expected} of {scale}");
    }
}

fn compare(arch: &Architecture, ranks: usize, stages: usize, checkpointing: bool) {
    let mut whole = [alone(arch)];
    let losses = train(&mut whole);
    let expected: BTreeMap<_, _> =
        gradients(&mut whole).into_iter().map(|gradient| (gradient.name, gradient.values)).collect();
    let found = share(arch, ranks, "exact", stages, |stages, group| {
        let mut stages: Vec<_> = stages.into_iter().map(|stage| stage.checkpointing(checkpointing)).collect();
        let losses = train(&mut stages);
        group.check().unwrap();
        (losses, gradients(&mut stages))
    });
    let what = format!("{:?}, lora {}, {ranks} ranks, {stages} stages", arch.family, arch.lora.is_some());
    let (others, gradients): (Vec<[f64; 2]>, Vec<_>) = found.into_iter().unzip();
    assert!(others.iter().all(|other| *other == others[0]), "{what}: all ranks have the same loss");
    close(&others[0].map(|loss| loss as f32), &losses.map(|loss| loss as f32), &what);
    let joined = joined(gradients);
    assert!(joined.keys().eq(expected.keys()), "{what}");
    for (name, expected) in &expected {
        close(&joined[name], expected, &format!("{what}: {name}"));
    }
}

#[test]
fn ranks_have_the_losses_and_gradients_of_one() {
    for arch in architectures() {
        compare(&arch, 2, 1, false);
        compare(&arch, 3, 1, false);
    }
}

#[test]
fn so_they_have_in_stages_and_with_checkpointing() {
    for arch in architectures() {
        compare(&arch, 3, 2, false);
        compare(&arch, 2, 2, true);
    }
}

/// Logits behind a prompt, and behind two further tokens.
fn generate(stage: &Compute) -> Vec<Vec<f32>> {
    let mut cache = stage.cache(9);
    let calls: [(&[u32], usize); 3] = [(&[3, 60, 7, 31, 20, 41], 2), (&[59], 1), (&[0], 1)];
    let logits = calls.map(|(ids, last)| match stage.extend(ids, None, &mut cache, last) {
        Extended::Logits(logits) => logits,
        Extended::Hidden(_) => panic!("a whole model ends with the head"),
    });
    logits.to_vec()
}

#[test]
fn ranks_generate_what_one_does() {
    for arch in architectures() {
        let expected = generate(&alone(&arch));
        for ranks in [2, 3] {
            let found = share(&arch, ranks, "exact", 1, |stages, group| {
                let logits = generate(&stages[0]);
                group.check().unwrap();
                logits
            });
            assert!(found.iter().all(|logits| *logits == found[0]), "all ranks have the same logits");
            for (found, expected) in found[0].iter().zip(&expected) {
                close(found, expected, &format!("{:?} on {ranks} ranks", arch.family));
            }
        }
    }
}
