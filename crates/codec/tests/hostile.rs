//! Damaged and hostile messages: an error or finite values, never a panic.

mod common;

use common::{encode, packed_size, random, specs};
use half::f16;
use proptest::prelude::*;
use rand::RngExt;
use thinwire_codec::{
    CodecId, CodecSpec, DType, DecodeError, FORMAT_VERSION, Shape, TensorView, TensorViewMut,
};

const SHAPE: Shape = Shape::new(2, 3, 70);
const LEN: usize = 2 * 3 * 70;

fn decode(spec: &CodecSpec, bytes: &[u8]) -> Result<Vec<f32>, DecodeError> {
    let mut out = vec![0.0; LEN];
    let result = spec.build().unwrap().decode(bytes, TensorViewMut::new(SHAPE, &mut out[..]).unwrap());
    assert!(out.iter().all(|value| value.is_finite()), "{spec}: {result:?} and a value that is not finite");
    result.map(|()| out)
}

fn message(spec: &CodecSpec) -> Vec<u8> {
    encode(spec, SHAPE, &random::activation(LEN, 20)[..])
}

#[test]
fn every_truncation_is_an_error() {
    for spec in specs() {
        let message = message(&spec);
        let expected = message.len();
        for got in 0..expected {
            assert_eq!(decode(&spec, &message[..got]), Err(DecodeError::Length { expected, got }), "{spec}");
        }
    }
}

#[test]
fn trailing_bytes_are_an_error() {
    for spec in specs() {
        let mut message = message(&spec);
        let expected = message.len();
        message.push(0);
        assert_eq!(
            decode(&spec, &message),
            Err(DecodeError::Length { expected, got: expected + 1 }),
            "{spec}"
        );
    }
}

