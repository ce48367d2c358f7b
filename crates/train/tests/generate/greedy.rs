//! The most likely token after the other, as `generate(do_sample=False)` of `transformers` has it.

use thinwire_train::generate::{End, Generation, Request, Sampling};

use crate::models::{MODELS, continuations, open, pipeline};

/// End of text, in all of the models.
const STOP: u32 = 0;

#[test]
fn every_family_says_what_transformers_says() {
    let mut stopped = 0;
    for model in MODELS {
        let saved = open(model);
        for (expected, places) in continuations(model).iter().zip([&[][..], &[1], &[0, 2, 3]]) {
            // Logits differ by less than 1e-4.
            assert!(expected.margin > 2e-4, "{model}: {}", expected.margin);
            let mut pipeline = pipeline(&saved, places, "f32");
            let request = Request {
                prompt: expected.prompt.clone(),
                max_tokens: 24,
                stop: vec![STOP],
                sampling: Sampling::GREEDY,
            };
            let mut generation = Generation::start(&mut pipeline, request).unwrap();
            let mut found: Vec<u32> = generation.by_ref().map(Result::unwrap).collect();
            assert_eq!(generation.statistics().tokens, found.len());
            if generation.end() == Some(End::Stop) {
                found.push(STOP);
                stopped += 1;
            }
            assert_eq!(found, expected.greedy, "{model} cut at {places:?}");
        }
    }
    assert!(stopped >= 2, "some texts end");
}
