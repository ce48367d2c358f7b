//! Number formats, extremes of range, empty tensors, and what is refused.

mod common;

use common::random::Tensor;
use common::{decode, encode, packed_size, random, round_trip, specs};
use half::{bf16, f16};
use proptest::prelude::*;
use thinwire_codec::{
    CodecError, CodecSpec, DType, DecodeError, EncodeError, HEADER_LEN, PackedSize, Shape, TensorView,
    TensorViewMut,
};

fn narrow_f16(x: f32) -> f16 {
    let rounded = f16::from_f32(x);
    if rounded.is_finite() { rounded } else { f16::MAX.copysign(rounded) }
}

fn narrow_bf16(x: f32) -> bf16 {
    let rounded = bf16::from_f32(x);
    if rounded.is_finite() { rounded } else { bf16::MAX.copysign(rounded) }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// A 16-bit tensor is the f32 tensor of the same values, but for its own format's range on the way back.
    #[test]
    fn sixteen_bit_tensors_are_their_f32_values(Tensor { shape, x, .. } in random::tensor()) {
        let half: Vec<f16> = x.iter().map(|&x| narrow_f16(x)).collect();
        let brain: Vec<bf16> = x.iter().map(|&x| narrow_bf16(x)).collect();
        let wide_half: Vec<f32> = half.iter().map(|&x| x.into()).collect();
        let wide_brain: Vec<f32> = brain.iter().map(|&x| x.into()).collect();
        // Below a threshold a tensor is sent in its own format.
        for spec in specs().into_iter().filter(|spec| !spec.sends_raw(shape)) {
            // An f16 tensor needs no scale in a raw f16 message.
            if spec.to_string() != "raw:dtype=f16" {
                let message = encode(&spec, shape, &half[..]);
                prop_assert_eq!(&message, &encode(&spec, shape, &wide_half[..]), "{}", spec);
            }
            let message = encode(&spec, shape, &brain[..]);
            prop_assert_eq!(&message, &encode(&spec, shape, &wide_brain[..]), "{}", spec);

            let mut wide = vec![0.0_f32; x.len()];
            decode(&spec, shape, &message, &mut wide[..]);
            let mut decoded = vec![bf16::NAN; x.len()];
            decode(&spec, shape, &message, &mut decoded[..]);
            for (&wide, &decoded) in wide.iter().zip(&decoded) {
                prop_assert_eq!(decoded.to_bits(), narrow_bf16(wide).to_bits());
            }

            let message = encode(&spec, shape, &half[..]);
            decode(&spec, shape, &message, &mut wide[..]);
            let mut decoded = vec![f16::NAN; x.len()];
            decode(&spec, shape, &message, &mut decoded[..]);
            for (&wide, &decoded) in wide.iter().zip(&decoded) {
                prop_assert_eq!(decoded.to_bits(), narrow_f16(wide).to_bits());
            }
        }
    }

    /// `measure` reports what `decode` does.
    #[test]
    fn measured_errors_are_the_decoded_ones(Tensor { shape, x, .. } in random::tensor()) {
        for spec in specs() {
            let (message, decoded) = round_trip(&spec, shape, &x);
            let mut codec = spec.build().unwrap();
            let stats = codec.measure(TensorView::new(shape, &x[..]).unwrap(), &message).unwrap();
            let errors = x.iter().zip(&decoded).map(|(&x, &y)| f64::from(y) - f64::from(x));
            let sq_error: f64 = errors.clone().map(|error| error * error).sum();
            let sq_signal: f64 = x.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
            prop_assert_eq!(stats.elements, x.len() as u64);
            prop_assert!((stats.sq_error - sq_error).abs() <= 1e-12 * sq_error);
            prop_assert!((stats.sq_signal - sq_signal).abs() <= 1e-12 * sq_signal);
            prop_assert_eq!(stats.max_abs_error, errors.fold(0.0, |max, error| error.abs().max(max)));
            if sq_signal > 0.0 {
                prop_assert!((stats.rel_sq_error() - sq_error / sq_signal).abs() <= 1e-12);
            }
        }
    }
}

