use std::sync::Arc;

use proptest::prelude::*;
use thinwire_collective::{Coefficients, Compensator, Contribution};

use crate::support::{bits, codec, on_each_rank, tensors, tiles_of};

/// The whole of a contribution.
fn whole(x: &impl Contribution) -> Vec<f32> {
    let mut scratch = vec![0.0; x.values()];
    x.piece(0..x.values(), &mut scratch).to_vec()
}

/// The residuals of all ranks sum to minus the error that the all-reduce just injected (equation 4). With averages that keep
/// nothing, the state is the residual.
#[test]
fn residuals_sum_to_minus_the_injected_error() {
    let (ranks, values) = (4, 3000);
    let coefficients = Coefficients { first_decay: 0.0, ..Coefficients::default() };
    let x: Vec<_> = (0..5).map(|call| tensors(ranks, values, 20 + call)).collect();
    let ends = on_each_rank(ranks, tiles_of(256), |mut group| {
        let mut compensator = Compensator::new(coefficients, values);
        let calls = x.iter().map(|x| {
            let x = &x[group.rank()];
            let (sent, mut y) = (whole(&compensator.apply(x)), vec![0.0; values]);
            group.all_reduce(&codec("group"), &compensator.apply(x), &mut y).unwrap();
            compensator.update(x, &y, ranks);
            (sent, y, compensator.state()[0].to_vec())
        });
        calls.collect::<Vec<_>>()
    });
    for call in 0..x.len() {
        let of_rank: Vec<_> = ends.iter().map(|calls| &calls[call]).collect();
        let sum = |of: &dyn Fn(usize) -> f32| (0..ranks).map(|rank| f64::from(of(rank))).sum::<f64>();
        let mut largest = 0.0_f64;
        for i in 0..values {
            let injected = f64::from(of_rank[0].1[i]) - sum(&|rank| of_rank[rank].0[i]);
            let residuals = sum(&|rank| of_rank[rank].2[i]);
            // Roundings of sums of a size below 500.
            assert!((residuals + injected).abs() < 1e-4, "call {call}, value {i}: {residuals}, {injected}");
            largest = largest.max(injected.abs());
        }
        assert!(largest > 0.1, "an error was injected");
    }
}

/// Fused into the entry stage, tile by tile, the correction is what it is when applied to the whole tensor first.
#[test]
fn fused_and_separate_application_give_the_same_bits() {
    let (ranks, values) = (3, 5000);
    let x = tensors(ranks, values, 30);
    let run = |fused: bool| {
        on_each_rank(ranks, tiles_of(192), |mut group| {
            let x = &x[group.rank()];
            let (mut compensator, mut y) =
                (Compensator::new(Coefficients::default(), values), vec![0.0; values]);
            for _ in 0..4 {
                if fused {
                    group.all_reduce(&codec("group:group=64"), &compensator.apply(x), &mut y).unwrap();
                } else {
                    let x = whole(&compensator.apply(x));
                    group.all_reduce(&codec("group:group=64"), &x[..], &mut y).unwrap();
                }
                compensator.update(x, &y, ranks);
            }
            bits(&y)
        })
    };
    assert_eq!(run(true), run(false));
}

/// On its own thread the compensator learns the same, and whoever asks for its state waits for it.
#[test]
fn an_update_beside_something_else_gives_the_same_bits() {
    const VALUES: usize = 300_001;
    let x = tensors(6, VALUES, 60);
    let mut here = Compensator::new(Coefficients::default(), VALUES);
    let mut beside = Compensator::new(Coefficients::default(), VALUES);
    for pair in x.chunks(2) {
        let [x, y] = pair else { unreachable!("six tensors") };
        here.update(x, y, 3);
        beside.update_beside(Arc::new(x.clone()), y.clone(), 3);
        assert_eq!(bits(&whole(&here.apply(x))), bits(&whole(&beside.apply(x))));
    }
    beside.update_beside(x[0].clone(), x[1].clone(), 3);
    beside.reset();
    assert!(beside.state().concat().iter().all(|&average| average == 0.0));
}

