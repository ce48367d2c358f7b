use thinwire_collective::Statistics;

use crate::support::{all_reduce, codec, on_each_rank, tensors, tiles_of};

const RANKS: usize = 3;
const VALUES: usize = 6000;

#[test]
fn bytes_and_calls_are_counted_by_operation() {
    let x = tensors(RANKS, VALUES, 70);
    on_each_rank(RANKS, tiles_of(500), |mut group| {
        let (spec, x) = (codec("group:group=64"), &x[group.rank()]);
        let mut segment = vec![0.0; group.segments(&spec, VALUES).segment(group.rank()).len()];
        let mut y = vec![0.0; VALUES];
        group.all_reduce(&spec, &x[..], &mut y).unwrap();
        let first = group.take_statistics();
        assert_eq!((first.calls, first.all_reduce.calls), (1, 1));
        assert_eq!(first.all_reduce.sent_bytes, first.sent_bytes);
        group.reduce_scatter(&spec, &x[..], &mut segment).unwrap();
        group.all_gather(&spec, &segment, &mut y).unwrap();
        let halves = group.statistics();
        assert_eq!((halves.calls, halves.all_reduce.calls), (2, 0));
        assert_eq!((halves.reduce_scatter.calls, halves.all_gather.calls), (1, 1));
        assert_eq!(halves.reduce_scatter.sent_bytes + halves.all_gather.sent_bytes, halves.sent_bytes);
        let mut all = first;
        all.merge(&halves);
        assert_eq!((all.calls, all.sent_bytes), (3, first.sent_bytes + halves.sent_bytes));
        for time in [all.times.push, all.times.reduce, all.times.share, all.times.tail] {
            assert!(!time.is_zero(), "{:?}", all.times);
        }
    });
}

/// The owner's error is measured at the sum, everyone's at what it pushed. With values that a push carries exactly, the sum's
/// error is all there is, and with the norms it is what the definitions give.
#[test]
fn errors_and_norms_are_those_of_the_tensors() {
    let x = tensors(RANKS, VALUES, 71);
    let square = |x: &[f32]| x.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>();
    let y = all_reduce("bf16", 500, &x).swap_remove(0);
    let exact = all_reduce("f32", 500, &x).swap_remove(0);
    let ends = on_each_rank(RANKS, tiles_of(500), |mut group| {
        let (x, mut y) = (&x[group.rank()], vec![0.0; VALUES]);
        group.all_reduce(&codec("bf16"), &x[..], &mut y).unwrap();
        assert_eq!(group.take_statistics().errors, Statistics::default().errors, "only when asked for");
        group.measure_errors(true);
        group.all_reduce(&codec("bf16"), &x[..], &mut y).unwrap();
        group.take_statistics().errors
    });
    let near = |a: f64, b: f64| assert!((a - b).abs() <= 1e-6 * b.abs(), "{a} for {b}");
    let (mut signal, mut elements) = (0.0, 0);
    for (errors, x) in ends.iter().zip(&x) {
        near(errors.sq_contribution, square(x));
        assert_eq!(errors.pushed.elements, (VALUES - VALUES / RANKS) as u64);
        // bf16 has eight significant bits: an error of up to 2^-9 of each value.
        assert!((1e-7..=4.0_f64.powi(-9)).contains(&errors.pushed.rel_sq_error()), "{errors:?}");
        (signal, elements) = (signal + errors.shared.sq_signal, elements + errors.shared.elements);
    }
    assert_eq!(elements, VALUES as u64);
    // The sums of bf16 copies are near those of the tensors, and the shared errors explain part of what `y` is off by.
    assert!((signal / square(&exact) - 1.0).abs() < 1e-3, "{signal}");
    let injected: Vec<f32> = y.iter().zip(&exact).map(|(y, exact)| y - exact).collect();
    let measured: f64 = ends.iter().map(|errors| errors.pushed.sq_error + errors.shared.sq_error).sum();
    assert!(
        (0.8..1.25).contains(&(measured / square(&injected))),
        "errors are nearly independent: {measured}"
    );
}
