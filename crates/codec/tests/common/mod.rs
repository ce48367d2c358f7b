//! What several test files share: a round trip, an oracle, a reader of TAH messages, random tensors.

#![allow(dead_code, reason = "every test file uses a part of it")]

pub(crate) mod oracle;
pub(crate) mod random;
pub(crate) mod tah_message;

use thinwire_codec::{CodecSpec, DType, Shape, TensorView, TensorViewMut, Values, ValuesMut};

/// A codec's message of `x` and what it decodes to.
pub(crate) fn round_trip(spec: &CodecSpec, shape: Shape, x: &[f32]) -> (Vec<u8>, Vec<f32>) {
    let message = encode(spec, shape, x);
    let mut decoded = vec![f32::NAN; x.len()];
    decode(spec, shape, &message, &mut decoded[..]);
    (message, decoded)
}

/// The message of a tensor that must be encodable, checked to fill its packed size.
pub(crate) fn encode<'a>(spec: &CodecSpec, shape: Shape, x: impl Into<Values<'a>>) -> Vec<u8> {
    let mut codec = spec.build().unwrap();
    let view = TensorView::new(shape, x).unwrap();
    let mut message = vec![0xa5; codec.packed_size(shape, view.dtype()).unwrap().bound()];
    let written = codec.encode(view, &mut message).unwrap();
    assert_eq!(written, message.len(), "{spec} wrote what it promised");
    message
}

/// Decodes a message that must be valid.
pub(crate) fn decode<'a>(spec: &CodecSpec, shape: Shape, message: &[u8], out: impl Into<ValuesMut<'a>>) {
    let out = TensorViewMut::new(shape, out).unwrap();
    spec.build().unwrap().decode(message, out).unwrap();
}

/// Bytes of a message of this shape.
pub(crate) fn packed_size(spec: &CodecSpec, shape: Shape) -> usize {
    spec.build().unwrap().packed_size(shape, DType::F32).unwrap().bound()
}

/// The specs that tests run every codec with.
pub(crate) fn specs() -> Vec<CodecSpec> {
    [
        "f32",
        "f16",
        "bf16",
        "fixed",
        "fixed:bits=2,group=8",
        "fixed:bits=11,group=32",
        "fixed:bits=16,group=1024",
        "tah",
        "tah:g=8,a=24,p=0.5,hi=8,lo=2,tau=0",
        "tah:g=32,a=c,p=0.3,hi=5,lo=3,tau=inf",
        "tah:g=128,a=256,p=1,hi=7,lo=6,tau=1",
        "tah:g=16,p=0,hi=4,lo=3",
        "fixed:raw_below=200",
        "tah:raw_below=300",
        "group",
        "group:bits=8,group=64",
        "group:bits=2,group=4,quantizer=naive",
        "group:bits=3,group=8,quantizer=naive",
        "group:bits=5,group=192,quantizer=symmetric",
    ]
    .map(|text| text.parse().unwrap())
    .to_vec()
}
