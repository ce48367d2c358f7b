//! Log-likelihoods are those that PyTorch computes in f64.

use thinwire_train::choices::{Encoded, Question};

use crate::models::{Continuation, MODELS, continuations, open, pipeline};

/// Largest difference, in nats; the values are -3 to -60.
pub(crate) const TOLERANCE: f64 = 1e-4;

/// A character for each token, as the models' tokenizer has it.
fn text(ids: &[u32]) -> String {
    ids.iter().map(|&id| char::from(b'?' + u8::try_from(id).unwrap())).collect()
}

pub(crate) fn question(continuation: &Continuation) -> Question {
    let choices = continuation.choices.iter().map(|choice| text(&choice.ids)).collect();
    Question { context: text(&continuation.prompt), delimiter: "", choices, answer: 0 }
}

#[test]
fn every_family_agrees_with_pytorch() {
    for model in MODELS {
        let saved = open(model);
        for (continuation, places) in continuations(model).iter().zip([&[][..], &[1], &[0, 2, 3]]) {
            let mut pipeline = pipeline(&saved, places, "f32");
            let question = question(continuation);
            let context = saved.architecture().context;
            let encoded = Encoded::new(&question, saved.tokenizer(), None, context).unwrap();
            assert!(!encoded.truncated);
            let scores = encoded.score(&mut pipeline, &question).unwrap();
            assert_eq!(scores.len(), continuation.choices.len());
            for (score, expected) in scores.iter().zip(&continuation.choices) {
                let error = (score.log_likelihood - expected.log_likelihood).abs();
                assert!(error < TOLERANCE, "{model} cut at {places:?}: {score:?}, {expected:?}");
            }
        }
    }
}

#[test]
fn a_long_context_is_cut_off_in_front() {
    let model = open("llama2");
    let mut pipeline = pipeline(&model, &[], "f32");
    let ids: Vec<u32> = (0..30).map(|i| i * 11 % 64).collect();
    let mut score = |ids: &[u32], context: usize| {
        let choices = vec![text(&[5, 6]), text(&[7])];
        let question = Question { context: text(ids), delimiter: "", choices, answer: 0 };
        let encoded = Encoded::new(&question, model.tokenizer(), None, context).unwrap();
        (encoded.score(&mut pipeline, &question).unwrap()[0], encoded.truncated)
    };
    // Of eleven tokens ten are read: nine of the context and one of the choice; the last is only predicted.
    assert_eq!(score(&ids, 10).0, score(&ids[21..], 128).0);
    assert_eq!((score(&ids, 10).1, score(&ids[21..], 128).1), (true, false));
}