/// Scaling by a power of two scales the decoded values by it, and changes nothing else: no overflow, no underflow.
#[test]
fn relative_error_is_the_same_at_every_magnitude() {
    let shape = Shape::new(1, 8, 200);
    // 12 significant bits, so that a subnormal tensor holds them too.
    let x: Vec<f32> = random::Family::Gaussian
        .values(shape.elements().unwrap(), 9)
        .iter()
        .map(|x| (x * 512.0).round() / 512.0)
        .collect();
    for text in ["fixed", "fixed:bits=3", "tah", "tah:tau=0", "group", "group:quantizer=symmetric"] {
        let spec: CodecSpec = text.parse().unwrap();
        let reference = encode(&spec, shape, &x[..]);
        for e in [-140, -126, -100, -10, 10, 100, 124] {
            let power = 2_f64.powi(e);
            let scaled: Vec<f32> = x.iter().map(|&x| (f64::from(x) * power) as f32).collect();
            let message = encode(&spec, shape, &scaled[..]);
            assert_eq!(message[HEADER_LEN..], reference[HEADER_LEN..], "{spec} at 2^{e}");
        }
    }
}

/// Steps reach beyond the largest float; what lands there is the largest float.
#[test]
fn the_largest_floats_do_not_become_infinite() {
    let shape = Shape::new(1, 2, 96);
    let x: Vec<f32> = (0..192).map(|i| if i % 3 == 0 { f32::MIN } else { f32::MAX }).collect();
    for spec in specs() {
        let (_, decoded) = round_trip(&spec, shape, &x);
        assert!(decoded.iter().all(|value| value.is_finite()), "{spec}");
        let mut halves = vec![bf16::NAN; x.len()];
        decode(&spec, shape, &encode(&spec, shape, &x[..]), &mut halves[..]);
        assert!(halves.iter().all(|value| value.is_finite()), "{spec} as bf16");
    }
}

#[test]
fn values_beyond_the_caller_s_format_are_refused() {
    let shape = Shape::new(1, 1, 64);
    let mut x = [1.0_f32; 64];
    x[40] = 333_824.0;
    for spec in specs() {
        let message = encode(&spec, shape, &x[..]);
        let mut out = [f16::ZERO; 64];
        let error = spec
            .build()
            .unwrap()
            .decode(&message, TensorViewMut::new(shape, &mut out[..]).unwrap())
            .unwrap_err();
        let DecodeError::Range { magnitude, dtype: DType::F16 } = error else { panic!("{spec}: {error}") };
        assert!((262_144.0..=333_824.0).contains(&magnitude), "{spec}: {magnitude}");
        assert!(out.iter().all(|value| value.is_finite()));
    }
    // Below 2^16 only rounding can lead out of range, and that saturates.
    x[40] = 65535.0;
    for spec in specs() {
        let mut out = [f16::NAN; 64];
        decode(&spec, shape, &encode(&spec, shape, &x[..]), &mut out[..]);
        assert!(out.iter().all(|value| value.is_finite()), "{spec}");
    }
}

#[test]
fn non_finite_values_are_refused_before_anything_is_written() {
    let shape = Shape::new(2, 3, 50);
    for spec in specs() {
        let mut codec = spec.build().unwrap();
        for (index, value) in
            [(0, f32::NAN), (149, f32::INFINITY), (299, f32::NEG_INFINITY), (171, -f32::NAN)]
        {
            let mut x = random::activation(300, 11);
            x[299] = f32::NAN;
            x[index] = value;
            let half: Vec<f16> = x.iter().map(|&x| f16::from_f32(x)).collect();
            let brain: Vec<bf16> = x.iter().map(|&x| bf16::from_f32(x)).collect();
            for view in [
                TensorView::new(shape, &x[..]).unwrap(),
                TensorView::new(shape, &half[..]).unwrap(),
                TensorView::new(shape, &brain[..]).unwrap(),
            ] {
                let mut out = vec![0x5a; packed_size(&spec, shape)];
                let error = codec.encode(view, &mut out).unwrap_err();
                let EncodeError::NonFinite { index: found, value: shown } = error else { panic!("{error}") };
                assert_eq!(found, index, "{spec}");
                assert!(shown.to_bits() == value.to_bits() || shown.is_nan() && value.is_nan(), "{shown}");
                assert!(out.iter().all(|&byte| byte == 0x5a), "{spec} wrote before it checked");
            }
        }
    }
}

