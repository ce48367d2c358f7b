//! The worked examples of `docs/format.md`, byte by byte.

mod common;

use common::round_trip;
use thinwire_codec::{CodecSpec, Shape};

const DOCUMENT: &str = include_str!("../../../docs/format.md");

/// Asserts that the codec writes these bytes, reads these values back, and that the document shows both.
fn check(spec: &str, shape: Shape, x: &[f32], sections: &[(&str, &str)], decoded: &[f32]) {
    let spec: CodecSpec = spec.parse().unwrap();
    let (message, values) = round_trip(&spec, shape, x);
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
