//! Models that two ranks share say what the whole ones do.

use std::num::NonZeroUsize;

use thinwire_train::choices::{Encoded, Question};
use thinwire_train::evaluate::{Boundary, Pipeline, SavedModel, Sharing};
use thinwire_train::generate::{Generation, Request, Sampling, Session};

use crate::choices::{TOLERANCE, question};
use crate::models::{continuations, open};

/// Those with two key and value heads.
const MODELS: [&str; 4] = ["gpt2", "llama2", "llama2-linear", "qwen3"];

fn shared(model: &SavedModel, places: &[usize], ranks: usize, all_reduce: &str) -> Pipeline {
    let codec = "f32".parse().unwrap();
    let boundaries = places.iter().map(|&before| Boundary::new(before, &codec).unwrap()).collect();
    let all_reduce = all_reduce.parse().unwrap();
    model.load_shared(boundaries, Sharing { ranks: NonZeroUsize::new(ranks).unwrap(), all_reduce }).unwrap()
}

#[test]
fn the_most_likely_tokens_are_those_of_transformers() {
    for model in MODELS {
        let saved = open(model);
        for (expected, places) in continuations(model).iter().zip([&[][..], &[1], &[0, 2, 3]]) {
            let mut pipeline = shared(&saved, places, 2, "exact");
            let (prompt, max_tokens) = (expected.prompt.clone(), expected.greedy.len());
            let request = Request { prompt, max_tokens, stop: Vec::new(), sampling: Sampling::GREEDY };
            let generation = Generation::start(&mut pipeline, request).unwrap();
            let found: Vec<u32> = generation.map(Result::unwrap).collect();
            assert_eq!(found, expected.greedy, "{model} cut at {places:?}");
        }
    }
}

#[test]
fn choices_are_as_likely_as_pytorch_says() {
    for model in MODELS {
        let saved = open(model);
        for continuation in continuations(model) {
            let mut pipeline = shared(&saved, &[1], 2, "exact");
            let question: Question = question(&continuation);
            let context = saved.architecture().context;
            let encoded = Encoded::new(&question, saved.tokenizer(), None, context).unwrap();
            let scores = encoded.score(&mut pipeline, &question).unwrap();
            assert_eq!(scores.len(), continuation.choices.len());
            for (score, expected) in scores.iter().zip(&continuation.choices) {
                assert!((score.log_likelihood - expected.log_likelihood).abs() < TOLERANCE, "{model}");
            }
        }
    }
}

#[test]
fn sums_are_counted_and_compressed_ones_tell_their_error() {
    let saved = open("qwen3");
    for (spec, bits, measured) in [("exact", 32.0, false), ("echo:bits=4,group=16", 4.0, true)] {
        let mut pipeline = shared(&saved, &[], 2, spec);
        let mut session = Session::new(&pipeline, 8).unwrap();
        session.extend(&mut pipeline, &[1, 2, 3, 4, 5], 1).unwrap();
        session.extend(&mut pipeline, &[6], 1).unwrap();
        let sums = pipeline.sums();
        assert_eq!(sums.len(), 1 + 2 * saved.architecture().layers);
        for sum in &sums[1..] {
            // Two passes, six tokens on each of two ranks.
            assert_eq!((sum.calls, sum.values), (2, 2 * 6 * saved.architecture().hidden as u64));
            assert!(sum.bits_per_element() >= bits, "{}", sum.bits_per_element());
            let error = sum.rel_sq_error();
            assert!(if measured { (1e-6..0.1).contains(&error) } else { error.is_nan() }, "{error}");
        }
    }
    assert!(pipeline_alone(&saved).sums().is_empty());
}

fn pipeline_alone(model: &SavedModel) -> Pipeline {
    model.load_shared(Vec::new(), Sharing::ALONE).unwrap()
}

#[test]
fn heads_that_cannot_be_shared_are_told() {
    let sharing = Sharing { ranks: NonZeroUsize::new(2).unwrap(), ..Sharing::ALONE };
    let error = open("smollm2").load_shared(Vec::new(), sharing).unwrap_err().to_string();
    assert!(error.contains("2 heads with 1 key and value heads evenly: expected 1"), "{error}");
}
