//! Stages whose layers ranks share.

use std::collections::BTreeMap;
use std::path::Path;

use safetensors::SafeTensors;
use thinwire_link::memory;
use thinwire_train::config::Config;
use thinwire_train::metrics::{AllReduceReport, Direction, Event};
use thinwire_train::run::{Links, Resume, Setup};

use crate::support::{Outcomes, Plan, Story, config, evaluations, last_checkpoint, losses, run};

const RANKS: &str = "tensor_parallel.ranks=2";
const ECHO: &str = "tensor_parallel.all_reduce=echo:bits=4,group=16";
const TWO_STAGES: [&str; 2] = ["pipeline.stages=2", r#"pipeline.layers=["embed 0", "1 head"]"#];

/// AdamW's step is no smooth function of a gradient around zero, where the order of a sum decides the sign; with this epsilon it
/// is, and what ranks and one rank come to can be compared value by value.
const SMOOTH: &str = "optimizer.epsilon=1e-3";

/// What a run comes to.
struct Told {
    losses: Vec<f64>,
    evaluations: Vec<f64>,
    files: BTreeMap<String, Vec<u8>>,
    story: Story,
}

fn told(dir: &Path, settings: &[&str]) -> Told {
    let config = config(dir, settings);
    let (story, outcomes) = run(&config, Resume::Fresh);
    assert_well(outcomes);
    let floats = |bits: Vec<u64>| bits.into_iter().map(f64::from_bits).collect();
    let (losses, evaluations) = (floats(losses(&story[0])), floats(evaluations(&story[0])));
    Told { losses, evaluations, files: last_checkpoint(&config), story }
}

fn trained(settings: &[&str]) -> Told {
    told(tempfile::tempdir().unwrap().path(), settings)
}

fn assert_well(outcomes: Outcomes) {
    for outcome in outcomes {
        outcome.unwrap();
    }
}

/// Both sums are of the same terms in another order, a few dozen roundings of 6e-8 deep.
#[track_caller]
fn assert_close(found: &[f64], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 2e-6 * expected.abs(), "{what}: {found} instead of {expected}");
    }
}

/// The values of all tensors of a checkpoint by name, weights and moments.
fn tensors(files: &BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Vec<f32>> {
    let of_file = |bytes: &Vec<u8>| {
        let tensors = SafeTensors::deserialize(bytes).unwrap();
        let values = |view: &safetensors::tensor::TensorView<'_>| {
            view.data().chunks_exact(4).map(|value| f32::from_le_bytes(value.try_into().unwrap())).collect()
        };
        tensors.tensors().iter().map(|(name, view)| (name.clone(), values(view))).collect::<Vec<_>>()
    };
    files.values().flat_map(of_file).collect()
}

/// Compares every value with the largest of its tensor.
#[track_caller]
fn assert_same_state(found: &Told, expected: &Told, what: &str) {
    let (found, expected) = (tensors(&found.files), tensors(&expected.files));
    assert!(found.keys().eq(expected.keys()), "{what}: whole tensors of the same names");
    for (name, expected) in expected {
        let found = &found[&name];
        assert_eq!(found.len(), expected.len(), "{what}: {name}");
        let largest = expected.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
        let off = found.iter().zip(&expected).fold(0.0_f32, |off, (a, b)| off.max((a - b).abs()));
        assert!(off <= 1e-4 * largest, "{what}: {name} is off by {off}, its largest value is {largest}");
    }
}

fn exact_ranks_train_as_one(settings: &[&str]) {
    let settings = [settings, &[SMOOTH]].concat();
    let one = trained(&settings);
    for split in [&[][..], &TWO_STAGES] {
        let found = trained(&[&settings, &[RANKS][..], split].concat());
        let what = format!("{settings:?} {split:?}");
        assert_close(&found.losses, &one.losses, &what);
        assert_close(&found.evaluations, &one.evaluations, &what);
        assert_same_state(&found, &one, &what);
    }
}

#[test]
fn llama() {
    exact_ranks_train_as_one(&[]);
}

#[test]
fn llama_with_a_tied_head() {
    exact_ranks_train_as_one(&["model.tie_embeddings=true"]);
}

#[test]
fn qwen2() {
    exact_ranks_train_as_one(&["model.family=qwen2"]);
}

#[test]
fn qwen3_whose_head_norms_see_a_share_each() {
    exact_ranks_train_as_one(&["model.family=qwen3", "model.head_dim=12"]);
}

#[test]
fn gpt2_with_a_tied_head() {
    exact_ranks_train_as_one(&["model.family=gpt2", "model.kv_heads=4", "model.tie_embeddings=true"]);
}

