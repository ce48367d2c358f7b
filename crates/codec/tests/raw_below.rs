//! Tensors below a codec's threshold are sent raw, in their own number format.

mod common;

use common::random;
use half::{bf16, f16};
use proptest::prelude::*;
use thinwire_codec::{
    Codec, CodecId, CodecSpec, DType, PackedSize, Shape, TensorView, TensorViewMut, Values,
};

fn build(spec: &str) -> Box<dyn Codec> {
    spec.parse::<CodecSpec>().unwrap().build().unwrap()
}

fn message(codec: &mut dyn Codec, view: TensorView<'_>) -> Vec<u8> {
    let size = codec.packed_size(view.shape(), view.dtype()).unwrap();
    let PackedSize::Exact(expected) = size else { panic!("{size:?}") };
    let mut message = vec![0xa5; expected + 3];
    let written = codec.encode(view, &mut message).unwrap();
    assert_eq!(written, expected);
    message.truncate(written);
    message
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn smaller_tensors_arrive_bit_for_bit_and_others_as_without(
        tensor in random::tensor(),
        below in 0_usize..2000,
        name in prop::sample::select(vec!["tah", "fixed", "tah:g=8,a=c"]),
    ) {
        let spec = format!("{name}{}raw_below={below}", if name.contains(':') { "," } else { ":" });
        let mut codec = build(&spec);
        let (shape, raw) = (tensor.shape, tensor.x.len() < below);
        prop_assert_eq!(codec.spec().sends_raw(shape), raw);

        let halves: Vec<f16> = tensor.x.iter().map(|&x| f16::from_f32(x.clamp(-6e4, 6e4))).collect();
        let brains: Vec<bf16> = tensor.x.iter().map(|&x| bf16::from_f32(x.clamp(-3e38, 3e38))).collect();
        for values in [Values::F32(&tensor.x), Values::F16(&halves), Values::BF16(&brains)] {
            let view = TensorView::new(shape, values).unwrap();
            let message = message(&mut *codec, view);
            prop_assert_eq!(message[1], u8::from(codec.spec().sent_as(shape, view.dtype())));
            prop_assert!(message.len() <= codec.longest_message(shape, view.dtype()).unwrap());
            let same_as = if raw { view.dtype().name() } else { name };
            prop_assert_eq!(&message, &self::message(&mut *build(same_as), view), "{}", spec);
        }

        let message = message(&mut *codec, TensorView::new(shape, &tensor.x[..]).unwrap());
        let mut decoded = vec![0.0; tensor.x.len()];
        codec.decode(&message, TensorViewMut::new(shape, &mut decoded[..]).unwrap()).unwrap();
        let equal = decoded.iter().zip(&tensor.x).all(|(a, b)| a.to_bits() == b.to_bits());
        prop_assert!(equal || !raw, "{}", spec);
        let stats = codec.measure(TensorView::new(shape, &tensor.x[..]).unwrap(), &message).unwrap();
        prop_assert!(!raw || stats.max_abs_error == 0.0);
    }
}

#[test]
fn the_threshold_itself_is_not_below() {
    let (codec, shape) = (build("tah:raw_below=128"), Shape::new(1, 2, 64));
    assert_eq!(codec.spec().sent_as(shape, DType::F32), CodecId::Tah);
    assert_eq!(codec.spec().sent_as(Shape::new(1, 1, 127), DType::F16), CodecId::RawF16);
    assert_eq!(codec.spec().sent_as(Shape::new(usize::MAX, 2, 2), DType::F32), CodecId::Tah);
    assert_eq!(build("f32").spec().sent_as(shape, DType::BF16), CodecId::RawF32);
}

/// The receiver may want another format than the sender had; the message names the sender's.
#[test]
fn a_raw_message_is_decoded_to_any_format() {
    let (shape, x) = (Shape::new(1, 1, 3), [1.5, -2.0, 0.25].map(f16::from_f32));
    let mut codec = build("fixed:raw_below=4");
    let message = message(&mut *codec, TensorView::new(shape, &x[..]).unwrap());
    let mut decoded = [0.0_f32; 3];
    codec.decode(&message, TensorViewMut::new(shape, &mut decoded[..]).unwrap()).unwrap();
    assert_eq!(decoded, [1.5, -2.0, 0.25]);
}

/// A tensor below the threshold can make a longer message than the largest one.
#[test]
fn the_longest_message_is_not_that_of_the_largest_tensor() {
    let codec = build("tah:raw_below=4096");
    let largest = Shape::new(8, 16, 64);
    let just_below = Shape::new(1, 63, 65);
    let longest = codec.longest_message(largest, DType::F32).unwrap();
    assert!(codec.packed_size(largest, DType::F32).unwrap().bound() < longest);
    assert_eq!(longest, codec.packed_size(just_below, DType::F32).unwrap().bound());
    let small = Shape::new(2, 4, 64);
    assert_eq!(
        codec.longest_message(small, DType::BF16).unwrap(),
        codec.packed_size(small, DType::BF16).unwrap().bound(),
        "all of it is below"
    );
}
