//! Messages that were damaged on their way, or that another end has made: an error, and nothing is remembered.

use proptest::prelude::*;
use rand::RngExt;
use thinwire_codec::{CodecId, DecodeError, FORMAT_VERSION, Shape, TensorViewMut};

use crate::common::random;
use crate::support::Ends;

const SHAPE: Shape = Shape::new(2, 3, 40);
const LEN: usize = 2 * 3 * 40;
/// Of the second block of a message, whose first sample has been seen.
const SECOND: usize = 4 + 12 + 4 + 2 * 2 + 60;

/// Ends that have seen sample 7, and a message of it and of sample 8, which they have not.
fn half_seen() -> (Ends, Vec<u8>) {
    let mut ends = Ends::new("aqsgd");
    ends.pass(&[7], Shape { samples: 1, ..SHAPE }, &random::activation(LEN / 2, 1));
    let message = ends.encode(&[7, 8], SHAPE, &random::activation(LEN, 2));
    assert_eq!(message.len(), SECOND + 12 + 4 + 4 * 120);
    (ends, message)
}

#[test]
fn every_truncation_is_an_error_and_leaves_no_trace() {
    let (mut ends, message) = half_seen();
    let before = ends.received.content();
    for got in 0..message.len() {
        let error = ends.decode(SHAPE, &message[..got]).unwrap_err();
        let DecodeError::Length { expected, got: told } = error else { panic!("{got} bytes: {error}") };
        assert!(told == got && got < expected && expected <= message.len(), "{got} bytes: {error}");
    }
    let trailing = [&message[..], &[0]].concat();
    let (expected, got) = (message.len(), trailing.len());
    assert_eq!(ends.decode(SHAPE, &trailing), Err(DecodeError::Length { expected, got }));
    assert_eq!(ends.received.content(), before);
    ends.decode(SHAPE, &message).unwrap();
    assert_eq!(ends.received.content(), ends.sent.content());
}

/// The receiver of a message whose byte at `at` has become `byte`.
fn changed(at: usize, bytes: &[u8]) -> DecodeError {
    let (mut ends, mut message) = half_seen();
    message[at..at + bytes.len()].copy_from_slice(bytes);
    let before = ends.received.content();
    let error = ends.decode(SHAPE, &message).unwrap_err();
    assert_eq!(ends.received.content(), before, "{error}");
    error
}

#[test]
fn headers_are_checked() {
    assert_eq!(changed(0, &[9]), DecodeError::Version { expected: FORMAT_VERSION, got: 9 });
    assert_eq!(changed(1, &[16]), DecodeError::Codec { expected: CodecId::Aqsgd, got: 16 });
    assert_eq!(changed(2, &[1]), DecodeError::Scale { got: 1, min: 0, max: 0 });
    // Those of the samples' own messages.
    assert_eq!(changed(4 + 12, &[9]), DecodeError::Version { expected: FORMAT_VERSION, got: 9 });
    for codec in [0, 2, 3, 32, 48] {
        assert_eq!(changed(4 + 13, &[codec]), DecodeError::Codec { expected: CodecId::Fixed, got: codec });
    }
    assert_eq!(changed(4 + 14, &[0xff, 0x7f]), DecodeError::Scale { got: 0x7fff, min: -157, max: 119 });
    assert_eq!(changed(SECOND + 8, &[1]), DecodeError::UnusedBits { section: "checksum" });
    assert!(matches!(changed(SECOND + 16, &f32::NAN.to_le_bytes()), DecodeError::NonFinite { .. }));
    assert!(matches!(changed(4 + 16, &[0xff; 2]), DecodeError::Parameter { .. }));
}

#[test]
fn ends_that_have_parted_say_so() {
    let (ends, message) = half_seen();
    let own = u32::from_le_bytes(*message[12..].first_chunk().unwrap());
    assert_eq!(own, crc32fast::hash(&ends.received.content()[0].1));
    let parted = |sample, sender, receiver| DecodeError::Parted { sample, sender, receiver };
    assert_eq!(changed(12, &5_u32.to_le_bytes()), parted(7, Some(5), Some(own)));
    // A difference to a sample that this end has never seen, and one it knows as if it came for the first time.
    assert_eq!(changed(4, &9_u64.to_le_bytes()), parted(9, Some(own), None));
    assert_eq!(changed(SECOND, &7_u64.to_le_bytes()), parted(7, None, Some(own)));
    let text = parted(7, None, Some(own)).to_string();
    assert!(
        text.contains("sample 7: the sender remembers nothing, the receiver a state of checksum"),
        "{text}"
    );
    assert!(text.contains("resume both ends from the same checkpoint, or start anew"), "{text}");
}

#[test]
fn a_difference_where_a_first_visit_is_expected_is_too_short_or_parted() {
    let (mut ends, message) = half_seen();
    // The second block alone, taken for a difference.
    let shape = Shape { samples: 1, ..SHAPE };
    let mut alone = [&message[..4], &message[SECOND..]].concat();
    alone[4 + 13] = CodecId::Fixed.into();
    assert!(matches!(ends.decode(shape, &alone), Err(DecodeError::Length { .. })));
    alone.truncate(SECOND);
    assert!(matches!(
        ends.decode(shape, &alone),
        Err(DecodeError::Parted { sample: 8, sender: Some(0), receiver: None })
    ));
}

#[test]
fn values_that_the_callers_format_cannot_hold_are_refused() {
    let mut ends = Ends::new("aqsgd");
    let shape = Shape::new(1, 1, 8);
    let message = ends.encode(&[1], shape, &[1e5; 8]);
    let mut out = [half::f16::ZERO; 8];
    let error = ends.decoder.decode(&message, TensorViewMut::new(shape, &mut out[..]).unwrap()).unwrap_err();
    assert!(matches!(error, DecodeError::Range { .. }), "{error}");
    assert!(ends.received.content().is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damage_is_an_error_or_a_decoded_tensor(seed: u64, flips in 1_usize..20) {
        let (mut ends, mut message) = half_seen();
        let mut rng = random::generator(seed);
        for _ in 0..flips {
            let at = rng.random_range(0..message.len());
            message[at] = rng.random();
        }
        let before = ends.received.content();
        if let Ok(out) = ends.decode(SHAPE, &message) {
            prop_assert!(out.iter().all(|value| value.is_finite()));
        } else {
            prop_assert_eq!(ends.received.content(), before);
        }
        let rest = rng.random_range(0..message.len());
        rng.fill(&mut message[rest..]);
        let _ = ends.decode(SHAPE, &message);
    }
}