#[test]
fn four_ranks_of_other_sizes() {
    // Neither 259 token ids nor 50 channels divide by 4.
    let settings = ["model.kv_heads=4", "model.ffn=50", "model.vocab=259", SMOOTH];
    let one = trained(&settings);
    let four = trained(&[&settings[..], &["tensor_parallel.ranks=4"]].concat());
    assert_close(&four.losses, &one.losses, "four ranks");
    assert_same_state(&four, &one, "four ranks");
}

#[test]
fn compressed_sums_give_the_same_bits_again_and_others_than_exact_ones() {
    for split in [&[][..], &TWO_STAGES] {
        let settings = [&[RANKS, ECHO][..], split].concat();
        let (first, second) = (trained(&settings), trained(&settings));
        assert_eq!(first.losses, second.losses);
        assert_eq!(first.evaluations, second.evaluations);
        assert!(first.files == second.files, "parameters and optimizer state");
        assert_ne!(first.losses, trained(&[&[RANKS][..], split].concat()).losses);
    }
}

#[test]
fn gradient_checkpointing_sends_nothing_again_and_changes_no_bit() {
    for dtype in ["train.dtype=f32", "train.dtype=bf16"] {
        for more in [&["pipeline.schedule=gpipe", "model.tie_embeddings=true"][..], &TWO_STAGES] {
            let settings = [&[RANKS, ECHO, dtype][..], more].concat();
            let kept = trained(&settings);
            let run_again = trained(&[&settings[..], &["train.gradient_checkpointing=true"]].concat());
            assert_eq!(run_again.losses, kept.losses, "{settings:?}");
            assert!(run_again.files == kept.files, "{settings:?}: parameters and optimizer state");
            // The text that a message begins with has the number of its call, and calls have another order.
            let counted = |told: &Told| -> Vec<_> {
                sent(&told.story).iter().map(|all| (all.calls, all.elements, all.f32_bytes)).collect()
            };
            assert_eq!(counted(&run_again), counted(&kept), "{settings:?}");
        }
    }
}

/// What all ranks had sent at the end.
fn sent(story: &Story) -> Vec<AllReduceReport> {
    let finished = story.iter().flatten().filter_map(|event| match event {
        Event::Finished { all_reduces, .. } => Some(all_reduces.clone()),
        _ => None,
    });
    finished.flatten().collect()
}

#[test]
fn sums_and_bytes_are_counted() {
    // 4 steps of 4 micro-batches of 3 sequences of 32 tokens, and two evaluations of 1,000 bytes: four micro-batches of whole
    // sequences, and one of what is left.
    let (trained_tokens, passes) = (4 * 4 * 96, 4 * 4);
    let (evaluated_tokens, evaluations) = (2 * 999, 2 * 5);
    for (spec, bits) in [("exact", 32.0..33.0), ("bf16", 16.0..17.0), ("echo:bits=4,group=32", 4.5..9.0)] {
        let found = sent(&trained(&[RANKS, &format!("tensor_parallel.all_reduce={spec}")]).story);
        let [forward, backward] = &found[..] else { panic!("{found:?}") };
        assert_eq!([forward.direction, backward.direction], [Direction::Forward, Direction::Backward]);
        // Two in each of two blocks, and one behind the embedding or in front of the head.
        assert_eq!([forward.calls, backward.calls], [5 * (passes + evaluations), 5 * passes]);
        let channels = 5 * 32;
        let values = [channels * (trained_tokens + evaluated_tokens), channels * trained_tokens];
        assert_eq!([forward.elements, backward.elements], values.map(|values| values as u64));
        for report in &found {
            assert_eq!((report.stage, report.ranks), (0, 2));
            // Of two ranks each sends half of its summand and half of the sum.
            assert_eq!(report.f32_bytes, 4 * 2 * report.elements);
            let found = report.bits_per_element().unwrap();
            assert!(bits.contains(&found), "{spec}: {found}");
        }
    }
    assert!(sent(&trained(&[]).story).is_empty(), "one rank sends nothing");
}

#[test]
fn gradients_may_travel_in_another_way() {
    let found = trained(&[RANKS, ECHO, "tensor_parallel.gradients=exact"]);
    let bits: Vec<f64> = sent(&found.story).iter().map(|all| all.bits_per_element().unwrap()).collect();
    assert!(bits[0] < 9.0 && bits[1] >= 32.0, "{bits:?}");
}

