//! TAH messages against the definitions in `f64`, for every kind of tensor, shape and setting.

mod common;

use common::oracle::{self, Tile as Exact};
use common::random::Tensor;
use common::tah_message::{self, TahMessage, tile_of};
use common::{random, round_trip};
use proptest::prelude::*;
use thinwire_codec::{CodecSpec, Shape, TahSettings};

/// Half a unit in the last place of an `f32` of magnitude 1, the error of one operation.
const ROUNDING: f64 = f32::EPSILON as f64 / 2.0;

/// What `f32` sums and the logarithm may add to an entropy of this many values, in bits. Each lane rounds once a term,
/// the tree four times, the terms a few times, all of it on up to `log2 S` times the sum; the logarithm is good to
/// 2.3e-6 and enters twice.
fn entropy_tolerance(values: usize) -> f64 {
    let len = values as f64;
    let log2_sum = 9.0 + len.log2();
    ROUNDING * (len / 16.0 + 16.0) * log2_sum + 2.0 * (2.3e-6 + 1e-7 * log2_sum)
}

/// What the butterfly may add to a value of a tile: `log2 G` additions and a division, each on at most
/// `sqrt(G)` times the largest value.
fn butterfly_tolerance(tile: &Exact) -> f64 {
    if !tile.outlier {
        return 0.0;
    }
    let len = tile.values.len() as f64;
    let norm = tile.values.iter().map(|x| x * x).sum::<f64>().sqrt();
    ROUNDING * (len.log2() + 2.0) * norm
}

/// Half a step of `f16` at this magnitude, 2^-25 in the subnormal range.
fn half_step_of_f16(x: f64) -> f64 {
    (x.abs() * 2_f64.powi(-11)).max(2_f64.powi(-25))
}

/// Checks one tile of a message; `unit` is 2^k.
fn check_tile(got: &tah_message::Tile, exact: &Exact, unit: f64) -> Result<(), TestCaseError> {
    let butterfly = butterfly_tolerance(exact);
    // Besides, scaling may underflow, and each f32 operation rounds.
    let error_at = |x: f64| butterfly + 4.0 * ROUNDING * x.abs() + 1e-30;
    let (min, max) =
        exact.values.iter().fold((f64::MAX, f64::MIN), |(min, max), &x| (min.min(x), max.max(x)));
    let (zero, step, largest) = (got.zero, got.step / unit, f64::from((1_u32 << got.width) - 1));

    prop_assert!((zero - min).abs() <= half_step_of_f16(min) + error_at(min), "zero {zero} for {min}");
    let wanted = (max - zero).max(0.0) / largest;
    let tolerance = half_step_of_f16(wanted) + (error_at(max) + error_at(zero)) / largest;
    prop_assert!((step - wanted).abs() <= tolerance, "step {step} for {wanted}");

    for (&code, &x) in got.codes.iter().zip(&exact.values) {
        if step == 0.0 {
            prop_assert_eq!(code, 0);
            continue;
        }
        let wanted = ((x - zero) / step).clamp(0.0, largest);
        let tolerance = (error_at(x) + error_at(zero)) / step + 2.0 * ROUNDING * wanted;
        prop_assert!((f64::from(code) - wanted).abs() <= 0.5 + tolerance, "code {code} for {wanted}");
    }
    Ok(())
}

/// The values of a tile by its wire contents, in units of the tensor.
fn dequantize(tile: &tah_message::Tile, unit: f64) -> Vec<f64> {
    let values: Vec<f64> =
        tile.codes.iter().map(|&code| f64::from(code) * tile.step + tile.zero * unit).collect();
    if !tile.outlier {
        return values;
    }
    let mut values = oracle::hadamard(&values);
    values.swap(0, tile.pivot);
    values
}