/// In the same order of operations, whatever the instruction set.
#[test]
fn the_arithmetic_is_that_of_plain_code() {
    let of = Coefficients::default();
    let tensors = tensors(4, 5001, 61);
    let [first_x, x, y, z] = &tensors[..] else { unreachable!("four tensors") };
    let mut compensator = Compensator::new(of, x.len());
    compensator.update(first_x, y, 3);
    compensator.update(x, z, 3);
    let corrected = whole(&compensator.apply(x));
    let share_of_first = of.gain * of.blend * (of.first_decay - of.second_decay);
    let share_of_residual =
        of.gain * (of.blend * (1.0 - of.first_decay) + (1.0 - of.blend) * (1.0 - of.second_decay));
    for i in 0..x.len() {
        let (mut first, mut correction) = (0.0_f32, 0.0_f32);
        for (x, y) in [(first_x[i], y[i]), (x[i], z[i])] {
            let residual = x + correction - y / 3.0;
            correction = of.second_decay * correction + share_of_first * first + share_of_residual * residual;
            first = of.first_decay * first + (1.0 - of.first_decay) * residual;
        }
        assert_eq!(corrected[i].to_bits(), (x[i] + correction).to_bits(), "value {i}");
    }
}

/// Sums over the sites of a pass are nearer to the exact ones with compensation than without.
#[test]
fn compensation_keeps_the_accumulated_error_down() {
    let (ranks, values, sites) = (4, 4096, 24);
    let x: Vec<_> = (0..sites).map(|site| tensors(ranks, values, 40 + site)).collect();
    let squared_error = |gain: f32| {
        let coefficients = Coefficients { gain, ..Coefficients::default() };
        let accumulated = on_each_rank(ranks, tiles_of(1024), |mut group| {
            let mut compensator = Compensator::new(coefficients, values);
            let (mut y, mut accumulated) = (vec![0.0; values], vec![0.0_f64; values]);
            for x in &x {
                let mine = &x[group.rank()];
                group.all_reduce(&codec("group"), &compensator.apply(mine), &mut y).unwrap();
                compensator.update(mine, &y, ranks);
                for (i, accumulated) in accumulated.iter_mut().enumerate() {
                    *accumulated += f64::from(y[i]) - x.iter().map(|x| f64::from(x[i])).sum::<f64>();
                }
            }
            accumulated
        });
        accumulated[0].iter().map(|error| error * error).sum::<f64>()
    };
    let (with, without) = (squared_error(0.75), squared_error(0.0));
    assert!(with < 0.5 * without, "{with} with, {without} without compensation");
}

#[test]
fn a_pass_begins_without_errors() {
    let x = [1.0, -2.0, 3.0];
    let mut compensator = Compensator::new(Coefficients::default(), 3);
    assert_eq!(whole(&compensator.apply(&x)), x);
    compensator.update(&x, &[1.5, -4.5, 5.0], 2);
    assert_ne!(whole(&compensator.apply(&x)), x);
    compensator.reset();
    assert_eq!(whole(&compensator.apply(&x)), x);
}

/// The largest of all partial sums `|S_t|` of the net errors of a pass: what `error`, given the site and `S` so far, injects, and
/// what the corrections of three ranks add to it.
fn largest_partial_sum(
    coefficients: Coefficients,
    sites: usize,
    mut error: impl FnMut(usize, f64) -> f64,
) -> f64 {
    const RANKS: usize = 3;
    let mut ranks: Vec<_> = (0..RANKS).map(|_| Compensator::new(coefficients, 1)).collect();
    let (mut partial, mut largest) = (0.0_f64, 0.0_f64);
    for site in 0..sites {
        let x: [f32; RANKS] = std::array::from_fn(|rank| ((site * RANKS + rank) as f32 * 0.7).sin());
        let sent = ranks.iter_mut().zip(&x).map(|(rank, x)| f64::from(whole(&rank.apply(&[*x]))[0]));
        let y = (sent.sum::<f64>() + error(site, partial)) as f32;
        partial += f64::from(y) - x.iter().map(|&x| f64::from(x)).sum::<f64>();
        largest = largest.max(partial.abs());
        for (rank, x) in ranks.iter_mut().zip(&x) {
            rank.update(&[*x], &[y], RANKS);
        }
    }
    largest
}

