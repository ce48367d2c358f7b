use proptest::prelude::*;

use super::*;
use crate::entry::{START, TRAINED};

/// Token `i` is `i`, so a window shows where it was cut.
fn corpus(tokens: usize) -> Corpus {
    Corpus::from_tokens((0..tokens as u32).collect())
}

/// The same, as one document that is trained on.
fn stream(tokens: usize, size: BatchSize) -> Dataset {
    let first = [START | TRAINED];
    let entries = first.into_iter().chain((1..tokens as u32).map(|id| id | TRAINED));
    Dataset::from_entries(entries.collect(), Packing::Full, size.sequence)
}

fn steps(batches: &mut Batches, steps: std::ops::Range<u64>) -> Vec<Vec<MicroBatch>> {
    steps.map(|step| batches.step(step).unwrap()).collect()
}

fn settings(sequence: usize, micro_batch: usize, micro_batches: usize) -> BatchSize {
    BatchSize { sequence, micro_batch, micro_batches }
}

/// The targets that count in the loss, in order.
fn counted(batch: &MicroBatch) -> Vec<u32> {
    let counts = |at: &usize| batch.mask.as_ref().is_none_or(|mask| mask[*at]);
    (0..batch.targets.len()).filter(counts).map(|at| batch.targets[at]).collect()
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
        let size = settings(sequence, micro_batch, micro_batches);
        let mut batches = Batches::new(stream(tokens, size), size, seed);
        let count = batches.steps_per_epoch();
        let epoch = steps(&mut batches, epoch * count..(epoch + 1) * count);
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
        let mut used = Batches::new(stream(tokens, settings), settings, seed);
        for step in steps {
            let fresh = Batches::new(stream(tokens, settings), settings, seed).step(step).unwrap();
            prop_assert_eq!(used.step(step).unwrap(), fresh);
        }
    }

    #[test]
    fn an_evaluation_predicts_every_token_once_in_order(
        tokens in 2usize..400, sequence in 1usize..40, limit in 0usize..500, micro_batch in 1usize..6,
    ) {
        let corpus = corpus(tokens);
        let size = WindowSize::consecutive(sequence, micro_batch);
        let batches: Vec<_> = evaluation(&corpus, size, limit).collect();
        let in_order: Vec<u32> = batches.iter().flat_map(|batch| batch.targets.clone()).collect();
        let end = if limit == 0 { tokens } else { tokens.min(limit + 1) };
        prop_assert_eq!(&in_order, &(1..end as u32).collect::<Vec<_>>());
        prop_assert_eq!(predicted(&batches), in_order);
        let dataset = stream(tokens, settings(sequence, 1, 1));
        let same: Vec<_> = dataset.evaluation(limit, micro_batch).collect::<Result<_, _>>().unwrap();
        prop_assert_eq!(same, batches);
    }

    #[test]
    fn windows_that_overlap_count_every_token_once(
        tokens in 2usize..400, sequence in 1usize..40, shorter in 0usize..40, limit in 0usize..500,
        micro_batch in 1usize..6,
    ) {
        let stride = sequence.saturating_sub(shorter).max(1);
        let corpus = corpus(tokens);
        let mut batches = evaluation(&corpus, WindowSize { sequence, stride, micro_batch }, limit);
        let expected = batches.len();
        let batches: Vec<_> = batches.by_ref().collect();
        prop_assert_eq!(batches.len(), expected);
        let end = if limit == 0 { tokens } else { tokens.min(limit + 1) };
        prop_assert_eq!(predicted(&batches).len(), (batches.iter().map(|batch| batch.targets.len())).sum::<usize>());
        let counted: Vec<u32> = batches.iter().flat_map(counted).collect();
        prop_assert_eq!(counted, (1..end as u32).collect::<Vec<_>>());
        // All but the last window are full, and begin where the stride says.
        let starts = batches.iter().flat_map(|batch| batch.inputs.chunks(batch.tokens)).map(|row| row[0]);
        prop_assert!(starts.eq((0..).step_by(stride).take(batches.iter().map(|batch| batch.samples).sum())));
        prop_assert!(batches.iter().rev().skip(1).all(|batch| batch.tokens == sequence));
    }

    /// Documents of tokens that count up, some of them trained on.
    #[test]
    fn an_epoch_of_documents_counts_every_trained_token_once(
        documents in prop::collection::vec(prop::collection::vec(any::<bool>(), 1..30), 1..20),
        pad: bool, sequence in 1usize..12, micro_batch in 1usize..6, seed: u64,
    ) {
        let packing = if pad { Packing::Pad } else { Packing::Full };
        let mut entries = Vec::new();
        let mut expected = Vec::new();
        for document in &documents {
            for (at, &trained) in document.iter().enumerate() {
                let id = entries.len() as u32;
                let start = if at == 0 { START } else { 0 };
                entries.push(id | start | if trained { TRAINED } else { 0 });
                let predicted = if pad { at > 0 } else { id > 0 };
                if trained && predicted {
                    expected.push(id);
                }
            }
        }
        let first_of = |id: u32| entries.iter().rposition(|&e| e & START != 0 && e & (START - 1) <= id).unwrap();
        let first: Vec<usize> = (0..entries.len() as u32).map(first_of).collect();
        let dataset = Dataset::from_entries(entries, packing, sequence);
        prop_assert_eq!(dataset.summary().documents, documents.len() as u64);
        prop_assert_eq!(dataset.summary().trained, expected.len() as u64);
        prop_assume!(!expected.is_empty());
        let evaluated: Vec<_> = dataset.evaluation(0, micro_batch).collect::<Result<_, _>>().unwrap();
        let mut batches = Batches::new(dataset, settings(sequence, micro_batch, 2), seed);
        let count = batches.steps_per_epoch();
        for batches in [steps(&mut batches, count..2 * count).concat(), evaluated] {
            let mut counted = Vec::new();
            for batch in &batches {
                prop_assert!(batch.samples <= micro_batch && batch.tokens <= sequence);
                prop_assert_eq!(batch.inputs.len(), batch.samples * batch.tokens);
                let mask = batch.mask.clone().unwrap_or_else(|| vec![true; batch.targets.len()]);
                prop_assert_eq!(batch.trained(), mask.iter().filter(|&&counts| counts).count());
                for row in mask.chunks(batch.tokens) {
                    prop_assert!(row.contains(&true), "a sequence without anything to train on");
                }
                let pairs = batch.inputs.iter().zip(&batch.targets);
                for ((&input, &target), _) in pairs.zip(&mask).filter(|(_, counts)| **counts) {
                    prop_assert_eq!(input + 1, target);
                    prop_assert!(!pad || first[input as usize] == first[target as usize]);
                    counted.push(target);
                }
            }
            counted.sort_unstable();
            prop_assert_eq!(&counted, &expected);
        }
    }
}

