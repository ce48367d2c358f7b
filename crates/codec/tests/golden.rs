//! Stored messages of every codec and format version. Today's encoder writes them to the byte, on every machine, and
//! today's decoder reads them.
//!
//! A change of the bytes is a new format version: raise `FORMAT_VERSION`, keep the old files, and write the new ones
//! with `cargo test -p thinwire-codec --test golden -- --ignored`, as those of a new codec.

mod common;

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use common::encode;
use common::tah_message::TahMessage;
use thinwire_codec::{CodecSpec, DType, FORMAT_VERSION, Shape, TensorView, TensorViewMut};

const SHAPE: Shape = Shape::new(2, 3, 50);

const MESSAGES: [(&str, &str); 12] = [
    ("raw-f32", "f32"),
    ("raw-f16", "f16"),
    ("raw-bf16", "bf16"),
    ("fixed", "fixed"),
    ("fixed-bits-11-group-16", "fixed:bits=11,group=16"),
    ("tah", "tah"),
    ("tah-g-16-always", "tah:g=16,tau=0,p=0.5"),
    ("tah-g-8-a-24", "tah:g=8,a=24,hi=8,lo=2,p=0.4"),
    ("tah-g-32-a-c", "tah:g=32,a=c,tau=inf,p=0.3"),
    ("group", "group"),
    ("group-bits-5-group-8-naive", "group:bits=5,group=8,quantizer=naive"),
    ("group-bits-6-group-64-symmetric", "group:bits=6,group=64,quantizer=symmetric"),
];

/// Messages of the same samples, one after the other, of codecs that remember them.
const VISITS: [(&str, &str); 2] =
    [("aqsgd", "aqsgd"), ("aqsgd-bits-11-bf16", "aqsgd:bits=11,group=16,keep=bf16,first=bf16")];

/// Values of full precision over ten binades, one in sixteen much larger, from integer arithmetic alone.
fn input() -> Vec<f32> {
    (1..=SHAPE.elements().unwrap() as u32)
        .map(|i| {
            let hash = (i.wrapping_mul(0x9e37_79b9) ^ i << 13).wrapping_mul(0x85eb_ca6b);
            let exponent = 120 + (hash >> 7) % 10 + if hash.is_multiple_of(16) { 9 } else { 0 };
            f32::from_bits(hash & 0x8000_0000 | exponent << 23 | (hash.rotate_left(9) & 0x007f_ffff))
        })
        .collect()
}

/// What each of three visits sends, and what it is decoded to.
fn visits(text: &str) -> [(Vec<u8>, Vec<f32>); 3] {
    let mut codec = text.parse::<CodecSpec>().unwrap().build().unwrap();
    [0.0, 1.0, 2.0].map(|visit| {
        let x: Vec<f32> = input().iter().map(|x| x + x * visit / 64.0).collect();
        let mut message = vec![0; codec.packed_size(SHAPE, DType::F32).unwrap().bound()];
        let view = TensorView::new(SHAPE, &x[..]).unwrap();
        let length = codec.encode_samples(&[3, 1 << 40], view, &mut message).unwrap();
        message.truncate(length);
        let mut decoded = vec![0.0; x.len()];
        codec.decode(&message, TensorViewMut::new(SHAPE, &mut decoded[..]).unwrap()).unwrap();
        let size: f32 = x.iter().zip(&decoded).map(|(x, decoded)| (x - decoded).abs() / x.abs()).sum();
        assert!(size / x.len() as f32 <= 0.2, "{text}: the visits are worth keeping");
        (message, decoded)
    })
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/v{FORMAT_VERSION}/{name}.bin"))
}

#[test]
fn messages_are_the_stored_bytes() {
    let x = input();
    for (name, text) in MESSAGES {
        let stored = fs::read(path(name)).unwrap();
        assert!(
            encode(&text.parse().unwrap(), SHAPE, &x[..]) == stored,
            "{name}: the encoder's bytes changed"
        );
    }
}

#[test]
fn visits_are_the_stored_bytes_and_values() {
    for (name, text) in VISITS {
        for (visit, (message, decoded)) in (1..).zip(visits(text)) {
            let name = format!("{name}-visit-{visit}");
            assert!(message == fs::read(path(&name)).unwrap(), "{name}: the encoder's bytes changed");
            let stored = fs::read(path(&format!("{name}.decoded"))).unwrap();
            assert!(bytes(&decoded) == stored, "{name}: the decoder's values changed");
        }
    }
}

#[test]
fn stored_bytes_decode_to_the_stored_values() {
    for (name, text) in MESSAGES {
        let mut decoded = vec![0.0_f32; SHAPE.elements().unwrap()];
        common::decode(&text.parse().unwrap(), SHAPE, &fs::read(path(name)).unwrap(), &mut decoded[..]);
        let stored = fs::read(path(&format!("{name}.decoded"))).unwrap();
        assert!(bytes(&decoded) == stored, "{name}: the decoder's values changed");
    }
}

/// The stored messages are worth keeping only if they are of the input and take every path.
#[test]
fn stored_values_are_near_the_input() {
    let x = input();
    for (name, text) in MESSAGES {
        let spec: CodecSpec = text.parse().unwrap();
        let mut codec = spec.build().unwrap();
        let view = TensorView::new(SHAPE, &x[..]).unwrap();
        let stats = codec.measure(view, &fs::read(path(name)).unwrap()).unwrap();
        assert!(stats.rel_sq_error() < 0.1, "{name}: {}", stats.rel_sq_error());
        if let CodecSpec::Tah(settings) = spec {
            let tiles = TahMessage::parse(&settings, SHAPE, &fs::read(path(name)).unwrap()).tiles;
            for width in [settings.low_bits, settings.high_bits] {
                assert!(tiles.iter().any(|tile| tile.width == width), "{name}: a tile of {width} bits");
            }
            let transformed = settings.outlier_ratio < f32::INFINITY;
            assert_eq!(tiles.iter().any(|tile| tile.outlier), transformed, "{name}: an outlier tile");
        }
    }
}

#[test]
#[ignore = "writes the files of a new format version or codec"]
fn write_the_messages_of_a_new_version() {
    let x = input();
    fs::create_dir_all(path("").parent().unwrap()).unwrap();
    for (name, text) in MESSAGES {
        let (message, decoded) = common::round_trip(&text.parse().unwrap(), SHAPE, &x);
        write_new(name, &message, &decoded);
    }
    for (name, text) in VISITS {
        for (visit, (message, decoded)) in (1..).zip(visits(text)) {
            write_new(&format!("{name}-visit-{visit}"), &message, &decoded);
        }
    }
}

/// Files that are there are never overwritten.
fn write_new(name: &str, message: &[u8], decoded: &[f32]) {
    for (name, bytes) in [(name, message), (&format!("{name}.decoded"), &bytes(decoded))] {
        match File::create_new(path(name)) {
            Ok(mut file) => file.write_all(bytes).unwrap(),
            Err(error) => assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{name}"),
        }
    }
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}
