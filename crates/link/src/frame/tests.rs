use proptest::prelude::*;

use super::*;

fn sample(payload: &[u8]) -> Frame<'_> {
    let header = FrameHeader {
        run: RunId(*b"0123456789abcdef"),
        step: 0x0102_0304_0506_0708,
        micro_batch: 9,
        kind: FrameKind::Backward,
        dtype: DType::BF16,
        shape: Shape::new(2, 3, 64),
        codec: CodecId::Tah,
        tag: 0xfeed,
        payload_len: payload.len() as u64,
    };
    Frame { header, payload }
}

/// The layout of `docs/protocol.md`, written out by hand.
#[test]
fn the_bytes_are_the_documented_ones() {
    let bytes = sample(b"abc").to_bytes().unwrap();
    let mut expected = Vec::new();
    expected.extend_from_slice(b"TWFR\x01\x00\x03\x02");
    expected.extend_from_slice(b"0123456789abcdef");
    expected.extend_from_slice(&[8, 7, 6, 5, 4, 3, 2, 1]);
    expected.extend_from_slice(&[9, 0, 0, 0, 32, 0, 0, 0]);
    for word in [2, 3, 64, 0xfeed, 3] {
        expected.extend_from_slice(&u64::to_le_bytes(word));
    }
    // CRC-32 (IEEE) of "abc", as published.
    expected.extend_from_slice(&0x3524_41c2_u32.to_le_bytes());
    assert_eq!(bytes[..84], expected);
    assert_eq!(bytes.len(), HEADER_LEN + 3);
    assert_eq!(&bytes[HEADER_LEN..], b"abc");
}

#[test]
fn every_truncation_is_refused() {
    let bytes = sample(b"payload").to_bytes().unwrap();
    for length in 0..bytes.len() {
        let error = Frame::parse(&bytes[..length]).unwrap_err();
        assert!(matches!(error, FrameError::Truncated { .. }), "{length}: {error}");
    }
}

#[test]
fn every_flipped_bit_is_refused() {
    let bytes = sample(b"payload").to_bytes().unwrap();
    for position in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[position] ^= 1 << bit;
            let error = Frame::parse(&damaged).unwrap_err();
            let named = match position {
                0..4 => matches!(error, FrameError::Magic { .. }),
                4..6 => matches!(error, FrameError::Version { .. }),
                6..HEADER_LEN => matches!(error, FrameError::HeaderChecksum { .. }),
                _ => matches!(error, FrameError::PayloadChecksum { .. }),
            };
            assert!(named, "byte {position}, bit {bit}: {error}");
        }
    }
}

#[test]
fn trailing_bytes_are_refused() {
    let mut bytes = sample(b"payload").to_bytes().unwrap();
    bytes.push(0);
    assert_eq!(Frame::parse(&bytes), Err(FrameError::TrailingBytes { extra: 1 }));
}

/// A sender that computes its checksums over nonsense.
#[test]
fn meaningless_fields_with_a_good_checksum_are_named() {
    for (position, value, field) in [
        (6, 10, "frame kind"),
        (7, 3, "dtype"),
        (36, 0, "codec"),
        (37, 1, "reserved byte"),
        (39, 1, "reserved byte"),
    ] {
        let mut bytes = sample(b"").to_bytes().unwrap();
        bytes[position] = value;
        let checksum = crc32fast::hash(&bytes[..84]);
        bytes[84..88].copy_from_slice(&checksum.to_le_bytes());
        match Frame::parse(&bytes).unwrap_err() {
            FrameError::Field { field: named, found, .. } => {
                assert_eq!((named, found), (field, u64::from(value)));
            }
            other => panic!("{field}: {other}"),
        }
    }
}

#[test]
fn a_huge_length_is_truncation() {
    let mut bytes = sample(b"").to_bytes().unwrap();
    bytes[72..80].copy_from_slice(&u64::MAX.to_le_bytes());
    let checksum = crc32fast::hash(&bytes[..84]);
    bytes[84..88].copy_from_slice(&checksum.to_le_bytes());
    assert!(matches!(Frame::parse(&bytes), Err(FrameError::Truncated { what: "frame payload", .. })));
}

#[test]
fn a_poisoned_frame_has_no_payload() {
    let header = FrameHeader { kind: FrameKind::PoisonedForward, ..sample(b"x").header };
    let expected = FrameError::UnexpectedPayload { kind: FrameKind::PoisonedForward, length: 1 };
    assert_eq!(header.encode(b"x"), Err(expected));
}

#[test]
fn a_header_and_its_payload_agree() {
    let header = sample(b"four").header;
    assert_eq!(header.encode(b"other"), Err(FrameError::LengthMismatch { header: 4, payload: 5 }));
}

fn headers() -> impl Strategy<Value = FrameHeader> {
    let codec = prop::sample::select(vec![
        CodecId::RawF32,
        CodecId::RawF16,
        CodecId::RawBF16,
        CodecId::Fixed,
        CodecId::Tah,
        CodecId::Aqsgd,
        CodecId::Group,
    ]);
    let dtype = prop::sample::select(DType::ALL.to_vec());
    let kind = prop::sample::select(FrameKind::ALL.to_vec());
    let shape = any::<[u32; 3]>().prop_map(|[b, s, c]| Shape::new(b as usize, s as usize, c as usize));
    (any::<[u8; 16]>(), any::<u64>(), any::<u32>(), kind, dtype, shape, codec, any::<u64>()).prop_map(
        |(run, step, micro_batch, kind, dtype, shape, codec, tag)| FrameHeader {
            run: RunId(run),
            step,
            micro_batch,
            kind,
            dtype,
            shape,
            codec,
            tag,
            payload_len: 0,
        },
    )
}

proptest! {
    #[test]
    fn frames_round_trip(mut header in headers(), mut payload in prop::collection::vec(any::<u8>(), 0..300)) {
        if !header.kind.has_payload() {
            payload.clear();
        }
        header.payload_len = payload.len() as u64;
        let frame = Frame { header, payload: &payload };
        let bytes = frame.to_bytes().unwrap();
        prop_assert_eq!(Frame::parse(&bytes).unwrap(), frame);
    }

    #[test]
    fn random_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(Frame::parse(&bytes).is_err());
    }
}
