//! The conformance vector of an independent implementation (`tests/vectors/README.md`).

use safetensors::SafeTensors;
use thinwire_collective::{Coefficients, Compensator};

use crate::support::{codec, on_each_rank, tiles_of};

const CALLS: usize = 12;
const RANKS: usize = 4;
const VALUES: usize = 1024;

/// All but 0.1 % of the values agree to 1e-5 of the tensor's largest: products with a reciprocal and quotients may round a value
/// to neighbouring codes, which the compensator then carries on.
fn agree(what: &str, got: &[f32], wanted: &[f32]) {
    let largest = wanted.iter().fold(0.0_f32, |max, x| max.max(x.abs()));
    let off = got.iter().zip(wanted).filter(|(got, wanted)| (*got - *wanted).abs() > 1e-5 * largest).count();
    assert!(off * 1000 <= wanted.len(), "{what}: {off} of {} values differ", wanted.len());
}

#[test]
fn compensated_all_reduce() {
    let bytes = include_bytes!("../vectors/echo_allreduce_p4.safetensors");
    let file = SafeTensors::deserialize(bytes).unwrap();
    let floats = |name: &str| -> Vec<f32> {
        file.tensor(name).unwrap().data().as_chunks().0.iter().map(|&word| f32::from_le_bytes(word)).collect()
    };
    let (x, y) = (floats("x"), floats("y"));
    assert_eq!((x.len(), y.len()), (CALLS * RANKS * VALUES, CALLS * VALUES));
    let mut ends = on_each_rank(RANKS, tiles_of(128), |mut group| {
        let mut compensator = Compensator::new(Coefficients::default(), VALUES);
        let outputs: Vec<Vec<f32>> = (0..CALLS)
            .map(|call| {
                let x = &x[(call * RANKS + group.rank()) * VALUES..][..VALUES];
                let mut y = vec![0.0; VALUES];
                group.all_reduce(&codec("group"), &compensator.apply(x), &mut y).unwrap();
                compensator.update(x, &y, RANKS);
                y
            })
            .collect();
        (outputs, compensator)
    });
    let first_outputs = ends[0].0.clone();
    for (rank, (outputs, compensator)) in ends.iter_mut().enumerate() {
        assert_eq!(*outputs, first_outputs, "rank {rank}");
        agree(&format!("outputs of rank {rank}"), &outputs.concat(), &y);
        let [first, correction] = compensator.state();
        let Coefficients { gain, blend, .. } = Coefficients::default();
        let averages = first.iter().zip(correction);
        let second: Vec<f32> = averages.map(|(m1, c)| (c / gain - blend * m1) / (1.0 - blend)).collect();
        let state = rank * VALUES..(rank + 1) * VALUES;
        agree(&format!("m1 of rank {rank}"), first, &floats("m1")[state.clone()]);
        agree(&format!("m2 of rank {rank}"), &second, &floats("m2")[state]);
    }
}
