//! What a generation refuses, what it counts, and what compression and the seed change.

use thinwire_train::evaluate::Pipeline;
use thinwire_train::generate::{End, GenerateError, Generation, Request, Sampling, Session};

use crate::models::{open, pipeline};

fn request(prompt: Vec<u32>, max_tokens: usize) -> Request {
    let sampling = Sampling { temperature: 2.0, seed: 1, ..Sampling::GREEDY };
    Request { prompt, max_tokens, stop: Vec::new(), sampling }
}

fn tokens(pipeline: &mut Pipeline, request: Request) -> Vec<u32> {
    Generation::start(pipeline, request).unwrap().map(Result::unwrap).collect()
}

#[test]
fn a_sequence_fills_the_context_and_no_more() {
    // GPT-2 with a context of 48.
    let mut pipeline = pipeline(&open("gpt2"), &[], "f32");
    let mut generation = Generation::start(&mut pipeline, request(vec![3; 8], 40)).unwrap();
    assert_eq!(generation.by_ref().map(Result::unwrap).count(), 40);
    assert_eq!(generation.end(), Some(End::Length));
    let statistics = generation.statistics();
    assert_eq!((statistics.prompt_tokens, statistics.tokens, statistics.passes), (8, 40, 39));
    for (prompt, more) in [(8, 41), (49, 0), (1, usize::MAX)] {
        let error = Generation::start(&mut pipeline, request(vec![3; prompt], more)).unwrap_err();
        assert!(matches!(error, GenerateError::TooLong { context: 48, .. }), "{error}");
    }
    assert!(Session::new(&pipeline, 49).is_err());
    let mut session = Session::new(&pipeline, 4).unwrap();
    session.extend(&mut pipeline, &[1, 2, 3], 1).unwrap();
    assert!(session.extend(&mut pipeline, &[4, 5], 1).is_err(), "there is room for one");
    session.extend(&mut pipeline, &[4], 1).unwrap();
}

#[test]
fn prompts_that_cannot_be_continued_are_refused() {
    let mut pipeline = pipeline(&open("llama3"), &[], "f32");
    let error = Generation::start(&mut pipeline, request(Vec::new(), 1)).unwrap_err();
    assert!(matches!(error, GenerateError::EmptyPrompt));
    let error = Generation::start(&mut pipeline, request(vec![1, 64], 1)).unwrap_err();
    assert_eq!(error.to_string(), "token 64 of the prompt: the model has 64");
    assert!(tokens(&mut pipeline, request(vec![1], 0)).is_empty());
}

#[test]
fn every_token_crosses_the_boundaries() {
    let model = open("qwen3");
    let mut pipeline = pipeline(&model, &[1, 3], "fixed:bits=4,group=16");
    let one = |pipeline: &mut Pipeline, tokens: usize| {
        let before = pipeline.boundaries()[1].bytes();
        let mut session = Session::new(pipeline, tokens).unwrap();
        session.extend(pipeline, &vec![5; tokens], 1).unwrap();
        pipeline.boundaries()[1].bytes() - before
    };
    let (prompt, single) = (one(&mut pipeline, 6), one(&mut pipeline, 1));
    let before = pipeline.boundaries()[1].bytes();
    tokens(&mut pipeline, request(vec![5; 6], 5));
    assert_eq!(pipeline.boundaries()[1].bytes() - before, prompt + 4 * single);
}

#[test]
fn compression_and_the_seed_decide() {
    let model = open("llama2");
    let of = |codec: &str, seed: u64| {
        let mut pipeline = pipeline(&model, &[2], codec);
        let mut request = request(vec![9, 8, 7], 40);
        request.sampling.seed = seed;
        tokens(&mut pipeline, request)
    };
    assert_eq!(of("f32", 1), of("f32", 1));
    assert_ne!(of("f32", 1), of("f32", 2));
    assert_eq!(of("fixed:bits=2,group=16", 1), of("fixed:bits=2,group=16", 1));
    assert_ne!(of("f32", 1), of("fixed:bits=2,group=16", 1));
}
