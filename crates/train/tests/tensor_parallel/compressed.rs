//! Compressed sums: the same bits on every rank, passes that forget each other, and what is counted.

use thinwire_train::metrics::Direction;
use thinwire_train::pipeline::Forwarded;
use thinwire_train::tensor_parallel::Site;

use crate::support::{SAMPLES, TOKENS, architectures, batch, share, train};

#[test]
fn ranks_agree_and_a_pass_does_not_depend_on_those_before() {
    let arch = &architectures()[4];
    for spec in ["bf16", "echo:bits=4,group=16,early=8", "echo:bits=4,group=16,compensate=false"] {
        let found = share(arch, 3, spec, 1, |mut stages, group| {
            let evaluate = |index| match stages[0].evaluate(&batch(index), None) {
                Forwarded::Loss(loss) => loss.to_bits(),
                Forwarded::Hidden(_) => panic!("a whole model ends with the head"),
            };
            let losses = [evaluate(0), evaluate(1), evaluate(0)];
            let trained = [train(&mut stages), train(&mut stages)].map(|losses| losses.map(f64::to_bits));
            group.check().unwrap();
            (losses, trained)
        });
        let (losses, trained) = found[0];
        assert!(found.iter().all(|rank| *rank == found[0]), "{spec}: all ranks have the same loss");
        assert_eq!(losses[0], losses[2], "{spec}: the pass between leaves nothing");
        assert_ne!(losses[0], losses[1]);
        assert_eq!(trained[0], trained[1], "{spec}: backward passes leave nothing");
        assert_eq!(trained[0], [losses[0], losses[1]], "{spec}: a graph changes nothing");
    }
}

#[test]
fn compensation_and_bits_change_the_result() {
    let arch = &architectures()[4];
    let loss = |spec: &str| share(arch, 3, spec, 1, |mut stages, _| train(&mut stages)[0])[0];
    let exact = loss("exact");
    let [coarse, early, fine] =
        ["echo:bits=3,group=16", "echo:bits=3,group=16,early=8", "echo:bits=8,group=16"].map(loss);
    assert_ne!(coarse, loss("echo:bits=3,group=16,compensate=false"));
    assert_ne!(coarse, early);
    assert!((fine - exact).abs() < (coarse - exact).abs(), "{exact}, {fine}, {coarse}");
}

#[test]
fn every_sum_is_counted_where_it_happened() {
    let arch = &architectures()[4];
    let found = share(arch, 2, "echo:bits=4,group=16,early=8", 1, |mut stages, group| {
        train(&mut stages);
        group.statistics()
    });
    let expected: Vec<_> = [Site::Embedding]
        .into_iter()
        .chain((0..arch.layers).flat_map(|block| Site::of_block(block, arch.layers)))
        .map(|site| (Direction::Forward, site))
        .chain(
            (0..arch.layers)
                .flat_map(|block| Site::of_block(block, arch.layers))
                .chain([Site::Head])
                .map(|site| (Direction::Backward, site)),
        )
        .collect();
    for sites in found {
        let places: Vec<_> = sites.iter().map(|site| (site.direction, site.site)).collect();
        assert_eq!(places, expected);
        for site in sites {
            assert_eq!((site.calls, site.values), (2, 2 * (SAMPLES * TOKENS * arch.hidden) as u64));
            let bits = match site.site {
                Site::Layer { index, of } if 2 * index < of => 8.0,
                Site::Layer { .. } => 4.0,
                Site::Embedding | Site::Head => 16.0,
            };
            // Groups of 16 values have 32 bits more, and messages a few bytes.
            let bits_per_element = site.bits_per_element();
            assert!((bits..bits + 4.0).contains(&bits_per_element), "{bits}: {bits_per_element}");
            assert!(site.partial_rms() > 0.0 && site.sum_rms() > 0.0);
        }
    }
}