fn check(settings: &TahSettings, shape: Shape, x: &[f32]) -> Result<(), TestCaseError> {
    let (message, decoded) = round_trip(&CodecSpec::Tah(*settings), shape, x);
    let exact = oracle::tah(settings, shape, x);
    let unit = 2_f64.powi(exact.exponent);
    prop_assert_eq!(i32::from(i16::from_le_bytes([message[2], message[3]])), exact.exponent);

    let tiles = TahMessage::parse(settings, shape, &message).tiles;
    prop_assert_eq!(tiles.len(), exact.tiles.len());
    let (_, per_allocation, _) = tah_message::tiling(settings, shape.channels);
    for (got, exact) in tiles.iter().zip(&exact.tiles) {
        if exact.entropy_margin > entropy_tolerance(per_allocation * settings.tile) {
            prop_assert_eq!(got.width, exact.width);
        }
        if exact.ratio_margin > 4.0 * ROUNDING * (exact.ratio + 1.0) {
            prop_assert_eq!(got.outlier, exact.outlier);
        }
        if got.outlier == exact.outlier {
            prop_assert_eq!(got.pivot, exact.pivot);
            check_tile(got, exact, unit)?;
        }
    }

    let values: Vec<Vec<f64>> = tiles.iter().map(|tile| dequantize(tile, unit)).collect();
    for (i, &got) in decoded.iter().enumerate() {
        let tile = &values[tile_of(settings, shape, i)];
        let wanted = tile[i % shape.channels % settings.tile].clamp(f64::from(f32::MIN), f64::from(f32::MAX));
        let largest = tile.iter().fold(0.0_f64, |max, x| max.max(x.abs()));
        // The butterfly and the two operations of the quantizer round relative to the tile's largest value.
        let tolerance = ROUNDING * largest * (4.0 + (settings.tile as f64).sqrt() * 12.0) + 1.5e-45;
        prop_assert!((f64::from(got) - wanted).abs() <= tolerance, "value {i}: {got} for {wanted}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn messages_follow_the_definitions(
        settings in random::tah_settings(),
        Tensor { shape, x, .. } in random::tensor(),
    ) {
        check(&settings, shape, &x)?;
    }

    #[test]
    fn default_messages_follow_the_definitions(Tensor { shape, x, .. } in random::tensor()) {
        check(&TahSettings::default(), shape, &x)?;
    }
}

/// Every value of these tiles is half-way between two codes, where half-to-even and half-up part.
#[test]
fn halves_round_to_even() {
    let settings =
        TahSettings { tile: 16, high_share: 1.0, outlier_ratio: f32::INFINITY, ..TahSettings::default() };
    let settings = TahSettings { allocation: thinwire_codec::Allocation::Channels(16), ..settings };
    // Extent 15, so the step is 1 and the zero point 0.
    let x: Vec<f32> = (0..16)
        .map(|i| [0.0, 15.0][usize::from(i == 1)] + if i > 1 { i as f32 - 1.5 } else { 0.0 })
        .collect();
    let (message, _) = round_trip(&CodecSpec::Tah(settings), Shape::new(1, 1, 16), &x);
    let tiles = TahMessage::parse(&settings, Shape::new(1, 1, 16), &message).tiles;
    assert_eq!(tiles[0].codes, [0, 15, 0, 2, 2, 4, 4, 6, 6, 8, 8, 10, 10, 12, 12, 14]);
}

/// `r > tau`, not `>=`: a tile whose largest value is exactly twice the second is none with an outlier.
#[test]
fn the_outlier_ratio_is_exclusive() {
    let (settings, shape) = (TahSettings::default(), Shape::new(1, 2, 64));
    let mut x = [0.25_f32; 128];
    (x[7], x[9]) = (-1.0, 0.5);
    (x[64 + 7], x[64 + 9]) = (-1.0_f32.next_up(), 0.5_f32.next_down());
    let (message, _) = round_trip(&CodecSpec::Tah(settings), shape, &x);
    let tiles = TahMessage::parse(&settings, shape, &message).tiles;
    assert_eq!(
        [(tiles[0].outlier, tiles[0].pivot), (tiles[1].outlier, tiles[1].pivot)],
        [(false, 0), (true, 7)]
    );
}

/// Which zero a minimum finds first depends on the order of the search; the wire has one.
#[test]
fn the_zero_point_of_signed_zeros_is_plus_zero() {
    let (settings, shape) = (TahSettings::default(), Shape::new(1, 1, 128));
    let mut x = [-0.0_f32; 128];
    x[70] = 1.0;
    let (message, decoded) = round_trip(&CodecSpec::Tah(settings), shape, &x);
    let tiles = TahMessage::parse(&settings, shape, &message).tiles;
    assert!(tiles[0].zero == 0.0 && tiles[0].zero.is_sign_positive(), "{}", tiles[0].zero);
    // The sign bit of the scale is the outlier flag: no zero may set it.
    assert!(!tiles[0].outlier);
    assert!(decoded[..64].iter().all(|value| value.to_bits() == 0));
}
