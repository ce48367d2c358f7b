//! The worked examples of `docs/format.md`, byte by byte.

mod common;

use common::round_trip;
use thinwire_codec::{CodecSpec, DType, Shape, TensorView, TensorViewMut};

const DOCUMENT: &str = include_str!("../../../docs/format.md");

/// Asserts that the codec writes these bytes, reads these values back, and that the document shows both.
fn check(spec: &str, shape: Shape, x: &[f32], sections: &[(&str, &str)], decoded: &[f32]) {
    let spec: CodecSpec = spec.parse().unwrap();
    let (message, values) = round_trip(&spec, shape, x);
    check_message(&spec, shape, &message, &values, sections, decoded);
}

/// The same of a message and what was decoded from it.
fn check_message(
    spec: &CodecSpec,
    shape: Shape,
    message: &[u8],
    values: &[f32],
    sections: &[(&str, &str)],
    decoded: &[f32],
) {
    let hex: Vec<String> = message.iter().map(|byte| format!("{byte:02x}")).collect();
    let expected: Vec<&str> = sections.iter().map(|&(_, bytes)| bytes).collect();
    assert_eq!(hex.join(" "), expected.join(" "), "{spec}");
    assert_eq!(values, decoded, "{spec}");
    for (section, bytes) in sections {
        let row = format!("| {section} | `{bytes}` |");
        assert!(DOCUMENT.contains(&row), "the document has no row {row}");
    }
    for token in decoded.chunks(shape.channels) {
        let token: Vec<String> = token.iter().map(ToString::to_string).collect();
        assert!(DOCUMENT.contains(&token.join(", ")), "the document does not show {token:?}");
    }
}

#[test]
fn tah() {
    check(
        "tah:g=8,p=0.5",
        Shape::new(1, 2, 8),
        &[0.5, -0.25, 0.0, 4.0, 0.25, -0.5, 0.0, 0.25, 1.0, 2.0, 3.0, 4.0, -1.0, -2.0, -3.0, -4.0],
        &[
            ("header", "01 20 fa ff"),
            ("zero points", "c7 53 00 dc"),
            ("scales", "d9 c8 44 50"),
            ("pivots", "03"),
            ("width map", "02"),
            ("codes, first token", "24 ce 48"),
            ("codes, second token", "b9 fd 46 02"),
        ],
        &[
            0.535_595_4,
            -0.214_238_17,
            0.107_119_08,
            4.035_135_3,
            0.321_357_25,
            -0.535_595_4,
            0.0,
            0.214_238_17,
            0.798_828_1,
            1.865_234_4,
            2.931_640_6,
            3.998_046_9,
            -0.800_781_25,
            -1.867_187_5,
            -2.933_593_8,
            -4.0,
        ],
    );
}

#[test]
fn fixed() {
    check(
        "fixed:bits=3,group=8",
        Shape::new(1, 1, 5),
        &[1.0, 2.0, 3.0, -1.0, 0.5],
        &[("header", "01 10 f9 ff"), ("scales", "00 58"), ("codes", "ac 35")],
        &[1.0, 2.0, 3.0, -1.0, 0.0],
    );
}

#[test]
fn aqsgd() {
    let spec: CodecSpec = "aqsgd:bits=3,group=8".parse().unwrap();
    let (mut codec, shape) = (spec.build().unwrap(), Shape::new(1, 1, 2));
    let mut visit = |x: &[f32], sections: &[(&str, &str)], decoded: &[f32]| {
        let mut message = vec![0; codec.packed_size(shape, DType::F32).unwrap().bound()];
        let length = codec.encode_samples(&[7], TensorView::new(shape, x).unwrap(), &mut message).unwrap();
        let mut values = [0.0; 2];
        codec.decode(&message[..length], TensorViewMut::new(shape, &mut values[..]).unwrap()).unwrap();
        check_message(&spec, shape, &message[..length], &values, sections, decoded);
    };
    let (header, name) = (("header", "01 30 00 00"), ("name", "07 00 00 00 00 00 00 00"));
    let raw = ("raw f32 message", "01 01 00 00 00 00 80 3f 00 00 00 40");
    visit(&[1.0, 2.0], &[header, name, ("checksum", "00 00 00 00"), raw], &[1.0, 2.0]);
    let fixed = ("fixed-point message", "01 10 f7 ff 56 55 16");
    let checksum = ("checksum", "76 a5 3f 2e");
    visit(&[1.5, 1.75], &[header, name, checksum, fixed], &[1.500_244_1, 1.833_252]);
}

#[test]
fn group() {
    check(
        "group:bits=4,group=4",
        Shape::new(1, 1, 8),
        &[1.0, 2.0, 3.0, -1.0, 0.5, 0.75, 1.0, 1.25],
        &[
            ("header", "01 40 f9 ff"),
            ("scales", "44 50 66 46"),
            ("zero points", "00 44 00 c9"),
            ("codes", "c8 0f 50 fa"),
        ],
        &[
            1.066_406_3,
            2.132_812_5,
            2.932_617_2,
            -1.066_406_3,
            0.499_877_93,
            0.749_816_9,
            0.999_755_86,
            1.249_694_8,
        ],
    );
}
