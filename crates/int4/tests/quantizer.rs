//! Transform, quantizer and step of every instruction set against plain formulas.

mod common;

use common::{for_each_isa, generator, hadamard_by_matrix, on_threads, values};
use thinwire_int4::{Block, Int4Error, Isa, Quantized, Step, hadamard, mean_squared_error, search_block};

for_each_isa!(transform_is_the_matrix_product, quantized_as_defined, sums_as_defined);

/// Rows and columns: odd ones, tails of every vector, more than a task of rows.
const SHAPES: [[usize; 2]; 14] = [
    [1, 1],
    [3, 2],
    [2, 7],
    [5, 9],
    [2, 15],
    [4, 16],
    [3, 20],
    [2, 24],
    [7, 100],
    [3, 96],
    [2, 1024],
    [3, 3072],
    [70, 1000],
    [0, 8],
];

/// Every case of shape and block.
fn cases() -> impl Iterator<Item = ([usize; 2], Block)> {
    SHAPES.into_iter().flat_map(|shape| Block::all(shape[1]).map(move |block| (shape, block)))
}

fn transformed(isa: Isa, x: &[f32], shape: [usize; 2], block: Block) -> Vec<f32> {
    let mut v = x.to_vec();
    hadamard(isa, &mut v, shape, block).unwrap();
    v
}

fn transform_is_the_matrix_product(isa: Isa) {
    let mut random = generator(1);
    for (shape, block) in cases() {
        let x = values(shape[0] * shape[1], &mut random);
        let got = transformed(isa, &x, shape, block);
        assert_eq!(got, transformed(Isa::PORTABLE, &x, shape, block), "{isa}, {shape:?}, {block:?}");

        // Each of log2 B additions and the norm's product round once, the norm itself too, on values below B * 20 / sqrt(B).
        let size = block.size() as f64;
        let tolerance = (size.log2() + 3.0) * f64::from(f32::EPSILON) / 2.0 * size.sqrt() * 20.0;
        let wide: Vec<f64> = x.iter().copied().map(f64::from).collect();
        for (got, want) in got.iter().zip(hadamard_by_matrix(&wide, shape[1], block.size())) {
            assert!(
                (f64::from(*got) - want).abs() <= tolerance,
                "{isa}, {shape:?}, {block:?}: {got} for {want}"
            );
        }
        let twice = transformed(isa, &got, shape, block);
        for (twice, once) in twice.iter().zip(&x) {
            let error = f64::from((twice - once).abs());
            assert!(
                error <= 2.0 * size.sqrt() * tolerance,
                "{isa}, {shape:?}, {block:?}: {twice} for {once}"
            );
        }
    }
}

/// Codes, mask and a step that clamps some.
fn quantized_as_defined(isa: Isa) {
    let mut random = generator(2);
    for (shape, block) in cases() {
        let x = values(shape[0] * shape[1], &mut random);
        // With the first, values that are not transformed lie halfway between codes, and at the largest.
        for step in [0.5, 0.173] {
            let step = Step::new(step).unwrap();
            let quantized = Quantized::new(isa, &x, shape, block, step).unwrap();
            let codes = quantized.codes().view().codes();
            for (i, v) in transformed(Isa::PORTABLE, &x, shape, block).into_iter().enumerate() {
                let ratio = v / step.get();
                let expected = ratio.clamp(-7.0, 7.0).round_ties_even() as i8;
                assert_eq!(codes[i], expected, "{isa}, {shape:?}, {block:?}: {v}");
                let unclamped = quantized.unclamped().get(i / shape[1], i % shape[1]);
                assert_eq!(unclamped, ratio.abs() <= 7.0, "{isa}, {shape:?}, {block:?}: {v}");
            }
            let portable = Quantized::new(Isa::PORTABLE, &x, shape, block, step).unwrap();
            assert_eq!(quantized, portable, "{isa}: the bytes behind the last column");
            let one = on_threads(1, || Quantized::new(isa, &x, shape, block, step).unwrap());
            assert_eq!(on_threads(5, || Quantized::new(isa, &x, shape, block, step).unwrap()), one);
        }
    }
}

