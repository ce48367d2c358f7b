//! Number formats against the `gguf` package of Python, bit for bit.

use thinwire_pretrained::Format;

use crate::support::read_fixture;

#[test]
fn every_format_agrees_with_gguf() {
    for format in Format::ALL.into_iter().filter(|format| *format != Format::F32) {
        let bytes = read_fixture(&format!("blocks/{format:?}.bin"));
        let expected = read_fixture(&format!("blocks/{format:?}.f32"));
        let mut values = vec![0.0; expected.len() / 4];
        format.decode(&bytes, &mut values);
        let expected = expected.as_chunks().0.iter().map(|&value| f32::from_le_bytes(value));
        for (index, (value, expected)) in values.into_iter().zip(expected).enumerate() {
            assert_eq!(value.to_bits(), expected.to_bits(), "{format:?} {index}: {value} {expected}");
        }
    }
}

#[test]
fn sizes() {
    assert_eq!(Format::Q4_K.bytes(&[3, 512]), Some(3 * 2 * 144));
    assert_eq!(Format::F16.bytes(&[]), Some(2));
    assert_eq!(Format::Q4_0.bytes(&[32, 33]), None);
    assert_eq!(Format::F32.bytes(&[usize::MAX, usize::MAX]), None);
    assert_eq!(Format::Q6_K.bytes(&[usize::MAX, 0]), Some(0));
}
