//! Echo's conformance vectors of an independent `NumPy` implementation (`tests/vectors/README.md`).
//!
//! Decoded values must agree to one quantization step everywhere, and all but 0.1 % of them to 1e-5 of the tensor's largest
//! value: products with a reciprocal and quotients may round a value to neighbouring codes.

mod common;

use std::path::Path;

use common::round_trip;
use safetensors::{Dtype, SafeTensors};
use thinwire_codec::{CodecSpec, Shape};

const GROUP: usize = 128;

fn compare(file: &str, spec: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(file);
    let bytes = std::fs::read(path).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let floats = |name: &str| -> Vec<f32> {
        let tensor = file.tensor(name).unwrap();
        assert_eq!(tensor.dtype(), Dtype::F32);
        tensor.data().as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
    };
    let (x, wanted) = (floats("x"), floats("decoded"));
    let &[samples, tokens, channels] = file.tensor("x").unwrap().shape() else { panic!("x is [B, S, C]") };
    let spec: CodecSpec = spec.parse().unwrap();
    let (_, decoded) = round_trip(&spec, Shape::new(samples, tokens, channels), &x);
    let CodecSpec::Group(settings) = spec else { unreachable!() };
    let near = 1e-5 * x.iter().fold(0.0_f32, |max, x| max.max(x.abs()));
    let mut off = 0;
    for (group, (decoded, wanted)) in decoded.chunks(GROUP).zip(wanted.chunks(GROUP)).enumerate() {
        let x = &x[group * GROUP..][..GROUP];
        let extent = 2.0 * x.iter().fold(0.0_f32, |max, x| max.max(x.abs()));
        let step = extent / ((1 << settings.bits) - 2) as f32;
        for (i, (decoded, wanted)) in decoded.iter().zip(wanted).enumerate() {
            let difference = (decoded - wanted).abs();
            assert!(
                difference <= step + near,
                "{spec}, group {group}, value {i}: {decoded}, reference {wanted}"
            );
            off += usize::from(difference > near);
        }
    }
    assert!(off * 1000 <= decoded.len(), "{spec}: {off} values differ");
}

#[test]
fn symmetric() {
    compare("echo4_symmetric.safetensors", "group:quantizer=symmetric");
}

#[test]
fn naive() {
    compare("echo4_naive_zero.safetensors", "group:quantizer=naive");
}

#[test]
fn zero_aware_with_4_bits() {
    compare("echo4_zero_aware.safetensors", "group");
}

#[test]
fn zero_aware_with_8_bits() {
    compare("echo8_zero_aware.safetensors", "group:bits=8");
}
