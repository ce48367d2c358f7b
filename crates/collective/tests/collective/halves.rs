use crate::support::{bits, codec, on_each_rank, tensors, tiles_of};

/// Reduce-scatter leaves the sum as the owner adds it up; all-gather of these is the all-reduce.
#[test]
fn reduce_scatter_and_all_gather_are_the_all_reduce() {
    for (ranks, values) in [(2, 777), (3, 3000), (7, 100), (4, 5)] {
        let x = tensors(ranks, values, 7);
        for spec in ["group:group=64", "f32", "fixed:bits=6,group=16"] {
            let spec = codec(spec);
            let ys = on_each_rank(ranks, tiles_of(200), |mut group| {
                let x = &x[group.rank()];
                let segment = group.segments(&spec, values).segment(group.rank());
                let mut sum = vec![f32::NAN; segment.len()];
                group.reduce_scatter(&spec, &x[..], &mut sum).unwrap();
                let mut gathered = vec![f32::NAN; values];
                group.all_gather(&spec, &sum, &mut gathered).unwrap();
                let mut y = vec![f32::NAN; values];
                group.all_reduce(&spec, &x[..], &mut y).unwrap();
                assert_eq!(bits(&gathered), bits(&y), "{spec}, {ranks} ranks");
                y
            });
            assert!(ys.iter().all(|y| bits(y) == bits(&ys[0])));
        }
    }
}

/// The sum of a reduce-scatter has not been quantized: of values that 8 bits hold exactly, their sum, which they do not.
#[test]
fn a_scattered_sum_is_not_quantized() {
    let x: Vec<Vec<f32>> = (0..3).map(|rank| vec![[1.0, 1024.0, 1_048_576.0][rank]; 96]).collect();
    let spec = codec("group:bits=8,group=16,quantizer=symmetric");
    on_each_rank(3, tiles_of(16), |mut group| {
        let mut sum = [0.0; 32];
        group.reduce_scatter(&spec, &x[group.rank()][..], &mut sum).unwrap();
        let received = |rank: usize| {
            let step = (x[rank][0] / 127.0).to_bits();
            // Relative to the message, a step has 11 bits.
            let rounded = f32::from_bits((step + (1 << 12)) & !((1 << 13) - 1));
            if rank == group.rank() { x[rank][0] } else { 127.0 * rounded }
        };
        let expected = (0..3).filter(|&rank| rank != group.rank()).map(received);
        assert_eq!(sum, [expected.fold(x[group.rank()][0], |sum, x| sum + x); 32]);
    });
}
