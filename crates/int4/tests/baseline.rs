//! The quantizers that 4-bit training is measured against.

mod common;

use common::{for_each_isa, generator, on_threads, values};
use thinwire_int4::{EightBit, Int4Error, Isa, Key, Outliers, Rounding, scaled_product};

for_each_isa!(codes_are_neighbours_of_the_values);

const SHAPES: [[usize; 2]; 6] = [[1, 1], [3, 7], [2, 16], [5, 45], [40, 1000], [0, 4]];

/// What may stand next to a ratio, below and above.
fn neighbours(ratio: f32, rounding: Rounding) -> [f32; 2] {
    let magnitude = ratio.abs();
    let [below, above] = match rounding {
        Rounding::Logarithmic(_) if magnitude < 1.0 => [0.0, 1.0],
        Rounding::Logarithmic(_) => [magnitude.log2().floor().exp2(), 2.0 * magnitude.log2().floor().exp2()],
        _ => [magnitude.floor(), magnitude.floor() + 1.0],
    };
    [below.copysign(ratio), above.copysign(ratio)]
}

fn codes_are_neighbours_of_the_values(isa: Isa) {
    let mut random = generator(1);
    let key = Key::new(2);
    for shape in SHAPES {
        let x = values(shape[0] * shape[1], &mut random);
        let largest = x.iter().fold(0.0_f32, |largest, v| largest.max(v.abs()));
        for (rounding, most) in [
            (Rounding::Nearest, 127.0),
            (Rounding::ByChance(key), 127.0),
            (Rounding::Minimax(key), 7.0),
            (Rounding::Logarithmic(key), 64.0),
        ] {
            let quantized = EightBit::new(isa, &x, shape, rounding).unwrap();
            assert_eq!(quantized.step(), largest / most);
            for (&v, &code) in x.iter().zip(quantized.codes()) {
                let ratio = (v / quantized.step()).clamp(-most, most);
                let code = f32::from(code);
                if rounding == Rounding::Nearest {
                    assert_eq!(code, ratio.round_ties_even(), "{isa}: {v}");
                } else {
                    let around = neighbours(ratio, rounding);
                    assert!(around.contains(&code), "{isa}, {rounding:?}: {code} for {ratio}");
                }
            }
            let portable = on_threads(3, || EightBit::new(Isa::PORTABLE, &x, shape, rounding).unwrap());
            assert_eq!(quantized, portable, "{isa}, {rounding:?}");
        }
    }
}

/// Means over 4,000 keys, each within 5.5 of its own deviations: one test in 100,000 of the right code would fail (central limit
/// theorem, 3 x 60 means).
#[test]
fn chance_keeps_the_expectation() {
    const KEYS: u32 = 4000;
    let isa = Isa::choose().unwrap();
    let x = values(60, &mut generator(3));
    for rounding in [Rounding::ByChance, Rounding::Minimax, Rounding::Logarithmic] {
        let (mut sums, mut squares) = (vec![0.0_f64; 60], vec![0.0_f64; 60]);
        for i in 0..KEYS {
            let quantized = EightBit::new(isa, &x, [4, 15], rounding(Key::new(4).child(i.into()))).unwrap();
            for j in 0..60 {
                let value = f64::from(quantized.step()) * f64::from(quantized.codes()[j]);
                let error = value - f64::from(x[j]);
                sums[j] += error;
                squares[j] += error * error;
            }
        }
        for j in 0..60 {
            let [mean, variance] = [sums[j], squares[j]].map(|sum| sum / f64::from(KEYS));
            let deviation = (variance / f64::from(KEYS)).sqrt() + 1e-6;
            assert!(mean.abs() <= 5.5 * deviation, "{:?}, {}: off by {mean}", rounding(Key::new(0)), x[j]);
        }
    }
}

#[test]
fn zeros_and_what_is_no_number() {
    let isa = Isa::choose().unwrap();
    let of = |x: &[f32]| EightBit::new(isa, x, [2, 3], Rounding::Nearest).unwrap();
    assert_eq!((of(&[0.0; 6]).step(), of(&[0.0; 6]).codes()), (0.0, &[0; 6][..]));
    assert!(of(&[1.0, 2.0, f32::NAN, 0.0, 0.0, 0.0]).step().is_nan());
}

/// The quantized rest and the outliers together are nearer to the product than one quantizer for all.
#[test]
fn outliers_in_f32_bring_the_product_nearer() {
    let isa = Isa::choose().unwrap();
    let mut random = generator(5);
    let [n, c, d] = [12, 9, 100];
    let mut x = values(n * d, &mut random);
    for row in x.chunks_exact_mut(d) {
        row[31] *= 100.0;
    }
    let (w, dy) = (values(c * d, &mut random), values(n * c, &mut random));
    let exact =
        |i: usize| (0..d).map(|k| f64::from(x[i / c * d + k]) * f64::from(w[i % c * d + k])).sum::<f64>();
    let distance =
        |y: &[f32]| y.iter().enumerate().map(|(i, &y)| (f64::from(y) - exact(i)).powi(2)).sum::<f64>().sqrt();
    let weight = EightBit::new(isa, &w, [c, d], Rounding::Nearest).unwrap();
    let product = |x: &[f32]| {
        let quantized = EightBit::new(isa, x, [n, d], Rounding::Minimax(Key::new(0))).unwrap();
        let mut y = vec![0.0; n * c];
        let scale = quantized.step() * weight.step();
        scaled_product(isa, quantized.view().into(), weight.view().into(), scale, &mut y).unwrap();
        y
    };
    let mut rest = x.clone();
    let outliers = Outliers::take(&mut rest, [n, d], 0.01).unwrap();
    assert_eq!(outliers.count(), 12);
    let least =
        x.iter().zip(&rest).filter(|(x, rest)| x != rest).map(|(x, _)| x.abs()).fold(f32::MAX, f32::min);
    assert!(rest.iter().all(|v| v.abs() <= least));
    let mut y = product(&rest);
    outliers.add_product(&w, [c, d], &mut y).unwrap();
    assert!(3.0 * distance(&y) < distance(&product(&x)), "{} and {}", distance(&y), distance(&product(&x)));

    let mut dw = vec![0.0; c * d];
    outliers.add_weight_gradient(&dy, [n, c], &mut dw).unwrap();
    for (j, &got) in dw.iter().enumerate() {
        let taken = |i: usize| f64::from(x[i * d + j % d] - rest[i * d + j % d]);
        let expected: f64 = (0..n).map(|i| f64::from(dy[i * c + j / d]) * taken(i)).sum();
        assert!((f64::from(got) - expected).abs() <= 1e-5 * (1.0 + expected.abs()), "{got} for {expected}");
    }
}

#[test]
fn of_equal_magnitudes_the_first_are_taken() {
    let mut x = [1.0, -2.0, 2.0, 2.0, 0.5, 1.0];
    let outliers = Outliers::take(&mut x, [2, 3], 0.34).unwrap();
    assert_eq!((outliers.count(), x), (2, [1.0, 0.0, 0.0, 2.0, 0.5, 1.0]));
    let mut all = x;
    assert_eq!(Outliers::take(&mut all, [2, 3], 2.0).unwrap().count(), 6);
    assert_eq!(Outliers::take(&mut x, [2, 3], 0.0).unwrap().count(), 0);
    assert!(matches!(Outliers::take(&mut x, [2, 2], 0.5), Err(Int4Error::Length { .. })));
}
