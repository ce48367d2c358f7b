//! Fixed-point and raw messages against their definitions, for every kind of tensor.

mod common;

use common::random::Tensor;
use common::{encode, oracle, random, round_trip};
use half::{bf16, f16};
use proptest::prelude::*;
use thinwire_codec::{CodecSpec, DType, FixedSettings, HEADER_LEN, RawSettings, Shape};

fn scaled(x: &[f32]) -> (f64, Vec<f64>) {
    let unit = 2_f64.powi(oracle::exponent(x));
    (unit, x.iter().map(|&x| f64::from(x) / unit).collect())
}

fn check_fixed(settings: FixedSettings, shape: Shape, x: &[f32]) -> Result<(), TestCaseError> {
    let (message, decoded) = round_trip(&CodecSpec::Fixed(settings), shape, x);
    let (unit, scaled) = scaled(x);
    let groups = x.len().div_ceil(settings.group);
    let (steps, codes) = message[HEADER_LEN..].split_at(2 * groups);
    let width = settings.bits as usize;
    prop_assert_eq!(codes.len(), (x.len() * width).div_ceil(8));
    let largest = f64::from((1_u32 << (settings.bits - 1)) - 1);
    for (i, (&x, &decoded)) in scaled.iter().zip(&decoded).enumerate() {
        let group = i / settings.group;
        let members = &scaled[group * settings.group..scaled.len().min((group + 1) * settings.group)];
        let wanted = members.iter().fold(0.0_f64, |max, x| max.max(x.abs())) / largest;
        let step = f64::from(f16::from_le_bytes([steps[2 * group], steps[2 * group + 1]]));
        // The smallest f16 that is not below; the quotient itself is rounded to f32 first.
        let rounding = wanted * f64::from(f32::EPSILON) + 1e-30;
        prop_assert!(step >= wanted - rounding, "step {step} for {wanted}");
        prop_assert!(step <= wanted + (wanted * 2_f64.powi(-10)).max(2_f64.powi(-24)) + rounding);

        let code = (0..width)
            .map(|b| u32::from(codes[(i * width + b) / 8] >> ((i * width + b) % 8) & 1) << b)
            .sum::<u32>();
        let code = f64::from(code) - largest;
        let wanted = if step == 0.0 { 0.0 } else { (x / step).clamp(-largest, largest) };
        let tolerance = 0.5 + wanted.abs() * f64::from(f32::EPSILON) + 1e-20;
        prop_assert!((code - wanted).abs() <= tolerance, "code {code} for {wanted}");

        let wanted = (code * step * unit).clamp(f64::from(f32::MIN), f64::from(f32::MAX));
        let tolerance = wanted.abs() * f64::from(f32::EPSILON) + 1.5e-45;
        prop_assert!((f64::from(decoded) - wanted).abs() <= tolerance, "{decoded} for {wanted}");
        // The promise: half a step, and no clipping; the rest is f32 rounding.
        let error = (f64::from(decoded) - x * unit).abs();
        let tolerance = (0.5 * step + 2.0 * x.abs() * f64::from(f32::EPSILON) + 1e-30) * unit + 1.5e-45;
        prop_assert!(error <= tolerance, "off by {error}, at most {tolerance}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn fixed_follows_its_definition(
        bits in 2_u32..=16,
        log2 in 3_u32..=10,
        Tensor { shape, x, .. } in random::tensor(),
    ) {
        check_fixed(FixedSettings { bits, group: 1 << log2, raw_below: 0 }, shape, &x)?;
    }

    #[test]
    fn raw_f32_is_bit_exact(Tensor { shape, x, .. } in random::tensor()) {
        let (message, decoded) = round_trip(&CodecSpec::Raw(RawSettings { dtype: DType::F32 }), shape, &x);
        for ((x, bytes), decoded) in x.iter().zip(message[HEADER_LEN..].chunks(4)).zip(&decoded) {
            prop_assert_eq!(bytes, &x.to_le_bytes()[..]);
            prop_assert_eq!(x.to_bits(), decoded.to_bits());
        }
    }

    #[test]
    fn raw_bf16_rounds_to_even_and_saturates(Tensor { shape, x, .. } in random::tensor()) {
        let (_, decoded) = round_trip(&CodecSpec::Raw(RawSettings { dtype: DType::BF16 }), shape, &x);
        for (&x, &decoded) in x.iter().zip(&decoded) {
            let rounded = bf16::from_f32(x);
            let wanted = if rounded.is_finite() { rounded } else { bf16::MAX.copysign(rounded) };
            prop_assert_eq!(decoded.to_bits(), f32::from(wanted).to_bits(), "{}", x);
        }
    }

    #[test]
    fn raw_f16_rounds_the_scaled_value(Tensor { shape, x, .. } in random::tensor()) {
        let (message, decoded) = round_trip(&CodecSpec::Raw(RawSettings { dtype: DType::F16 }), shape, &x);
        let (unit, scaled) = scaled(&x);
        for ((&x, bytes), &decoded) in scaled.iter().zip(message[HEADER_LEN..].chunks(2)).zip(&decoded) {
            // What f32 cannot hold of a scaled value is far below half the smallest f16.
            let wanted = f16::from_f64(x);
            prop_assert_eq!(f16::from_le_bytes([bytes[0], bytes[1]]).to_bits(), wanted.to_bits(), "{}", x);
            // 512 times the unit of the largest floats would be 2^128.
            let wanted = ((f64::from(wanted) * unit) as f32).clamp(f32::MIN, f32::MAX);
            prop_assert_eq!(decoded.to_bits(), wanted.to_bits());
        }
    }
}

/// Every f16 and every bf16, raw in its own format and in f32, comes back bit by bit.
#[test]
fn raw_is_bit_exact_where_the_wire_is_wide_enough() {
    let f16s: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).filter(|x| x.is_finite()).collect();
    let bf16s: Vec<bf16> = (0..=u16::MAX).map(bf16::from_bits).filter(|x| x.is_finite()).collect();
    for text in ["f16", "f32"] {
        let shape = Shape::new(1, 1, f16s.len());
        let message = encode(&text.parse().unwrap(), shape, &f16s[..]);
        let mut decoded = vec![f16::NAN; f16s.len()];
        common::decode(&text.parse().unwrap(), shape, &message, &mut decoded[..]);
        assert!(f16s.iter().zip(&decoded).all(|(a, b)| a.to_bits() == b.to_bits()), "f16 by {text}");
    }
    for text in ["bf16", "f32"] {
        let shape = Shape::new(1, 1, bf16s.len());
        let message = encode(&text.parse().unwrap(), shape, &bf16s[..]);
        let mut decoded = vec![bf16::NAN; bf16s.len()];
        common::decode(&text.parse().unwrap(), shape, &message, &mut decoded[..]);
        assert!(bf16s.iter().zip(&decoded).all(|(a, b)| a.to_bits() == b.to_bits()), "bf16 by {text}");
    }
}
