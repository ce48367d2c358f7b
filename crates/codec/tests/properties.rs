//! What the codecs promise: properties 1 to 6 of TAH-Quant's specification, each a test, some for every codec.

mod common;

use std::thread;

use common::{encode, packed_size, random, round_trip, specs};
use thinwire_codec::{
    Allocation, CodecSpec, HEADER_LEN, Shape, SpecError, TahSettings, TensorView, TensorViewMut,
};

fn rel_sq_error(spec: &str, shape: Shape, x: &[f32]) -> f64 {
    let mut codec = spec.parse::<CodecSpec>().unwrap().build().unwrap();
    let view = TensorView::new(shape, x).unwrap();
    let message = encode(&codec.spec(), shape, x);
    codec.measure(view, &message).unwrap().rel_sq_error()
}

#[test]
fn property_1_the_transform_is_harmless_on_gaussian_tiles() {
    let shape = Shape::new(2, 128, 256);
    let x = random::Family::Gaussian.values(shape.elements().unwrap(), 1);
    let never = rel_sq_error("tah:tau=inf", shape, &x);
    let default = rel_sq_error("tah", shape, &x);
    assert!((default / never - 1.0).abs() < 0.1, "{default}, never transformed {never}");
    let always = rel_sq_error("tah:tau=0", shape, &x);
    assert!(always < 1.1 * never, "{always} always, {never} never transformed");
}

#[test]
fn property_2_the_transform_rescues_tiles_with_one_outlier() {
    let shape = Shape::new(1, 64, 256);
    let mut rng = random::generator(2);
    let mut x: Vec<f32> = (0..shape.elements().unwrap()).map(|_| random::gaussian(&mut rng)).collect();
    for (i, tile) in x.chunks_mut(64).enumerate() {
        tile[i * 29 % 64] = if i % 2 == 0 { 100.0 } else { -100.0 };
    }
    let (with, without) = (rel_sq_error("tah", shape, &x), rel_sq_error("tah:tau=inf", shape, &x));
    // "More than 3x" holds for the error itself, not only for its square.
    assert!(without.sqrt() / with.sqrt() > 3.0, "{with} with, {without} without");
}

/// That applying the transform twice is the identity is a test of the kernel.
#[test]
fn property_3_tiles_are_powers_of_two() {
    for tile in [0, 1, 3, 4, 12, 48, 63, 65, 96, 2048] {
        let error = format!("tah:g={tile}").parse::<CodecSpec>().unwrap_err();
        assert!(matches!(error, SpecError::Value { key: "g", .. }), "{tile}: {error}");
    }
    for log2 in 3..=10 {
        assert!(format!("tah:g={}", 1 << log2).parse::<CodecSpec>().is_ok(), "2^{log2}");
    }
}

#[test]
fn property_4_bytes_do_not_depend_on_thread_or_alignment() {
    let shape = Shape::new(3, 5, 203);
    let x = random::activation(shape.elements().unwrap(), 4);
    for spec in specs() {
        let (expected_bytes, expected_values) = round_trip(&spec, shape, &x);
        thread::scope(|scope| {
            for offset in 0..4 {
                let (x, expected_bytes, expected_values) = (&x, &expected_bytes, &expected_values);
                scope.spawn(move || {
                    let mut moved = vec![0.0; offset];
                    moved.extend_from_slice(x);
                    let mut bytes = vec![0; expected_bytes.len() + offset];
                    let mut codec = spec.build().unwrap();
                    let view = TensorView::new(shape, &moved[offset..]).unwrap();
                    codec.encode(view, &mut bytes[offset..]).unwrap();
                    assert_eq!(bytes[offset..], expected_bytes[..], "{spec}");
                    let out = TensorViewMut::new(shape, &mut moved[offset..]).unwrap();
                    codec.decode(&bytes[offset..], out).unwrap();
                    assert_eq!(bits(&moved[offset..]), bits(expected_values), "{spec}");
                });
            }
        });
    }
}

