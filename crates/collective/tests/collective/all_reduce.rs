use half::{bf16, f16};
use proptest::prelude::*;
use thinwire_collective::{Segments, Statistics};

use crate::support::{all_reduce, bits, codec, on_each_rank, tensors, tiles_of};

/// The sum by its definition: the owner's value first, then the others' in order, each rounded to what travels.
fn sum(x: &[Vec<f32>], owner: usize, i: usize, travels: impl Fn(f32) -> f32) -> f32 {
    let others = (0..x.len()).filter(|&rank| rank != owner);
    travels(others.fold(x[owner][i], |sum, rank| sum + travels(x[rank][i])))
}

fn rounded(x: f32) -> f32 {
    let bits = x.to_bits();
    f32::from_bits((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff_0000)
}

fn owner(segments: &Segments, ranks: usize, i: usize) -> usize {
    (0..ranks).find(|&rank| segments.segment(rank).contains(&i)).unwrap()
}

/// Figure 4 of the paper with other numbers: four ranks, a segment of one group of two values each, 4 bits, symmetric.
///
/// Segment `j` is `2^j` times this: its owner has `(0.3, 0.5)`, the ranks behind it send
/// `(1.75, 0.4)` as codes 7, 2 of scale 1/4: `(1.75, 0.5)`; `(-3.5, 1.2)` as -7, 2 of 1/2: `(-3.5, 1)`;
/// `(0.875, -0.3)` as 7, -2 of 1/8: `(0.875, -0.25)`. The sum `(-0.575, 1.75)` becomes -2, 7 of 1/4: `(-0.5, 1.75)`.
/// The exact one is `(-0.575, 1.8)`, so the call injects `(0.075, -0.05)`.
#[test]
fn worked_example() {
    const HELD: [[f32; 2]; 4] = [[0.3, 0.5], [1.75, 0.4], [-3.5, 1.2], [0.875, -0.3]];
    let scaled = |j: usize, pair: [f32; 2]| pair.map(|x| x * (1 << j) as f32);
    let x: Vec<Vec<f32>> =
        (0..4).map(|rank| (0..4).flat_map(|j| scaled(j, HELD[(rank + 4 - j) % 4])).collect()).collect();
    let expected: Vec<f32> = (0..4).flat_map(|j| scaled(j, [-0.5, 1.75])).collect();
    for y in all_reduce("group:bits=4,group=2,quantizer=symmetric", 2, &x) {
        assert_eq!(y, expected);
    }
}

#[test]
fn raw_f32_is_the_sum_in_the_order_of_the_ranks() {
    for (ranks, values, tile) in [(2, 1000, 64), (3, 1001, 50), (4, 3, 1), (5, 0, 8), (8, 4097, 1000)] {
        let x = tensors(ranks, values, 1);
        let segments = Segments::new(values, ranks, 1, tile);
        let expected: Vec<f32> = (0..values).map(|i| sum(&x, owner(&segments, ranks, i), i, |x| x)).collect();
        for y in all_reduce("f32", tile, &x) {
            assert_eq!(bits(&y), bits(&expected), "{ranks} ranks, {values} values");
        }
    }
}

#[test]
fn raw_bf16_rounds_what_travels_and_nothing_else() {
    let x = tensors(3, 500, 2);
    let segments = Segments::new(500, 3, 1, 40);
    let expected: Vec<f32> = (0..500).map(|i| sum(&x, owner(&segments, 3, i), i, rounded)).collect();
    for y in all_reduce("bf16", 40, &x) {
        assert_eq!(bits(&y), bits(&expected));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// Lengths that neither ranks nor groups nor tiles divide. By the quantizer's promise, half a step of each copy and of the
    /// sum, and up to a quarter of one that rounding the parameters to f16 cuts off; a step of a group of values of up to `e` is
    /// at most `2 e / (2^bits - 2)`.
    #[test]
    fn all_ranks_have_the_same_bits_near_the_sum(
        ranks in 2_usize..9,
        values in 0_usize..3000,
        tile in 1_usize..600,
        bits_of_code in 2_u32..=8,
        group in prop::sample::select(vec![8_usize, 16, 64, 72, 128]),
        quantizer in prop::sample::select(vec!["symmetric", "naive", "zero-aware"]),
        seed: u64,
    ) {
        let x = tensors(ranks, values, seed);
        let spec = format!("group:bits={bits_of_code},group={group},quantizer={quantizer}");
        let ys = all_reduce(&spec, tile, &x);
        for y in &ys {
            prop_assert_eq!(bits(y), bits(&ys[0]));
        }
        let half_step = |extent: f32| 0.75 * 2.0 * extent / ((1 << bits_of_code) - 2) as f32;
        let largest = |values: &mut dyn Iterator<Item = f32>| values.fold(0.0, |max: f32, x| max.max(x.abs()));
        for start in (0..values).step_by(group) {
            let members = start..values.min(start + group);
            let copies: f32 = x.iter().map(|x| largest(&mut x[members.clone()].iter().copied())).sum();
            let sums = largest(&mut members.clone().map(|i| x.iter().map(|x| x[i]).sum::<f32>()));
            let sent = half_step(copies);
            let bound = sent + half_step(sums + sent) + 1e-5 * copies;
            for i in members {
                let exact: f32 = x.iter().map(|x| x[i]).sum();
                prop_assert!((ys[0][i] - exact).abs() <= bound, "{} for {exact}, off by at most {bound}", ys[0][i]);
            }
        }
    }
}

/// Every rank quantizes each value of other segments once and each sum of its own once, so that between a rank's tensor and the
/// output lie two quantizations, of its own segment one.
#[test]
fn each_value_is_quantized_at_most_twice() {
    let (values, calls) = (5000, 3);
    for ranks in 2..=8 {
        let x = tensors(ranks, values, 4);
        let spec = codec("group:group=64");
        on_each_rank(ranks, tiles_of(300), |mut group| {
            let own = group.segments(&spec, values).segment(group.rank()).len() as u64;
            let mut y = vec![0.0; values];
            for _ in 0..calls {
                group.all_reduce(&spec, &x[group.rank()][..], &mut y).unwrap();
            }
            let Statistics { calls: done, pushed_values, shared_values, .. } = group.statistics();
            assert_eq!((done, pushed_values, shared_values), (3, 3 * (5000 - own), 3 * own), "{ranks} ranks");
        });
    }
}

/// Four bits and a 64th of 32 a value to each owner, and as much back to everyone, but for headers and the terms.
#[test]
fn bytes_are_those_of_the_codec() {
    let (ranks, values) = (4, 1 << 16);
    let x = tensors(ranks, values, 5);
    let sent: u64 = on_each_rank(ranks, tiles_of(4096), |mut group| {
        let mut y = vec![0.0; values];
        group.all_reduce(&codec("group:group=64"), &x[group.rank()][..], &mut y).unwrap();
        group.statistics().sent_bytes
    })
    .iter()
    .sum();
    let payload = 2 * (ranks as u64 - 1) * values as u64 * 9 / 16;
    // Four tiles a segment, three messages of each in either direction; the first has the terms.
    let messages = ranks as u64 * 4 * 6;
    assert!((payload..=payload + messages * 4 + messages / 4 * 150).contains(&sent), "{sent} for {payload}");
}

/// What the backward pass multiplies with in the paper, so that small scales do not vanish in f16, every message has of itself: a
/// power of two changes nothing but the exponent of the result.
#[test]
fn tiny_gradients_are_summed_as_exactly_as_large_ones() {
    let x = tensors(3, 2000, 6);
    for spec in ["group", "group:bits=8,quantizer=naive", "group:quantizer=symmetric"] {
        let y = all_reduce(spec, 256, &x).swap_remove(0);
        for exponent in [-100, -24, 30, 90] {
            let power = 2_f32.powi(exponent);
            let scaled: Vec<Vec<f32>> = x.iter().map(|x| x.iter().map(|x| x * power).collect()).collect();
            let expected: Vec<f32> = y.iter().map(|y| y * power).collect();
            assert_eq!(all_reduce(spec, 256, &scaled).swap_remove(0), expected, "{spec}, 2^{exponent}");
        }
    }
}

/// Sixteen-bit tensors are summed as their values in f32 are, and the sum is rounded to their format once.
#[test]
fn sixteen_bit_tensors_are_those_of_their_values() {
    let x = tensors(3, 4001, 8);
    let narrow: Vec<Vec<bf16>> = x.iter().map(|x| x.iter().map(|&x| bf16::from_f32(x)).collect()).collect();
    let wide: Vec<Vec<f32>> = narrow.iter().map(|x| x.iter().map(|x| x.to_f32()).collect()).collect();
    for spec in ["group:group=64", "f32", "bf16"] {
        let expected = all_reduce(spec, 300, &wide).swap_remove(0);
        on_each_rank(3, tiles_of(300), |mut group| {
            let mut y = vec![bf16::ZERO; 4001];
            group.all_reduce(&codec(spec), &narrow[group.rank()][..], &mut y).unwrap();
            assert!(y.iter().zip(&expected).all(|(y, sum)| *y == bf16::from_f32(*sum)), "{spec}");
            let mut y = vec![f16::ZERO; 4001];
            group.all_reduce(&codec(spec), &narrow[group.rank()][..], &mut y).unwrap();
            assert!(y.iter().zip(&expected).all(|(y, sum)| *y == f16::from_f32(*sum)), "{spec}");
        });
    }
}
