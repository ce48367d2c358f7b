//! Memories that fail, and tensors that must not be remembered.

use thinwire_codec::{
    DType, DecodeError, EncodeError, Execution, MemoryError, SampleMemory, Shape, TensorView,
};

use crate::common::random;
use crate::support::{Ends, settings};

const SHAPE: Shape = Shape::new(1, 2, 16);
/// Bytes of a sample in f32.
const BYTES: u64 = 4 * 2 * 16;

fn try_encode(
    ends: &mut Ends,
    ids: &[u64],
    shape: Shape,
    x: &[f32],
    room: usize,
) -> (Result<usize, EncodeError>, Vec<u8>) {
    let mut out = vec![0xa5; room];
    let result = ends.encoder.encode_samples(ids, TensorView::new(shape, x).unwrap(), &mut out);
    (result, out)
}

#[test]
fn a_full_memory_says_what_it_needs() {
    let x = random::activation(32, 1);
    let plain = Execution::choose().unwrap();
    let mut ends = Ends::with("aqsgd", [plain; 2], [2 * BYTES, BYTES]);
    ends.pass(&[4], SHAPE, &x);
    let message = ends.encode(&[5], SHAPE, &x);
    let full = |limit| MemoryError::Full { sample: 5, needed: 2 * BYTES, limit };
    assert_eq!(ends.decode(SHAPE, &message), Err(DecodeError::Memory(full(BYTES))));
    let error = try_encode(&mut ends, &[6], SHAPE, &x, 1000).0.unwrap_err();
    let expected = MemoryError::Full { sample: 6, needed: 3 * BYTES, limit: 2 * BYTES };
    assert_eq!(error, EncodeError::Memory(expected));
    // A sample that is known has its place.
    assert!(try_encode(&mut ends, &[4], SHAPE, &x, 1000).0.is_ok());
}

#[test]
fn a_refused_tensor_leaves_no_trace() {
    let mut ends = Ends::new("aqsgd");
    let mut x = random::activation(32, 2);
    ends.pass(&[1], SHAPE, &x);
    let before = ends.sent.content();
    let needed = ends.encoder.packed_size(SHAPE, DType::F32).unwrap().bound();
    let short = try_encode(&mut ends, &[1], SHAPE, &x, needed - 1);
    assert_eq!(short, (Err(EncodeError::BufferTooSmall { needed, got: needed - 1 }), vec![0xa5; needed - 1]));
    for ids in [&[][..], &[1, 2]] {
        let (result, out) = try_encode(&mut ends, ids, SHAPE, &x, needed);
        assert_eq!(result, Err(EncodeError::Samples { samples: 1, got: ids.len() }));
        assert_eq!(out, vec![0xa5; needed]);
    }
    x[17] = f32::NAN;
    let (result, out) = try_encode(&mut ends, &[1], SHAPE, &x, needed);
    assert!(matches!(result, Err(EncodeError::NonFinite { index: 17, .. })), "{result:?}");
    assert_eq!(out, vec![0xa5; needed]);
    assert_eq!(ends.sent.content(), before);
}

/// Reads what no encoder has written.
#[derive(Debug)]
struct Rotten;

impl SampleMemory for Rotten {
    fn read(&mut self, _: u64, kept: &mut Vec<u8>) -> Result<(), MemoryError> {
        kept.clear();
        kept.extend(f32::NAN.to_le_bytes());
        Ok(())
    }

    fn write(&mut self, _: u64, _: &mut Vec<u8>) -> Result<(), MemoryError> {
        unreachable!("nothing is remembered")
    }

    fn samples(&self) -> Vec<u64> {
        Vec::new()
    }

    fn bytes(&self) -> u64 {
        0
    }
}

#[test]
fn a_damaged_memory_is_told() {
    let choose = Execution::choose().unwrap();
    let mut codec = settings("aqsgd").build(choose, Box::new(Rotten), Box::new(Rotten)).unwrap();
    let x = random::activation(32, 3);
    let result = codec.encode_samples(&[8], TensorView::new(SHAPE, &x[..]).unwrap(), &mut [0; 1000]);
    assert_eq!(result, Err(EncodeError::Memory(MemoryError::Damaged { sample: 8 })));
}