#[test]
fn epochs_and_seeds_have_orders_of_their_own() {
    let settings = settings(4, 25, 1);
    let mut batches = Batches::new(stream(101, settings), settings, 0);
    let mut other = Batches::new(stream(101, settings), settings, 1);
    let epochs = [batches.step(0), batches.step(1), other.step(0)].map(Result::unwrap);
    assert_ne!(epochs[0], epochs[1]);
    assert_ne!(epochs[0], epochs[2]);
    assert_eq!(predicted(&epochs[0]), predicted(&epochs[2]));
}

/// In every epoch each sequence comes under its own name, whatever its place in the order, and under no other.
#[test]
fn a_sequence_keeps_its_name() {
    for tokens in [33, 100, 101] {
        let size = settings(8, 3, 2);
        let dataset = stream(tokens, size);
        let samples = dataset.samples();
        assert_eq!((samples, dataset.longest()), ((tokens - 1).div_ceil(8), 8));
        let evaluated = |limit| dataset.evaluation(limit, 3).map(Result::unwrap).collect::<Vec<_>>();
        let names =
            |batches: &[MicroBatch]| batches.iter().flat_map(|batch| batch.ids.clone()).collect::<Vec<_>>();
        assert_eq!(names(&evaluated(0)), (0..samples as u64).collect::<Vec<_>>());
        assert_eq!(names(&evaluated(17)), [0, 1, 2]);
        assert_eq!((dataset.evaluation_samples(0), dataset.evaluation_samples(17)), (samples, 3));
        let moved: Vec<MicroBatch> = evaluated(17).into_iter().map(|batch| batch.counted_from(100)).collect();
        assert_eq!(names(&moved), [100, 101, 102]);

        let mut batches = Batches::new(dataset, size, 5);
        for epoch in 0..3 {
            let count = batches.steps_per_epoch();
            let epoch = steps(&mut batches, epoch * count..(epoch + 1) * count).concat();
            let mut seen = names(&epoch);
            for batch in &epoch {
                // Token `i` is `i`.
                let starts = batch.inputs.chunks(batch.tokens).map(|sequence| u64::from(sequence[0]) / 8);
                assert!(starts.eq(batch.ids.iter().copied()));
            }
            seen.sort_unstable();
            assert_eq!(seen, (0..samples as u64).collect::<Vec<_>>());
        }
    }
}

#[test]
fn the_tag_tells_contents_and_shapes_apart() {
    let batch = |samples, tokens, inputs: [u32; 4], targets: [u32; 4]| {
        MicroBatch::new(samples, tokens, inputs.to_vec(), targets.to_vec(), None, vec![]).tag
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
fn the_tag_tells_masks_apart() {
    let tag = |mask: &[bool]| MicroBatch::new(1, 2, vec![1, 2], vec![2, 3], Some(mask.to_vec()), vec![]).tag;
    let unmasked = MicroBatch::new(1, 2, vec![1, 2], vec![2, 3], None, vec![]).tag;
    assert_eq!(tag(&[true, true]), unmasked);
    assert!(tag(&[true, false]) != unmasked && tag(&[false, true]) != unmasked);
    assert_ne!(tag(&[true, false]), tag(&[false, true]));
}

#[test]
fn the_tag_is_frozen() {
    let tag = MicroBatch::new(1, 2, vec![1, 2], vec![2, 3], None, vec![]).tag;
    assert_eq!(tag, 2_640_099_328_013_953_873);
}

/// Worked by hand: 12 tokens are 11 predictions.
#[test]
fn each_window_counts_what_is_new() {
    let corpus = corpus(12);
    let windows = |sequence, stride| -> Vec<(u32, Vec<u32>)> {
        let size = WindowSize { sequence, stride, micro_batch: 1 };
        evaluation(&corpus, size, 0).map(|batch| (batch.inputs[0], counted(&batch))).collect()
    };
    let expected = [(0, vec![1, 2, 3, 4]), (2, vec![5, 6]), (4, vec![7, 8]), (6, vec![9, 10]), (8, vec![11])];
    assert_eq!(windows(4, 2), expected);
    assert_eq!(windows(5, 3), [(0, vec![1, 2, 3, 4, 5]), (3, vec![6, 7, 8]), (6, vec![9, 10, 11])]);
    assert_eq!(windows(4, 4), [(0, vec![1, 2, 3, 4]), (4, vec![5, 6, 7, 8]), (8, vec![9, 10, 11])]);
    assert_eq!(windows(20, 1), [(0, (1..12).collect())]);
}