#[test]
fn every_flipped_byte_is_an_error_or_a_decoded_tensor() {
    for spec in specs() {
        let message = message(&spec);
        for i in 0..message.len() {
            for mask in [0x01, 0x80, 0x7f, 0xff, 0x10] {
                let mut damaged = message.clone();
                damaged[i] ^= mask;
                let result = decode(&spec, &damaged);
                assert!(i >= 2 || result.is_err(), "{spec}: byte {i} of the header was {:#x}", damaged[i]);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_payloads_are_an_error_or_a_decoded_tensor(seed: u64, flips in 1_usize..20) {
        let mut rng = random::generator(seed);
        for spec in specs() {
            let mut damaged = message(&spec);
            for _ in 0..flips {
                let at = rng.random_range(0..damaged.len());
                damaged[at] = rng.random();
            }
            let _ = decode(&spec, &damaged);
            // All but the first two bytes at random: any scale, any parameters, any codes.
            rng.fill(&mut damaged[2..]);
            let _ = decode(&spec, &damaged);
            // A valid scale, so that the payload is reached.
            damaged[2..4].copy_from_slice(&rng.random_range(-157..=119_i16).to_le_bytes());
            let _ = decode(&spec, &damaged);
            let mut out = vec![f16::ZERO; LEN];
            let _ = spec.build().unwrap().decode(&damaged, TensorViewMut::new(SHAPE, &mut out[..]).unwrap());
            prop_assert!(out.iter().all(|value| value.is_finite()));
        }
    }
}

#[test]
fn other_versions_codecs_and_scales_are_named() {
    for spec in specs() {
        let message = message(&spec);
        let with = |at: usize, bytes: &[u8]| {
            let mut changed = message.clone();
            changed[at..at + bytes.len()].copy_from_slice(bytes);
            decode(&spec, &changed).unwrap_err()
        };
        assert_eq!(with(0, &[7]), DecodeError::Version { expected: FORMAT_VERSION, got: 7 });
        let expected = spec.sent_as(SHAPE, DType::F32);
        assert_eq!(with(1, &[99]), DecodeError::Codec { expected, got: 99 });
        for exponent in [-158_i16, 120, i16::MIN, i16::MAX] {
            let error = with(2, &exponent.to_le_bytes());
            assert!(matches!(error, DecodeError::Scale { got, .. } if got == exponent), "{spec}: {error}");
        }
    }
    let error = decode(&"f32".parse().unwrap(), &{
        let mut scaled = message(&"f32".parse().unwrap());
        scaled[2] = 1;
        scaled
    });
    assert_eq!(error, Err(DecodeError::Scale { got: 1, min: 0, max: 0 }));
}

#[test]
fn a_message_of_another_codec_is_refused_by_every_codec() {
    for ours in specs() {
        for theirs in specs() {
            if ours.sent_as(SHAPE, DType::F32) == theirs.sent_as(SHAPE, DType::F32) {
                continue;
            }
            // Of the right length, so that only the id tells.
            let mut foreign = vec![0; packed_size(&ours, SHAPE)];
            foreign[0] = FORMAT_VERSION;
            foreign[1] = theirs.sent_as(SHAPE, DType::F32).into();
            let expected = DecodeError::Codec {
                expected: ours.sent_as(SHAPE, DType::F32),
                got: theirs.sent_as(SHAPE, DType::F32).into(),
            };
            assert_eq!(decode(&ours, &foreign), Err(expected));
        }
    }
}

#[test]
fn the_threshold_decides_which_codec_a_message_must_be_of() {
    for (name, id) in [("tah", CodecId::Tah), ("fixed", CodecId::Fixed)] {
        let with = |below: usize| -> CodecSpec { format!("{name}:raw_below={below}").parse().unwrap() };
        let (raw, packed) = (with(LEN + 1), with(LEN));
        let (raw_message, packed_message) = (message(&raw), message(&packed));
        assert_eq!(raw_message, message(&"f32".parse().unwrap()));
        assert_eq!(packed_message, message(&name.parse().unwrap()));
        // Each as it comes, and with the other's codec byte in front of its own payload.
        for disguise in [false, true] {
            let mut foreign = packed_message.clone();
            foreign[1] = if disguise { CodecId::RawF32.into() } else { foreign[1] };
            let expected = if disguise {
                DecodeError::Length { expected: raw_message.len(), got: packed_message.len() }
            } else {
                DecodeError::Codec { expected: CodecId::RawF32, got: id.into() }
            };
            assert_eq!(decode(&raw, &foreign), Err(expected), "{raw}");

            let mut foreign = raw_message.clone();
            foreign[1] = if disguise { id.into() } else { foreign[1] };
            let expected = if disguise {
                DecodeError::Length { expected: packed_message.len(), got: raw_message.len() }
            } else {
                DecodeError::Codec { expected: id, got: CodecId::RawF32.into() }
            };
            assert_eq!(decode(&packed, &foreign), Err(expected), "{packed}");
        }
    }
}

/// Where the sections of a default TAH message of [`SHAPE`] start: 6 tiles a sample, of which 5 are high.
mod tah_section {
    pub(crate) const ZEROS: usize = 4;
    pub(crate) const SCALES: usize = ZEROS + 12;
    pub(crate) const PIVOTS: usize = SCALES + 12;
    pub(crate) const MAP: usize = PIVOTS + 5;
    pub(crate) const CODES: usize = MAP + 1;
}

#[test]
fn invalid_tah_parameters_are_named() {
    let spec: CodecSpec = "tah".parse().unwrap();
    // Gaussian: no outlier tile, so all pivots are 0.
    let message = encode(&spec, SHAPE, &random::Family::Offset.values(LEN, 21)[..]);
    let sample = (message.len() - 4) / 2;
    let with = |at: usize, change: fn(u8) -> u8| {
        let mut changed = message.clone();
        changed[at] = change(changed[at]);
        decode(&spec, &changed)
    };
    let invalid = |what, tile| Err(DecodeError::Parameter { what, tile });
    for bad in [|_| 0x7c, |_| 0xfc, |_| 0x7e] {
        assert_eq!(with(tah_section::ZEROS + 3, bad), invalid("zero point", 1));
        assert_eq!(with(sample + tah_section::SCALES + 5, bad), invalid("scale", 8));
    }
    assert_eq!(with(tah_section::PIVOTS, |byte| byte ^ 1), invalid("pivot", 0));
    assert_eq!(
        with(tah_section::PIVOTS + 4, |byte| byte | 0x10),
        Err(DecodeError::UnusedBits { section: "pivot" })
    );
    assert_eq!(
        with(tah_section::MAP, |byte| byte | 0x40),
        Err(DecodeError::UnusedBits { section: "width map" })
    );
    let all_high = DecodeError::WidthMap { sample: 1, expected: 5, got: 6 };
    assert_eq!(with(sample + tah_section::MAP, |_| 0x3f), Err(all_high));
    assert!(with(tah_section::CODES, |byte| byte ^ 1).is_ok());
}

/// Sections of a default group message of [`SHAPE`], 4 groups: scales at 4, zero points at 12, codes at 20.
#[test]
fn invalid_group_parameters_are_named() {
    let spec: CodecSpec = "group".parse().unwrap();
    let message = message(&spec);
    let with = |at: usize, high_byte: u8| {
        let mut changed = message.clone();
        changed[at] = high_byte;
        decode(&spec, &changed)
    };
    let invalid = |what, tile| Err(DecodeError::Parameter { what, tile });
    for bad in [0x7c, 0xfc, 0x7e] {
        assert_eq!(with(4 + 3, bad), invalid("scale", 1));
        assert_eq!(with(12 + 7, bad), invalid("zero point", 3));
    }
    assert_eq!(with(4 + 5, 0x80), invalid("scale", 2), "a scale has no sign");
    assert!(with(12 + 5, 0x80).is_ok(), "a zero point may have one");
    assert!(with(20, 0xff).is_ok());
}

#[test]
fn bits_behind_the_last_code_are_refused() {
    // Two allocation tiles a token, the second with one tile of two: the width of the first decides how much is filled.
    let spec: CodecSpec = "tah:g=8,a=16,p=0.5".parse().unwrap();
    let shape = Shape::new(1, 1, 24);
    let mut x = vec![0.0_f32; 24];
    x[0] = 1.0; // of the two, the tile of lower entropy
    x[16..].fill(1.0);
    let mut message = encode(&spec, shape, &x[..]);
    let mut out = vec![0.0_f32; 24];
    let mut codec = spec.build().unwrap();
    assert_eq!(codec.decode(&message, TensorViewMut::new(shape, &mut out[..]).unwrap()), Ok(()));
    assert_eq!(out, x);
    assert_eq!(message.pop(), Some(0));
    message.push(1);
    let error = codec.decode(&message, TensorViewMut::new(shape, &mut out[..]).unwrap());
    assert_eq!(error, Err(DecodeError::UnusedBits { section: "code" }));

    for spec in ["fixed:bits=3", "group:bits=3", "group:bits=3,quantizer=symmetric"] {
        let spec: CodecSpec = spec.parse().unwrap();
        let shape = Shape::new(1, 1, 5);
        let mut message = encode(&spec, shape, &[1.0, 2.0, 3.0, -1.0, 0.5][..]);
        *message.last_mut().unwrap() |= 0x80;
        let error = spec.build().unwrap().decode(&message, TensorViewMut::new(shape, &mut out[..5]).unwrap());
        assert_eq!(error, Err(DecodeError::UnusedBits { section: "code" }), "{spec}");
    }
}

#[test]
fn measure_refuses_what_decode_refuses() {
    let x = vec![1.0_f32; LEN];
    for spec in specs() {
        let view = TensorView::new(SHAPE, &x[..]).unwrap();
        let error = spec.build().unwrap().measure(view, &[FORMAT_VERSION]).unwrap_err();
        assert!(matches!(error, DecodeError::Length { got: 1, .. }), "{spec}: {error}");
    }
}

#[test]
fn codec_ids_are_stable() {
    let ids = [
        (1, CodecId::RawF32),
        (2, CodecId::RawF16),
        (3, CodecId::RawBF16),
        (16, CodecId::Fixed),
        (32, CodecId::Tah),
        (48, CodecId::Aqsgd),
        (64, CodecId::Group),
    ];
    for byte in 0..=u8::MAX {
        let known = ids.iter().find(|&&(id, _)| id == byte).map(|&(_, id)| id).ok_or(byte);
        assert_eq!(CodecId::try_from(byte), known);
        if let Ok(id) = known {
            assert_eq!(u8::from(id), byte);
        }
    }
}
