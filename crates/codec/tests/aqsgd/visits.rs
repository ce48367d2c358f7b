//! What comes of many visits.

use half::{bf16, f16};
use rand::seq::SliceRandom;
use thinwire_codec::{DType, Isa, PackedSize, SampleMemory, Shape, TensorView, TensorViewMut};

use crate::common::random::{self, Family};
use crate::support::{Ends, bits, execution};

const SHAPE: Shape = Shape::new(2, 3, 70);
const LEN: usize = 2 * 3 * 70;

/// The error of a visit is a part of that of the visit before, as long as `x` stays: at `L = 2^(bits - 1) - 1` codes to each
/// side, at most `1 / (2 L)` of the largest difference in the group, a little more by the f16 scale.
#[test]
fn the_error_shrinks_while_a_sample_stays_as_it_is() {
    for bits in [2, 4] {
        let mut ends = Ends::new(&format!("aqsgd:bits={bits},first=bf16"));
        let x = random::activation(LEN, 1);
        let largest = f64::from((1 << (bits - 1)) - 1);
        let mut last = f64::INFINITY;
        for visit in 0..6 {
            let decoded = ends.pass(&[5, 9], SHAPE, &x).1;
            let error = x.iter().zip(&decoded).map(|(x, y)| f64::from((x - y).abs())).fold(0.0, f64::max);
            let resolution = 1e-5; // of f32, at values of a hundred
            assert!(error <= 0.502 / largest * last + resolution, "visit {visit}: {error} after {last}");
            last = error;
        }
        assert!(last < 0.1, "{last} after six visits at {bits} bits");
    }
}

/// Samples that drift, as they do in training, in an order that is drawn anew for every epoch, on ends that compute in
/// different ways: both remember the same to the bit.
#[test]
fn the_two_ends_stay_equal_on_all_instruction_sets_and_threads() {
    let shape = Shape::new(3, 70, 1000); // enough for three threads
    let isas = Isa::available();
    for keep in ["f32", "bf16"] {
        let mut all: Vec<Ends> = isas
            .iter()
            .flat_map(|&isa| [1, 3].map(|threads| execution(isa, threads)))
            .map(|decoder| {
                let encoder = execution(Isa::PORTABLE, 1);
                Ends::with(&format!("aqsgd:keep={keep}"), [encoder, decoder], [u64::MAX; 2])
            })
            .chain([{
                let fast = execution(Isa::choose().unwrap(), 3);
                Ends::with(&format!("aqsgd:keep={keep}"), [fast, fast], [u64::MAX; 2])
            }])
            .collect();
        let mut rng = random::generator(3);
        let mut ids: Vec<u64> = (0..6).map(|i| i * i).collect();
        let mut x = random::activation(2 * shape.elements().unwrap(), 2);
        for epoch in 0..3 {
            ids.shuffle(&mut rng);
            let drift = Family::Gaussian.values(x.len(), 100 + epoch);
            x.iter_mut().zip(drift).for_each(|(x, drift)| *x += 0.01 * drift);
            for (ids, x) in ids.chunks(3).zip(x.chunks(shape.elements().unwrap())) {
                let results: Vec<_> = all.iter_mut().map(|ends| ends.pass(ids, shape, x)).collect();
                for (message, decoded) in &results {
                    assert!(*message == results[0].0, "{keep}, epoch {epoch}");
                    assert!(bits(decoded) == bits(&results[0].1), "{keep}, epoch {epoch}");
                }
            }
        }
        for ends in &all {
            assert!(ends.sent.content() == ends.received.content());
            assert!(ends.sent.content() == all[0].sent.content());
        }
    }
}

#[test]
fn sizes_are_those_of_the_format() {
    let mut ends = Ends::new("aqsgd");
    let x = random::activation(LEN, 4);
    let n = LEN / 2;
    let first = 4 + 2 * (12 + 4 + 4 * n);
    let later = 4 + 2 * (12 + 4 + 2 * n.div_ceil(64) + n / 2);
    assert_eq!(
        ends.encoder.packed_size(SHAPE, DType::F32),
        Ok(PackedSize::Between { least: later, most: first })
    );
    assert_eq!(ends.encoder.usual_size(SHAPE, DType::F32), Ok(later));
    assert_eq!(ends.pass(&[1, 2], SHAPE, &x).0.len(), first);
    assert_eq!(ends.pass(&[2, 1], SHAPE, &x).0.len(), later);
    assert_eq!(ends.pass(&[2, 3], SHAPE, &x).0.len(), first.midpoint(later));
    assert_eq!(ends.sent.bytes(), 3 * 4 * n as u64);
    // 16 bits and their scales are more than bf16.
    let wide = Ends::new("aqsgd:bits=16,group=8,first=bf16").encoder;
    assert_eq!(
        wide.packed_size(SHAPE, DType::F32).unwrap().bound(),
        wide.usual_size(SHAPE, DType::F32).unwrap()
    );
}

