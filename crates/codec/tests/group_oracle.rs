//! Group messages against their definition, for every kind of tensor.

mod common;

use common::random::Tensor;
use common::{oracle, random, round_trip};
use half::f16;
use proptest::prelude::*;
use thinwire_codec::{CodecSpec, GroupSettings, HEADER_LEN, Quantizer, Shape};

/// What a message says of each value: its group's step and zero point, and its code.
struct Parsed {
    step: f64,
    zero: f64,
    code: f64,
}

fn parse(settings: GroupSettings, values: usize, message: &[u8]) -> Vec<Parsed> {
    let groups = values.div_ceil(settings.group);
    let (symmetric, width) = (settings.quantizer == Quantizer::Symmetric, settings.bits as usize);
    let (parameters, codes) = message[HEADER_LEN..].split_at(if symmetric { 2 } else { 4 } * groups);
    let parameter = |i: usize| f64::from(f16::from_le_bytes([parameters[2 * i], parameters[2 * i + 1]]));
    let bit = |i: usize| u32::from(codes[i / 8] >> (i % 8) & 1);
    assert_eq!(codes.len(), (values * width).div_ceil(8));
    (0..values)
        .map(|i| Parsed {
            step: parameter(i / settings.group),
            zero: if symmetric {
                f64::from((1_u32 << (width - 1)) - 1)
            } else {
                parameter(groups + i / settings.group)
            },
            code: (0..width).map(|b| bit(i * width + b) << b).sum::<u32>().into(),
        })
        .collect()
}

/// The zero point by its definition, of a group whose minimum is `low` and whose step was rounded to `step`.
fn zero_point(quantizer: Quantizer, low: f64, high: f64, step: f64, largest: f64) -> f64 {
    let naive = -low / step;
    let nearest = naive.round_ties_even().clamp(0.0, largest);
    let away = (naive - nearest).abs();
    match quantizer {
        Quantizer::Symmetric => (largest - 1.0) / 2.0,
        Quantizer::ZeroAware if low <= 0.0 && high >= 0.0 => nearest,
        Quantizer::ZeroAware if away < 0.5 => {
            let t = 2.0 * away;
            nearest + t * t * (3.0 - 2.0 * t) * (naive - nearest)
        }
        Quantizer::Naive | Quantizer::ZeroAware => naive,
    }
}

/// Half the distance to the next f16, and what f32 arithmetic on the way to it may add.
fn f16_rounding(value: f64) -> f64 {
    (value.abs() * 2_f64.powi(-11)).max(2_f64.powi(-25)) + value.abs() * 1e-6
}

fn check(settings: GroupSettings, shape: Shape, x: &[f32]) -> Result<(), TestCaseError> {
    let (message, decoded) = round_trip(&CodecSpec::Group(settings), shape, x);
    let unit = 2_f64.powi(oracle::exponent(x));
    // Values far below the largest become zeros.
    let scaled: Vec<f64> = x.iter().map(|&x| f64::from((f64::from(x) / unit) as f32)).collect();
    let largest = f64::from((1_u32 << settings.bits) - 1);
    for (i, Parsed { step, zero, code }) in parse(settings, x.len(), &message).into_iter().enumerate() {
        let start = i / settings.group * settings.group;
        let members = &scaled[start..scaled.len().min(start + settings.group)];
        let low = members.iter().copied().fold(f64::INFINITY, f64::min);
        let high = members.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let farthest = high.max(-low);
        let (wanted_step, last) = match settings.quantizer {
            Quantizer::Symmetric => (farthest / ((largest - 1.0) / 2.0), largest - 1.0),
            Quantizer::Naive | Quantizer::ZeroAware => {
                (((high - low) / largest).max(farthest / 32768.0), largest)
            }
        };
        let wanted_step = wanted_step.max(2_f64.powi(-24));
        prop_assert!(
            (step - wanted_step).abs() <= f16_rounding(wanted_step),
            "step {step} for {wanted_step}"
        );

        // Of two integers as near as f32 can tell, either.
        let naive = -low / step;
        let tie = settings.quantizer == Quantizer::ZeroAware && (naive.fract().abs() - 0.5).abs() < 1e-4;
        let wanted_zero = zero_point(settings.quantizer, low, high, step, largest);
        let tolerance = f16_rounding(wanted_zero) + 1e-6 + if tie { 1.0 } else { 0.0 };
        prop_assert!((zero - wanted_zero).abs() <= tolerance, "zero point {zero} for {wanted_zero}");

        let place = (scaled[i] / step + zero).clamp(0.0, last);
        let tolerance = 0.5 + 1e-6 * (scaled[i] / step).abs().max(zero.abs());
        prop_assert!((code - place).abs() <= tolerance, "code {code} for {place}");

        let wanted = (step * (code - zero) * unit).clamp(f64::from(f32::MIN), f64::from(f32::MAX));
        let tolerance = wanted.abs() * f64::from(f32::EPSILON) + 1.5e-45;
        prop_assert!((f64::from(decoded[i]) - wanted).abs() <= tolerance, "{} for {wanted}", decoded[i]);

        // The promise: half a step, but for what rounding step and zero point to f16 clips.
        let clipped = last * f16_rounding(wanted_step) + step * f16_rounding(zero);
        let error = (f64::from(decoded[i]) - scaled[i] * unit).abs();
        let bound = (0.5 * step + clipped + 1e-6 * farthest) * unit + 1.5e-45;
        prop_assert!(error <= bound, "off by {error}, at most {bound}");
    }
    Ok(())
}

fn settings() -> impl Strategy<Value = GroupSettings> {
    let quantizer = prop::sample::select(vec![Quantizer::Symmetric, Quantizer::Naive, Quantizer::ZeroAware]);
    let group = prop::sample::select(vec![8, 16, 24, 64, 72, 128, 192, 1024]);
    (2_u32..=8, group, quantizer).prop_map(|(bits, group, quantizer)| GroupSettings {
        bits,
        group,
        quantizer,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn group_follows_its_definition(settings in settings(), Tensor { shape, x, .. } in random::tensor()) {
        check(settings, shape, &x)?;
    }

    /// Groups at every distance from zero, on both sides of it.
    #[test]
    fn group_follows_its_definition_near_zero(
        settings in settings(),
        offset in -2.0_f32..2.0,
        near in prop::sample::select(vec![1.0_f32, 0.3, 0.03, 0.001]),
        seed: u64,
    ) {
        let mut x = random::Family::Gaussian.values(2 * settings.group, seed);
        for (i, group) in x.chunks_mut(settings.group).enumerate() {
            let low = group.iter().copied().fold(f32::INFINITY, f32::min);
            let high = group.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let edge = if i == 0 { low } else { high };
            for x in group {
                *x += offset * near - edge;
            }
        }
        check(settings, Shape::new(1, 1, x.len()), &x)?;
    }
}

/// The quarter of an activation's values that are zero stay zero, which is what the zero point is for.
#[test]
fn zeros_stay_zeros_where_a_level_is_on_zero() {
    let mut x = random::activation(4096, 3);
    x.iter_mut().step_by(4).for_each(|x| *x = 0.0);
    let shape = Shape::new(1, 1, x.len());
    for (quantizer, kept) in
        [(Quantizer::ZeroAware, true), (Quantizer::Symmetric, true), (Quantizer::Naive, false)]
    {
        let spec = CodecSpec::Group(GroupSettings { quantizer, ..GroupSettings::default() });
        let (_, decoded) = round_trip(&spec, shape, &x);
        assert_eq!(decoded.iter().step_by(4).all(|&x| x == 0.0), kept, "{quantizer}");
    }
}
