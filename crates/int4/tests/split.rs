//! Bit splitting: its definition, and that it is right on average.

mod common;

use common::{for_each_isa, generator, on_threads, values};
use thinwire_int4::{Isa, Key, SplitGradient};

for_each_isa!(halves_as_defined, same_bits_everywhere);

const SHAPES: [[usize; 2]; 8] = [[1, 1], [2, 7], [5, 15], [3, 16], [4, 31], [9, 100], [40, 1000], [0, 3]];

fn split(isa: Isa, dy: &[f32], shape: [usize; 2], key: Key) -> SplitGradient {
    SplitGradient::new(isa, dy, shape, key).unwrap()
}

/// The upper half by its formula; the lower one a neighbour of what is left over.
fn halves_as_defined(isa: Isa) {
    let mut random = generator(1);
    for shape in SHAPES {
        let dy = values(shape[0] * shape[1], &mut random);
        let halves = split(isa, &dy, shape, Key::new(3));
        let [upper_step, lower_step] = halves.steps();
        let largest = dy.iter().fold(0.0_f32, |largest, v| largest.max(v.abs()));
        assert_eq!([upper_step, lower_step], [largest / 7.0, largest / 7.0 / 14.0]);
        let codes = halves.codes().view().codes();
        let (upper, lower) = codes.split_at(dy.len());
        for ((&v, &upper), &lower) in dy.iter().zip(upper).zip(lower) {
            assert_eq!(f32::from(upper), (v / upper_step).clamp(-7.0, 7.0).round_ties_even(), "{isa}: {v}");
            let rest = (v - upper_step * f32::from(upper)) / lower_step;
            let distance = (f32::from(lower) - rest).abs();
            assert!(lower.abs() <= 7 && distance < 1.0 + 1e-5, "{isa}: {lower} for {rest}");
        }
    }
}

fn same_bits_everywhere(isa: Isa) {
    let mut random = generator(2);
    for shape in SHAPES {
        let dy = values(shape[0] * shape[1], &mut random);
        let expected = on_threads(1, || split(Isa::PORTABLE, &dy, shape, Key::new(5)));
        assert_eq!(split(isa, &dy, shape, Key::new(5)), expected, "{isa}, {shape:?}");
        assert_eq!(on_threads(5, || split(isa, &dy, shape, Key::new(5))), expected, "{isa}, {shape:?}");
        if dy.len() > 16 {
            assert_ne!(split(isa, &dy, shape, Key::new(6)), expected, "another key has other draws");
        }
    }
}

/// Rows of a part of a matrix have the draws that they have in the whole one.
#[test]
fn draws_belong_to_row_and_column() {
    let isa = Isa::choose().unwrap();
    let mut dy = values(6 * 40, &mut generator(3));
    // The same step for both.
    dy[0] = 30.0;
    let whole = split(isa, &dy, [6, 40], Key::new(1)).codes().view().codes();
    let part = split(isa, &dy[..80], [2, 40], Key::new(1)).codes().view().codes();
    assert_eq!(part[80..], whole[6 * 40..][..80]);

    // Equal rows, more of them than one task has.
    let row = values(1000, &mut generator(5));
    let codes = split(isa, &row.repeat(80), [80, 1000], Key::new(1)).codes().view().codes();
    let lower: std::collections::HashSet<&[i8]> = codes[80 * 1000..].chunks_exact(1000).collect();
    assert_eq!(lower.len(), 80, "rows share their draws");
}

/// The mean over 4,000 keys of what 60 values are split into. By the central limit theorem a mean lies within 5.5 of its own deviations
/// of the value but for one in 26 million, and all 60 but for one test in 400,000.
#[test]
fn halves_add_up_to_the_gradient_on_average() {
    const KEYS: u32 = 4000;
    let isa = Isa::choose().unwrap();
    let shape = [4, 15];
    let dy = values(60, &mut generator(4));
    let (mut sums, mut squares) = (vec![0.0_f64; 60], vec![0.0_f64; 60]);
    let mut step = 0.0;
    for i in 0..KEYS {
        let halves = split(isa, &dy, shape, Key::new(9).child(i.into()));
        let codes = halves.codes().view().codes();
        let [upper, lower] = halves.steps().map(f64::from);
        step = lower;
        for j in 0..60 {
            let value = upper * f64::from(codes[j]) + lower * f64::from(codes[60 + j]);
            sums[j] += value - f64::from(dy[j]);
            squares[j] += (value - f64::from(dy[j])).powi(2);
        }
    }
    let mut drawn = 0;
    for j in 0..60 {
        let [mean, variance] = [sums[j], squares[j]].map(|sum| sum / f64::from(KEYS));
        // Values between two steps have the variance of a coin with the fraction's bias.
        assert!(variance <= step * step * 0.26, "{variance} with steps of {step}");
        drawn += u32::from(variance > 0.01 * step * step);
        // A value on a step, up to rounding, has no deviation of its own.
        let deviation = (variance / f64::from(KEYS)).sqrt() + 1e-6 * step;
        assert!(mean.abs() <= 5.5 * deviation, "value {j}, {}: off by {mean}, deviation {deviation}", dy[j]);
    }
    assert!(drawn > 40, "{drawn} values were drawn");
}

#[test]
fn zeros_and_what_is_no_number() {
    for isa in Isa::available() {
        for tiny in [0.0, 1e-41] {
            let halves = split(isa, &[tiny; 6], [2, 3], Key::new(0));
            assert_eq!(halves.steps(), [0.0; 2], "{isa}");
            assert_eq!(halves.codes().view().codes()[..6], [0; 6], "{isa}");
        }
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut dy = vec![1.0; 40];
            dy[33] = bad;
            assert!(split(isa, &dy, [4, 10], Key::new(0)).steps()[0].is_nan(), "{isa}: {bad}");
        }
    }
}