/// The shorter visit replaces its own tokens, and the longer one finds the others as they were.
#[test]
fn tokens_beyond_a_shorter_visit_stay() {
    let mut ends = Ends::new("aqsgd:bits=16");
    let (long, short) = (Shape::new(1, 4, 10), Shape::new(1, 2, 10));
    let (x, y) = (random::activation(40, 5), random::activation(20, 6));
    ends.pass(&[3], long, &x);
    ends.pass(&[3], short, &y);
    let kept: Vec<u8> = x[20..].iter().flat_map(|x| x.to_le_bytes()).collect();
    assert_eq!(ends.received.content()[0].1[4 * 20..], kept);
    let both = [&y[..], &x[20..]].concat();
    let decoded = ends.pass(&[3], long, &both).1;
    assert_eq!(bits(&decoded[20..]), bits(&x[20..]), "unchanged tokens have a difference of 0");
}

#[test]
fn measuring_tells_the_error_of_the_last_message_and_changes_nothing() {
    let mut ends = Ends::new("aqsgd");
    let (x, y) = (random::activation(LEN, 7), random::activation(LEN, 8));
    for x in [&x, &y] {
        let message = ends.encode(&[1, 2], SHAPE, x);
        let (sent, received) = (ends.sent.content(), ends.received.content());
        let view = TensorView::new(SHAPE, &x[..]).unwrap();
        let at_sender = ends.encoder.measure(view, &message).unwrap();
        let at_receiver = ends.decoder.measure(view, &message).unwrap();
        assert_eq!((ends.sent.content(), ends.received.content()), (sent, received));
        let decoded = ends.decode(SHAPE, &message).unwrap();
        let error: f64 = x.iter().zip(&decoded).map(|(x, y)| f64::from(y - x).powi(2)).sum();
        assert!((at_sender.sq_error - error).abs() <= 1e-6 * error, "{} for {error}", at_sender.sq_error);
        assert_eq!(at_sender, at_receiver);
        assert_eq!(at_sender.elements, LEN as u64);
    }
}

/// One codec value is one process: what it sends and what it receives are two things.
#[test]
fn one_codec_can_be_both_ends() {
    let mut codec = "aqsgd".parse::<thinwire_codec::CodecSpec>().unwrap().build().unwrap();
    let mut ends = Ends::new("aqsgd");
    for seed in 0..3 {
        let x = random::activation(LEN, seed);
        let mut message = vec![0; codec.packed_size(SHAPE, DType::F32).unwrap().bound()];
        let length = codec.encode(TensorView::new(SHAPE, &x[..]).unwrap(), &mut message).unwrap();
        let (expected, values) = ends.pass(&[0, 1], SHAPE, &x);
        assert_eq!(message[..length], expected);
        let mut out = vec![0.0; LEN];
        codec.decode(&message[..length], TensorViewMut::new(SHAPE, &mut out[..]).unwrap()).unwrap();
        assert_eq!(bits(&out), bits(&values));
    }
}

#[test]
fn tensors_in_two_bytes_a_value() {
    let mut codec = "aqsgd:bits=16".parse::<thinwire_codec::CodecSpec>().unwrap().build().unwrap();
    let x: Vec<bf16> = random::activation(LEN, 9).into_iter().map(bf16::from_f32).collect();
    let mut message = vec![0; codec.packed_size(SHAPE, DType::BF16).unwrap().bound()];
    for visit in 0..3 {
        // A value drifts, the others stay: bf16 is exact in f32 memory.
        let mut x = x.clone();
        x[visit] = bf16::from_f32(3.0);
        let length = codec.encode(TensorView::new(SHAPE, &x[..]).unwrap(), &mut message).unwrap();
        let mut out = vec![f16::ZERO; LEN];
        codec.decode(&message[..length], TensorViewMut::new(SHAPE, &mut out[..]).unwrap()).unwrap();
        for (x, out) in x.iter().zip(&out) {
            let (x, out) = (f32::from(*x), f32::from(*out));
            // A step of 16 bits on differences of at most a hundred, and f16's own rounding.
            assert!(
                (x - out).abs() <= 100.0 / 32767.0 + x.abs() * 2_f32.powi(-11),
                "visit {visit}: {out} for {x}"
            );
        }
    }
}

#[test]
fn tensors_without_values_are_a_header() {
    let mut ends = Ends::new("aqsgd");
    for (ids, shape) in
        [(&[][..], Shape::new(0, 3, 5)), (&[1, 2], Shape::new(2, 0, 5)), (&[], Shape::new(0, usize::MAX, 2))]
    {
        assert_eq!(ends.pass(ids, shape, &[]), (vec![1, 48, 0, 0], vec![]), "{shape}");
        assert!(ends.sent.content().is_empty() && ends.received.content().is_empty());
    }
}
