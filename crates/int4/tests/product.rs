//! Integer products of every instruction set against three nested loops.

mod common;

use common::{codes, for_each_isa, generator};
use proptest::prelude::*;
use thinwire_int4::{Int4Error, Int4Matrix, Int4View, Int8View, Isa, Operand, product, product_batched};

for_each_isa!(
    small_shapes,
    tiles_and_their_neighbours,
    extreme_codes_do_not_saturate,
    many_blocks_on_threads,
    transposed_and_selected,
    batches,
);

/// `sum over k of a[m, k] b[n, k]`.
fn naive(a: &[i8], b: &[i8], [m, n, k]: [usize; 3]) -> Vec<i32> {
    let dot =
        |i: usize, j: usize| (0..k).map(|l| i32::from(a[i * k + l]) * i32::from(b[j * k + l])).sum::<i32>();
    (0..m).flat_map(|i| (0..n).map(move |j| dot(i, j))).collect()
}

fn transpose(codes: &[i8], [rows, columns]: [usize; 2]) -> Vec<i8> {
    (0..columns).flat_map(|j| (0..rows).map(move |i| codes[i * columns + j])).collect()
}

/// Checks the product of random operands in both widths, and of one of each.
fn check(isas: &[Isa], [m, n, k]: [usize; 3], seed: u64) {
    let mut random = generator(seed);
    let [narrow_a, narrow_b] = [codes(m * k, 7, &mut random), codes(n * k, 7, &mut random)];
    let [wide_a, wide_b] = [codes(m * k, 127, &mut random), codes(n * k, 127, &mut random)];
    let packed_a = Int4Matrix::from_codes([m, k], &narrow_a).unwrap();
    let packed_b = Int4Matrix::from_codes([n, k], &narrow_b).unwrap();
    let narrow = [Operand::from(packed_a.view()), packed_b.view().into()];
    let wide = [
        Operand::from(Int8View::new([m, k], &wide_a).unwrap()),
        Int8View::new([n, k], &wide_b).unwrap().into(),
    ];
    let cases = [
        ("4 by 4", narrow, [&narrow_a, &narrow_b]),
        ("8 by 8", wide, [&wide_a, &wide_b]),
        ("4 by 8", [narrow[0], wide[1]], [&narrow_a, &wide_b]),
        ("8 by 4", [wide[0], narrow[1]], [&wide_a, &narrow_b]),
    ];
    for (name, [a, b], codes) in cases {
        let expected = naive(codes[0], codes[1], [m, n, k]);
        for &isa in isas {
            let mut out = vec![i32::MIN; m * n];
            product(isa, a, b, &mut out).unwrap();
            assert!(out == expected, "{isa}, {name}, [{m}, {n}, {k}]");
        }
    }
}

fn small_shapes(isa: Isa) {
    let mut seed = 0;
    for m in [0, 1, 2, 5] {
        for n in [0, 1, 3, 9] {
            for k in 0..10 {
                seed += 1;
                check(&[isa], [m, n, k], seed);
            }
        }
    }
}

/// Around the sizes of the tiles, words and tile registers of every microkernel.
fn tiles_and_their_neighbours(isa: Isa) {
    for (i, m) in [13, 14, 15, 33].into_iter().enumerate() {
        for (j, n) in [15, 17, 31, 32, 65].into_iter().enumerate() {
            for (l, k) in [63, 64, 66, 129].into_iter().enumerate() {
                check(&[isa], [m, n, k], (i * 100 + j * 10 + l) as u64);
            }
        }
    }
}

/// Every code at its limit, over more than the stretches in which sums are kept narrow.
fn extreme_codes_do_not_saturate(isa: Isa) {
    let (m, n, k) = (3, 18, 5000);
    for sign in [1, -1] {
        for (most, narrow) in [(7, true), (-8, true), (127, false), (-128, false)] {
            let a = vec![most; m * k];
            let b = vec![if most == i8::MIN { most } else { most * sign }; n * k];
            if b[0] == 8 {
                continue;
            }
            let mut out = vec![0; m * n];
            if narrow {
                let a = Int4Matrix::from_codes([m, k], &a).unwrap();
                let b = Int4Matrix::from_codes([n, k], &b).unwrap();
                product(isa, a.view().into(), b.view().into(), &mut out).unwrap();
            } else {
                let [a, b] = [Int8View::new([m, k], &a).unwrap(), Int8View::new([n, k], &b).unwrap()];
                product(isa, a.into(), b.into(), &mut out).unwrap();
            }
            let expected = i32::from(a[0]) * i32::from(b[0]) * 5000;
            assert!(out.iter().all(|&sum| sum == expected), "{isa}: {} for {expected}", out[0]);
        }
    }
}

/// More than a block of the output each way, more than a stretch of the depth.
fn many_blocks_on_threads(isa: Isa) {
    check(&[isa], [120, 270, 77], 1);
    check(&[isa], [270, 70, 33], 2);
    check(&[isa], [15, 17, 4500], 3);
    check(&[isa], [1, 1500, 300], 4);
}