#[test]
fn property_5_encoding_twice_gives_the_same_bytes() {
    let (small, large) = (Shape::new(1, 3, 77), Shape::new(2, 4, 333));
    let (x, y) = (random::activation(231, 5), random::activation(2664, 6));
    for spec in specs() {
        let mut codec = spec.build().unwrap();
        let mut encode = |shape, x: &[f32]| {
            // The buffer's old content must not shine through either.
            let mut bytes = vec![0xff; packed_size(&spec, shape)];
            codec.encode(TensorView::new(shape, x).unwrap(), &mut bytes).unwrap();
            bytes
        };
        let first = encode(small, &x);
        let other = encode(large, &y);
        assert_eq!(encode(small, &x), first, "{spec}, after a larger message");
        assert_eq!(encode(large, &y), other, "{spec}");
        assert_eq!(first, common::encode(&spec, small, &x[..]), "{spec}, from a fresh codec");
    }
}

/// Bytes of a TAH payload, counted one allocation tile at a time.
fn ledger(settings: &TahSettings, shape: Shape) -> usize {
    let tiles_per_token = shape.channels.div_ceil(settings.tile);
    let allocation = match settings.allocation {
        Allocation::Channels(channels) => channels,
        Allocation::Token => tiles_per_token * settings.tile,
    };
    // Quantization tiles of every allocation tile of a sample.
    let mut allocations = Vec::new();
    for _ in 0..shape.tokens {
        let mut channels = 0;
        while channels < shape.channels {
            let end = (channels + allocation).min(tiles_per_token * settings.tile);
            allocations.push((end - channels) / settings.tile);
            channels = end;
        }
    }
    let tiles: usize = allocations.iter().sum();
    let high = (settings.high_share * allocations.len() as f64).round_ties_even() as usize;
    allocations.sort_unstable_by(|a, b| b.cmp(a));
    let high_tiles: usize = allocations[..high].iter().sum();
    let code_bits = settings.tile
        * (high_tiles * settings.high_bits as usize + (tiles - high_tiles) * settings.low_bits as usize);
    let pivot_bits = tiles * settings.tile.ilog2() as usize;
    let sample = tiles * 4 + pivot_bits.div_ceil(8) + allocations.len().div_ceil(8) + code_bits / 8;
    shape.samples * sample
}

#[test]
fn property_6_the_ledger_is_exact_for_every_shape() {
    for text in
        ["tah", "tah:g=8,a=24,p=0.5,hi=8,lo=2", "tah:g=32,a=96,p=0.37", "tah:g=16,a=c,p=0.5", "tah:g=8,p=0"]
    {
        let spec: CodecSpec = text.parse().unwrap();
        let CodecSpec::Tah(settings) = spec else { unreachable!() };
        for shape in
            [(1, 1, 1), (1, 1, 63), (1, 1, 64), (1, 1, 65), (2, 3, 100), (3, 5, 7), (1, 17, 129), (4, 2, 256)]
        {
            let shape = Shape::new(shape.0, shape.1, shape.2);
            let x = random::activation(shape.elements().unwrap(), 7);
            assert_eq!(
                encode(&spec, shape, &x[..]).len(),
                HEADER_LEN + ledger(&settings, shape),
                "{spec} {shape}"
            );
        }
    }
}

#[test]
fn property_6_the_default_costs_4_409_bits() {
    let shape = Shape::new(1, 4096, 2048);
    let bits = 8.0 * packed_size(&"tah".parse().unwrap(), shape) as f64 / shape.elements().unwrap() as f64;
    let ledger = 0.8 * 4.0 + 0.2 * 3.0 + 39.0 / 64.0;
    assert!((bits - ledger).abs() < 1e-4, "{bits} bits, by the ledger {ledger}");
}

#[test]
fn the_others_cost_what_they_say() {
    let shape = Shape::new(2, 7, 99); // 1386 values, 22 groups of 64
    for (text, payload) in [
        ("f32", 1386 * 4),
        ("f16", 1386 * 2),
        ("bf16", 1386 * 2),
        ("fixed", 22 * 2 + 1040),
        ("fixed:bits=16", 22 * 2 + 2772),
        ("group", 11 * 4 + 693),
        ("group:bits=8,quantizer=naive", 11 * 4 + 1386),
        ("group:bits=3,group=64,quantizer=symmetric", 22 * 2 + 520),
    ] {
        assert_eq!(packed_size(&text.parse().unwrap(), shape), HEADER_LEN + payload, "{text}");
    }
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}
