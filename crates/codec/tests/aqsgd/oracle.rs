//! The algorithm in plain code, over the codecs of single tensors, which have oracles of their own.

use std::collections::BTreeMap;

use half::bf16;
use proptest::prelude::*;
use rand::RngExt;
use thinwire_codec::{AqsgdSettings, CodecSpec, DType, FixedSettings, RawSettings, Shape};

use crate::common::random::{self, Family};
use crate::common::{encode, round_trip};
use crate::support::{Ends, bits};

/// What one end remembers.
struct Oracle {
    settings: AqsgdSettings,
    m: BTreeMap<u64, Vec<f32>>,
}

impl Oracle {
    /// The message, and what is decoded from it.
    fn pass(&mut self, ids: &[u64], shape: Shape, x: &[f32]) -> (Vec<u8>, Vec<f32>) {
        let AqsgdSettings { bits, group, keep, first } = self.settings;
        let fixed = CodecSpec::Fixed(FixedSettings { bits, group, raw_below: 0 });
        let one = Shape { samples: 1, ..shape };
        let (mut message, mut decoded) = (vec![1, 48, 0, 0], Vec::new());
        for (id, x) in ids.iter().zip(x.chunks(shape.tokens * shape.channels)) {
            message.extend(id.to_le_bytes());
            let m = self.m.entry(*id).or_default();
            let y = if m.is_empty() {
                message.extend([0; 4]);
                let (block, y) = round_trip(&CodecSpec::Raw(RawSettings { dtype: first }), one, x);
                message.extend(block);
                y
            } else {
                message.extend(crc32(&bytes(keep, m)).to_le_bytes());
                let known = |i: usize| m.get(i).copied().unwrap_or(0.0);
                let difference: Vec<f32> = (0..x.len()).map(|i| finite(x[i] - known(i))).collect();
                let (block, difference) =
                    (encode(&fixed, one, &difference[..]), round_trip(&fixed, one, &difference).1);
                message.extend(block);
                (0..x.len()).map(|i| finite(known(i) + difference[i])).collect()
            };
            m.resize(m.len().max(y.len()), 0.0);
            for (m, y) in m.iter_mut().zip(&y) {
                *m = rounded(keep, *y);
            }
            decoded.extend(y);
        }
        (message, decoded)
    }

    fn content(&self) -> Vec<(u64, Vec<u8>)> {
        self.m.iter().map(|(id, m)| (*id, bytes(self.settings.keep, m))).collect()
    }
}

fn finite(value: f32) -> f32 {
    if value.is_infinite() { f32::MAX.copysign(value) } else { value }
}

fn rounded(keep: DType, value: f32) -> f32 {
    if keep == DType::F32 {
        return value;
    }
    let narrow = bf16::from_f32(value);
    if narrow.is_finite() { narrow.into() } else { f32::from(bf16::MAX).copysign(value) }
}

fn bytes(keep: DType, m: &[f32]) -> Vec<u8> {
    if keep == DType::F32 {
        return m.iter().flat_map(|m| m.to_le_bytes()).collect();
    }
    m.iter().flat_map(|m| bf16::from_f32(*m).to_le_bytes()).collect()
}

/// Bit by bit: reflected, polynomial 0x04c11db7.
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = !0_u32;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    !crc
}

#[test]
fn the_oracles_checksum_is_the_common_one() {
    assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
}

/// Any settings.
fn settings() -> impl Strategy<Value = AqsgdSettings> {
    let dtype = || prop::sample::select(vec![DType::F32, DType::BF16]);
    (2_u32..=16, 3_u32..=10, dtype(), dtype()).prop_map(|(bits, log2, keep, first)| AqsgdSettings {
        bits,
        group: 1 << log2,
        keep,
        first,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Visits in any order, some samples more often than others, each time of another length and from another
    /// distribution: both ends have what the oracle has, in every message, tensor and memory.
    #[test]
    fn both_ends_are_the_oracle(settings in settings(), channels in 1_usize..90, seed: u64) {
        let mut rng = random::generator(seed);
        let mut ends = Ends::new(&settings.to_string());
        let mut oracle = Oracle { settings, m: BTreeMap::new() };
        let mut ids: Vec<u64> = (0..6).map(|_| rng.random()).collect();
        ids.sort_unstable();
        ids.dedup();
        for visit in 0..8 {
            let shape = Shape::new(rng.random_range(1..4), rng.random_range(1..5), channels);
            let start = rng.random_range(0..ids.len());
            let names: Vec<u64> = (0..shape.samples).map(|i| ids[(start + i) % ids.len()]).collect();
            let family = Family::ALL[rng.random_range(0..Family::ALL.len())];
            let x = family.values(shape.elements().unwrap(), seed ^ visit);
            let (message, decoded) = ends.pass(&names, shape, &x);
            let (expected, values) = oracle.pass(&names, shape, &x);
            prop_assert_eq!(message, expected, "visit {} of {:?}", visit, family);
            prop_assert_eq!(bits(&decoded), bits(&values), "visit {} of {:?}", visit, family);
            prop_assert_eq!(ends.sent.content(), oracle.content());
            prop_assert_eq!(ends.received.content(), oracle.content());
        }
    }
}