fn transposed_and_selected(isa: Isa) {
    let mut random = generator(5);
    for ([m, n, k], width) in [([7, 5, 9], 7), ([131, 261, 45], 7), ([15, 257, 130], 127), ([1, 33, 3], 7)] {
        let [a, b] = [codes(m * k, width, &mut random), codes(n * k, width, &mut random)];
        let expected = naive(&a, &b, [m, n, k]);
        let columns = [transpose(&a, [m, k]), transpose(&b, [n, k])];
        // Rows in another order than theirs, so that a product that ignores the selection differs.
        let order: Vec<u32> = (0..k as u32).map(|i| i * 2 % k as u32).collect();
        let picked: Vec<i8> =
            order.iter().flat_map(|&i| columns[0][i as usize * m..][..m].iter().copied()).collect();
        let check = |a: Operand<'_>, b: Operand<'_>, expected: &[i32], what: &str| {
            let mut out = vec![i32::MIN; m * n];
            product(isa, a, b, &mut out).unwrap();
            assert!(out == expected, "{isa}, {what}, [{m}, {n}, {k}]");
        };
        let run = |whole: [Operand<'_>; 2], turned: [Operand<'_>; 2]| {
            let turned = turned.map(Operand::transposed);
            check(turned[0], turned[1], &expected, "both transposed");
            check(whole[0], turned[1], &expected, "right transposed");
            check(turned[0], whole[1], &expected, "left transposed");
            let selected = naive(&transpose(&picked, [k, m]), &b, [m, n, k]);
            check(turned[0].select(&order).unwrap(), whole[1], &selected, "depth selected");
            let last_first: Vec<u32> = (0..m as u32).rev().collect();
            let reversed: Vec<i32> = expected.chunks(n).rev().flatten().copied().collect();
            check(whole[0].select(&last_first).unwrap(), whole[1], &reversed, "outputs selected");
        };
        if width == 7 {
            let pack = |shape, codes: &[i8]| Int4Matrix::from_codes(shape, codes).unwrap();
            let (a, b) = (pack([m, k], &a), pack([n, k], &b));
            let turned = [pack([k, m], &columns[0]), pack([k, n], &columns[1])];
            run([a.view().into(), b.view().into()], [turned[0].view().into(), turned[1].view().into()]);
        } else {
            let view = |shape, codes| Operand::from(Int8View::new(shape, codes).unwrap());
            run([view([m, k], &a), view([n, k], &b)], [view([k, m], &columns[0]), view([k, n], &columns[1])]);
        }
    }
}

fn batches(isa: Isa) {
    let (count, shape) = (5, [17, 33, 21]);
    let [m, n, k] = shape;
    let mut random = generator(6);
    let pairs: Vec<[Vec<i8>; 2]> =
        (0..count).map(|_| [codes(m * k, 7, &mut random), codes(n * k, 7, &mut random)]).collect();
    let packed: Vec<[Int4Matrix; 2]> = pairs
        .iter()
        .map(|[a, b]| {
            [Int4Matrix::from_codes([m, k], a).unwrap(), Int4Matrix::from_codes([n, k], b).unwrap()]
        })
        .collect();
    let a: Vec<Operand<'_>> = packed.iter().map(|[a, _]| a.view().into()).collect();
    let b: Vec<Operand<'_>> = packed.iter().map(|[_, b]| b.view().into()).collect();
    let mut out = vec![0; count * m * n];
    product_batched(isa, &a, &b, &mut out).unwrap();
    let expected: Vec<i32> = pairs.iter().flat_map(|[a, b]| naive(a, b, shape)).collect();
    assert!(out == expected, "{isa}");
}

proptest! {
    // The oracle is slow where it is not optimized.
    #![proptest_config(ProptestConfig {
        cases: if cfg!(debug_assertions) { 20 } else { 200 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_shape_on_every_instruction_set(
        m in 0_usize..70, n in 0_usize..70, k in 0_usize..300, seed: u64,
    ) {
        check(&Isa::available(), [m, n, k], seed);
    }
}

#[test]
fn what_does_not_fit_is_refused_and_the_output_kept() {
    let isa = Isa::PORTABLE;
    let bytes = [0; 12];
    let view = |shape| Operand::from(Int4View::new(shape, &bytes).unwrap());
    let mut out = [5; 4];
    let error = product(isa, view([6, 3]), view([4, 5]), &mut out).unwrap_err();
    assert_eq!(error.to_string(), "product of shape [6, 4]: 4 elements, expected 24");
    let mut out = [5; 24];
    let error = product(isa, view([6, 3]), view([4, 5]), &mut out).unwrap_err();
    assert_eq!(error, Int4Error::Mismatch { what: "depths of a product", left: 3, right: 5 });
    assert!(out.iter().all(|&kept| kept == 5));
    assert_eq!(view([6, 3]).select(&[0, 6]).unwrap_err(), Int4Error::Row { row: 6, rows: 6 });

    let codes = vec![0; 131_072];
    let deep = |k| Operand::from(Int8View::new([1, k], &codes[..k]).unwrap());
    assert_eq!(product(isa, deep(131_071), deep(131_071), &mut [0]), Ok(()));
    let error = product(isa, deep(131_072), deep(131_072), &mut [0]).unwrap_err();
    assert_eq!(error, Int4Error::TooDeep { depth: 131_072, most: 131_071 });

    assert_eq!(
        product_batched(isa, &[view([6, 3])], &[], &mut []),
        Err(Int4Error::Mismatch { what: "operands of a batch", left: 1, right: 0 })
    );
}

#[test]
fn an_unknown_instruction_set_is_refused_by_name() {
    let error = "mmx".parse::<Isa>().unwrap_err().to_string();
    assert!(error.starts_with("instruction set `mmx`: this processor has portable"), "{error}");
}