/// Initial step and mean squared error.
fn sums_as_defined(isa: Isa) {
    let mut random = generator(3);
    for (shape, block) in cases() {
        let x = values(shape[0] * shape[1], &mut random);
        let v: Vec<f64> = transformed(isa, &x, shape, block).into_iter().map(f64::from).collect();
        let mean = |sum: f64| if v.is_empty() { 0.0 } else { sum / v.len() as f64 };
        let step = Step::initial(isa, &x, shape, block).unwrap();
        let expected = 2.0 * mean(v.iter().map(|v| v.abs()).sum()) / 7.0_f64.sqrt();
        // Sums of at most 3072 values of one sign in 16 lanes of f32: under 200 roundings.
        let close =
            |got: f64, want: f64| (got - want).abs() <= 200.0 * f64::from(f32::EPSILON) * want + 1e-30;
        assert!(close(step.get().into(), expected), "{isa}, {shape:?}: {step:?} for {expected}");

        let error = mean_squared_error(isa, &x, shape, block, step).unwrap();
        let s = f64::from(step.get());
        let squares = v.iter().map(|v| (v - s * (v / s).clamp(-7.0, 7.0).round_ties_even()).powi(2));
        let expected = mean(squares.sum());
        assert!(
            (error - expected).abs() <= 1e-4 * expected + 1e-12,
            "{isa}, {shape:?}: {error} for {expected}"
        );
        assert_eq!(step, Step::initial(Isa::PORTABLE, &x, shape, block).unwrap());
        assert_eq!(
            error,
            on_threads(5, || mean_squared_error(Isa::PORTABLE, &x, shape, block, step).unwrap())
        );
    }
}

/// A few columns far larger than the others, as in the activations of a transformer: the longest blocks spread them best.
#[test]
fn outliers_ask_for_long_blocks_and_even_values_for_none() {
    let isa = Isa::choose().unwrap();
    let shape = [64, 1024];
    let mut random = generator(4);
    let mut x: Vec<f32> =
        (0..64 * 1024).map(|_| rand::RngExt::random_range(&mut random, -1.0..1.0)).collect();
    let w = x.clone();
    let plain = search_block(isa, (&x, shape), (&w, shape)).unwrap();
    for row in x.chunks_exact_mut(1024) {
        row[17] *= 300.0;
        row[700] *= 300.0;
    }
    let found = search_block(isa, (&x, shape), (&w, shape)).unwrap();
    assert!(found.block > plain.block && found.block.size() >= 256, "{found:?} after {plain:?}");
    for block in Block::all(1024) {
        let errors = [&x, &w].map(|values| {
            let step = Step::initial(isa, values, shape, block).unwrap();
            mean_squared_error(isa, values, shape, block, step).unwrap()
        });
        assert!(errors[0] * errors[1] >= found.errors[0] * found.errors[1], "{block:?} beats {found:?}");
    }
    let steps = [&x, &w].map(|values| Step::initial(isa, values, shape, found.block).unwrap());
    assert_eq!(found.steps, steps);
}

#[test]
fn what_is_no_number_is_noticed() {
    for isa in Isa::available() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut x = vec![0.5; 3 * 21];
            let of =
                |x: &[f32]| Quantized::new(isa, x, [3, 21], Block::NONE, Step::new(0.1).unwrap()).unwrap();
            assert!(of(&x).is_finite());
            x[41] = bad;
            assert!(!of(&x).is_finite(), "{isa}: {bad}");
            assert!(matches!(Step::initial(isa, &x, [3, 21], Block::NONE), Err(Int4Error::Step(_))));
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let isa = Isa::PORTABLE;
    for (block, columns) in [(0, 8), (3, 9), (2048, 2048), (16, 24)] {
        assert_eq!(Block::new(block, columns), Err(Int4Error::Block { block, columns }));
    }
    let block = Block::new(8, 24).unwrap();
    let error = hadamard(isa, &mut [0.0; 20], [2, 10], block).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Hadamard blocks of 8 in rows of 10: expected a power of two up to 1024 that divides the row"
    );
    let step = Step::new(1.0).unwrap();
    assert!(matches!(
        Quantized::new(isa, &[0.0; 5], [2, 3], Block::NONE, step),
        Err(Int4Error::Length { .. })
    ));
    for bad in [0.0, -1.0, f32::NAN, f32::INFINITY] {
        assert!(Step::new(bad).is_err());
    }
    assert_eq!(Step::from_parameter(-3.0), Ok(Step::MIN));
    assert_eq!(Step::initial(isa, &[0.0; 4], [2, 2], Block::NONE), Ok(Step::MIN));
    assert!(Step::from_parameter(f32::NAN).is_err());
}