#[test]
fn what_every_rank_has_stays_the_same_on_all() {
    let dir = tempfile::tempdir().unwrap();
    let settings = ["model.family=qwen3", "model.tie_embeddings=true", RANKS, ECHO];
    let mut setup = Setup::load(config(dir.path(), &settings)).unwrap();
    let mut engine = setup.engine(0, Links::default()).unwrap();
    for step in 1..=3 {
        let batches = setup.batches.step(step - 1).unwrap();
        engine.step(step, &batches).unwrap();
    }
    let shares = engine.shares().unwrap();
    let [first, second] = &shares[..] else { panic!("two ranks") };
    let mut whole = 0;
    for (first, second) in first.params().iter().zip(second.params().iter()) {
        let values = [first, second].map(|parameter| parameter.value.to_data().try_to_vec::<f32>().unwrap());
        if first.slice.is_whole() {
            assert_eq!(values[0], values[1], "{}", first.name);
            whole += 1;
        } else {
            assert_ne!(values[0], values[1], "{}", first.name);
        }
    }
    assert_eq!(whole, 2 * 4 + 1, "norms of blocks, of heads, of the head");
    let value = |share: usize, name: &str| {
        let parameter = shares[share].params().iter().find(|parameter| parameter.name == name).unwrap();
        parameter.value.to_data().try_to_vec::<f32>().unwrap()
    };
    for share in [0, 1] {
        assert_eq!(value(share, "model.embed_tokens.weight"), value(share, "lm_head.weight"), "tied rows");
    }
}

const RESUMED: [&str; 4] = ["train.steps=8", "checkpoint.every=2", "optimizer.schedule=constant", SMOOTH];

/// Stops a run in step 7 and resumes it with other settings; the losses of steps 7 and 8.
fn resumed(before: &[&str], after: &[&str]) -> Told {
    let dir = tempfile::tempdir().unwrap();
    let first = config(dir.path(), &[&RESUMED[..], before].concat());
    let configs = vec![first.clone(); first.pipeline.stages];
    let (_, outcomes) = Plan { configs, stop_at: Some(7), ..Plan::new(&first, Resume::Fresh) }.run();
    assert!(outcomes.iter().all(Result::is_err));
    let second = config(dir.path(), &[&RESUMED[..], after].concat());
    let (story, outcomes) = run(&second, Resume::Newest);
    assert_well(outcomes);
    let losses = losses(&story[0]).into_iter().map(f64::from_bits).collect();
    Told { losses, evaluations: Vec::new(), files: last_checkpoint(&second), story }
}

#[test]
fn a_run_goes_on_with_another_number_of_ranks() {
    let whole = trained(&RESUMED);
    for (before, after) in [
        (&[RANKS][..], &[][..]),
        (&[], &[RANKS]),
        (&[RANKS], &TWO_STAGES),
        (&TWO_STAGES, &["pipeline.stages=1", RANKS]),
    ] {
        let found = resumed(before, after);
        let what = format!("{before:?}, then {after:?}");
        assert_close(&found.losses, &whole.losses[6..], &what);
        assert_same_state(&found, &whole, &what);
    }
}

#[test]
fn a_run_with_compressed_sums_goes_on_to_the_bit() {
    for tied in ["model.tie_embeddings=false", "model.tie_embeddings=true"] {
        for split in [&[][..], &TWO_STAGES] {
            let settings = [&[RANKS, ECHO, tied][..], split].concat();
            let whole = trained(&[&RESUMED[..], &settings].concat());
            let found = resumed(&settings, &settings);
            assert_eq!(found.losses, whole.losses[6..], "{settings:?}");
            assert!(found.files == whole.files, "{settings:?}: parameters and optimizer state");
        }
    }
}

#[test]
fn stages_compare_how_they_add_up_and_may_have_ranks_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let of = |settings: &[&str]| config(dir.path(), &[&TWO_STAGES[..], settings].concat());
    let run = |configs: [Config; 2]| {
        Plan { configs: configs.to_vec(), ..Plan::new(&configs[0], Resume::Fresh) }.run()
    };
    let (story, outcomes) = run([of(&[RANKS]), of(&[])]);
    assert_well(outcomes);
    assert_eq!(sent(&story).iter().map(|all| all.stage).collect::<Vec<_>>(), [0, 0], "stage 0 has ranks");

    let [one, other] = [of(&[RANKS]), of(&[RANKS, ECHO])].map(|config| Setup::load(config).unwrap());
    let ends = [one.link_config(0, 1, false).unwrap(), other.link_config(1, 0, false).unwrap()];
    let error = memory::pair(&ends[0], &ends[1]).err().expect("the stages differ").to_string();
    assert!(error.contains("all-reduce"), "{error}");
}