#[test]
fn short_buffers_are_refused_and_long_ones_used_from_the_front() {
    let shape = Shape::new(1, 3, 70);
    let x = random::activation(210, 12);
    for spec in specs() {
        let mut codec = spec.build().unwrap();
        let view = TensorView::new(shape, &x[..]).unwrap();
        let message = encode(&spec, shape, &x[..]);
        let needed = message.len();
        let mut out = vec![0x5a; needed - 1];
        let error = codec.encode(view, &mut out).unwrap_err();
        assert_eq!(error, EncodeError::BufferTooSmall { needed, got: needed - 1 }, "{spec}");
        assert!(out.iter().all(|&byte| byte == 0x5a));
        let mut out = vec![0x5a; needed + 3];
        assert_eq!(codec.encode(view, &mut out), Ok(needed));
        assert_eq!(out[..needed], message[..]);
        assert_eq!(out[needed..], [0x5a; 3]);
    }
}

#[test]
fn empty_tensors_travel_as_a_header() {
    for spec in specs() {
        for shape in [(0, 4, 8), (2, 0, 8), (2, 4, 0), (0, 0, 0), (1, 1, 0)] {
            let shape = Shape::new(shape.0, shape.1, shape.2);
            let (message, decoded) = round_trip(&spec, shape, &[]);
            assert_eq!(message.len(), HEADER_LEN, "{spec} {shape}");
            assert!(decoded.is_empty());
            let mut codec = spec.build().unwrap();
            let stats = codec.measure(TensorView::new(shape, &[0.0_f32; 0][..]).unwrap(), &message).unwrap();
            assert_eq!((stats.elements, stats.rel_sq_error()), (0, 0.0));
        }
    }
}

#[test]
fn zeros_come_back_as_zeros() {
    let shape = Shape::new(1, 2, 100);
    for spec in specs() {
        let (message, decoded) = round_trip(&spec, shape, &[0.0; 200]);
        assert_eq!(message[2..4], [0, 0], "{spec}: no scale");
        assert!(decoded.iter().all(|&value| value == 0.0), "{spec}");
    }
}

#[test]
fn lengths_and_products_are_checked() {
    let shape = Shape::new(2, 3, 4);
    let error = TensorView::new(shape, &[0.0_f32; 23][..]).unwrap_err();
    assert_eq!(error, CodecError::Length { shape, expected: 24, got: 23 });
    let error = TensorViewMut::new(shape, &mut [f16::ZERO; 25][..]).unwrap_err();
    assert_eq!(error, CodecError::Length { shape, expected: 24, got: 25 });

    let half = 1 << (usize::BITS / 2);
    let overflowing = Shape::new(half, half, 1);
    assert_eq!(overflowing.elements(), Err(CodecError::TooLarge { shape: overflowing }));
    for spec in specs() {
        let codec = spec.build().unwrap();
        for shape in [
            overflowing,
            Shape::new(1, half, half),
            Shape::new(usize::MAX, 1, 1),
            Shape::new(1, usize::MAX, 1),
        ] {
            assert_eq!(codec.packed_size(shape, DType::F32), Err(CodecError::TooLarge { shape }), "{spec}");
        }
        // A large but countable shape is no error, and costs nothing to ask about.
        let shape = Shape::new(1 << 10, 1 << 12, 1 << 14);
        assert!(matches!(codec.packed_size(shape, DType::F32), Ok(PackedSize::Exact(_))), "{spec}");
    }
}
