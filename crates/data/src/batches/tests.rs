use proptest::prelude::*;

use super::*;

/// Token `i` is `i`, so a window shows where it was cut.
fn corpus(tokens: usize) -> Corpus {
    Corpus::from_tokens((0..tokens as u32).collect())
}

fn settings(sequence: usize, micro_batch: usize, micro_batches: usize) -> BatchSize {
    BatchSize { sequence, micro_batch, micro_batches }
}

/// What the micro-batches predict, sorted; checks each one's form on the way.
fn predicted(micro_batches: &[MicroBatch]) -> Vec<u32> {
    let mut predicted = Vec::new();
    for batch in micro_batches {
        assert!(batch.samples > 0 && batch.tokens > 0);
        assert_eq!(batch.inputs.len(), batch.samples * batch.tokens);
        assert!(batch.inputs.iter().map(|input| input + 1).eq(batch.targets.iter().copied()));
        for sequence in batch.inputs.chunks(batch.tokens) {
            assert!(sequence.windows(2).all(|pair| pair[1] == pair[0] + 1), "a window is contiguous");
        }
        predicted.extend(&batch.targets);
    }
    predicted.sort_unstable();
    predicted
}

proptest! {
    #[test]
    fn an_epoch_predicts_every_token_once(
        tokens in 2usize..400, sequence in 1usize..40, micro_batch in 1usize..6, micro_batches in 1usize..5,
        seed: u64, epoch in 0u64..1000,
    ) {
        let mut batches = Batches::new(corpus(tokens), settings(sequence, micro_batch, micro_batches), seed);
        let steps = batches.steps_per_epoch();
        let epoch: Vec<_> = (epoch * steps..(epoch + 1) * steps).map(|step| batches.step(step)).collect();
        prop_assert_eq!(predicted(&epoch.concat()), (1..tokens as u32).collect::<Vec<_>>());

        let (last, full) = epoch.split_last().unwrap();
        prop_assert!(full.iter().all(|step| step.len() == micro_batches));
        prop_assert!((1..=micro_batches).contains(&last.len()));
        let odd = |batch: &&MicroBatch| batch.samples < micro_batch || batch.tokens < sequence;
        prop_assert!(epoch.iter().flatten().filter(odd).count() <= 2, "one short of samples, one of tokens");
        prop_assert!(epoch.iter().flatten().all(|batch| batch.tokens == sequence || batch.samples == 1));
    }

    #[test]
    fn a_step_depends_on_its_number_alone(
        tokens in 2usize..400, seed: u64, steps in prop::collection::vec(0u64..200, 1..10),
    ) {
        let settings = settings(7, 3, 2);
        let mut used = Batches::new(corpus(tokens), settings, seed);
        for step in steps {
            let fresh = Batches::new(corpus(tokens), settings, seed).step(step);
            prop_assert_eq!(used.step(step), fresh);
        }
    }

    #[test]
    fn an_evaluation_predicts_every_token_once_in_order(
        tokens in 2usize..400, sequence in 1usize..40, limit in 0usize..500, micro_batch in 1usize..6,
    ) {
        let corpus = corpus(tokens);
        let batches: Vec<_> = evaluation(&corpus, sequence, limit, micro_batch).collect();
        let in_order: Vec<u32> = batches.iter().flat_map(|batch| batch.targets.clone()).collect();
        let end = if limit == 0 { tokens } else { tokens.min(limit + 1) };
        prop_assert_eq!(&in_order, &(1..end as u32).collect::<Vec<_>>());
        prop_assert_eq!(predicted(&batches), in_order);
    }
}

#[test]
fn epochs_and_seeds_have_orders_of_their_own() {
    let settings = settings(4, 25, 1);
    let mut batches = Batches::new(corpus(101), settings, 0);
    let epochs = [batches.step(0), batches.step(1), Batches::new(corpus(101), settings, 1).step(0)];
    assert_ne!(epochs[0], epochs[1]);
    assert_ne!(epochs[0], epochs[2]);
    assert_eq!(predicted(&epochs[0]), predicted(&epochs[2]));
}

#[test]
fn the_tag_tells_contents_and_shapes_apart() {
    let batch = |samples, tokens, inputs: [u32; 4], targets: [u32; 4]| {
        MicroBatch::new(samples, tokens, inputs.to_vec(), targets.to_vec()).tag
    };
    let tags = [
        batch(2, 2, [1, 2, 3, 4], [2, 3, 4, 5]),
        batch(1, 4, [1, 2, 3, 4], [2, 3, 4, 5]),
        batch(4, 1, [1, 2, 3, 4], [2, 3, 4, 5]),
        batch(2, 2, [3, 4, 1, 2], [4, 5, 2, 3]),
        batch(2, 2, [1, 2, 3, 4], [2, 3, 4, 6]),
    ];
    for (at, tag) in tags.iter().enumerate() {
        assert!(!tags[..at].contains(tag), "tag {at}");
    }
    assert_eq!(tags[0], batch(2, 2, [1, 2, 3, 4], [2, 3, 4, 5]));
}

#[test]
fn the_tag_is_frozen() {
    let tag = MicroBatch::new(1, 2, vec![1, 2], vec![2, 3]).tag;
    assert_eq!(tag, 2_640_099_328_013_953_873);
}