/// `1 + mu_w`, with `mu_w = sum r w_r`, the mean age at which an error is given back.
fn tails(of: Coefficients) -> f64 {
    let mean = |decay: f32| f64::from(decay) / (1.0 - f64::from(decay));
    let blend = f64::from(of.blend);
    1.0 + blend * mean(of.first_decay) + (1.0 - blend) * mean(of.second_decay)
}

/// Equation 21; Theorem 1 at a gain of 1. Rounding injects as much as 1e-6 of an error more at every site, of which corrections
/// give nothing back.
fn bound(of: Coefficients, sites: usize) -> f64 {
    let gain = f64::from(of.gain);
    (1.0 - gain) * sites as f64 + gain * tails(of) + 1e-6 * sites as f64
}

/// The error of a site, given the partial sum so far.
type Adversary = fn(usize, f64) -> f64;

/// Errors of size 1 as an adversary would choose them.
fn adversaries() -> [(&'static str, Adversary); 7] {
    [
        ("all alike", |_, _| 1.0),
        ("always away from zero", |_, partial| 1.0_f64.copysign(partial)),
        ("always towards zero", |_, partial| -(1.0_f64.copysign(partial))),
        ("in turn", |site, _| if site.is_multiple_of(2) { 1.0 } else { -1.0 }),
        ("in turn, after many alike", |site, _| if site < 30 || site.is_multiple_of(2) { 1.0 } else { -1.0 }),
        ("in blocks", |site, _| if (site / 5).is_multiple_of(2) { 1.0 } else { -1.0 }),
        ("one", |site, _| if site == 0 { 1.0 } else { 0.0 }),
    ]
}

#[test]
fn theorem_1_holds_for_adversarial_errors_and_is_tight() {
    let coefficients = Coefficients { gain: 1.0, ..Coefficients::default() };
    assert!((tails(coefficients) - 2.1).abs() < 0.01, "about 2.1 by the paper");
    for (name, error) in adversaries() {
        let largest = largest_partial_sum(coefficients, 400, error);
        assert!(largest <= bound(coefficients, 400), "{name}: {largest}");
    }
    let reached = largest_partial_sum(coefficients, 400, |_, _| 1.0);
    assert!(reached > 0.999 * tails(coefficients), "{reached}");
    let without = Coefficients { gain: 0.0, ..coefficients };
    let reached = largest_partial_sum(without, 400, |_, _| 1.0);
    assert!((reached - 400.0).abs() < 0.01, "N q without compensation: {reached}");
}

#[test]
fn equation_21_holds_for_smaller_gains_and_is_tight() {
    for gain in [0.25, 0.5, 0.75, 0.9] {
        let coefficients = Coefficients { gain, ..Coefficients::default() };
        for (name, error) in adversaries() {
            let largest = largest_partial_sum(coefficients, 56, error);
            assert!(largest <= bound(coefficients, 56), "{name}, gain {gain}: {largest}");
        }
        let reached = largest_partial_sum(coefficients, 56, |_, _| 1.0);
        assert!(reached > 0.999 * bound(coefficients, 56), "gain {gain}: {reached}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn equation_21_holds_for_any_errors_and_coefficients(
        gain in prop_oneof![Just(1.0_f32), 0.0_f32..1.0],
        blend in 0.0_f32..=1.0,
        first_decay in 0.0_f32..0.95,
        second_decay in 0.0_f32..0.95,
        errors in prop::collection::vec(prop_oneof![Just(1.0), Just(-1.0), -1.0..1.0_f64], 1..200),
    ) {
        let coefficients = Coefficients { gain, blend, first_decay, second_decay };
        let largest = largest_partial_sum(coefficients, errors.len(), |site, _| errors[site]);
        prop_assert!(largest <= bound(coefficients, errors.len()), "{largest}");
    }
}
