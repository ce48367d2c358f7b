//! A real model against `transformers`, where the asset is there.

use std::time::Duration;

use thinwire_train::evaluate::SavedModel;
use thinwire_train::generate::{End, Generation, Request, Sampling, TextStream};

use crate::assets::asset;
use crate::models::{continuations, pipeline};

const MODEL: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";

#[test]
fn smollm2_says_what_transformers_says() {
    let Some(path) = asset(MODEL) else { return };
    let model = SavedModel::open(&path, None).unwrap();
    let mut pipeline = pipeline(&model, &[10, 20], "f32");
    for expected in continuations(MODEL) {
        let prompt = model.tokenizer().encode(expected.text.as_bytes()).unwrap();
        assert_eq!(prompt, expected.prompt, "the same tokens");
        let mut stream = TextStream::after(model.tokenizer(), &prompt);
        let (max_tokens, stop) = (expected.greedy.len(), model.stop().to_vec());
        let request = Request { prompt, max_tokens, stop, sampling: Sampling::GREEDY };
        let mut generation = Generation::start(&mut pipeline, request).unwrap();
        let found: Vec<u32> = generation.by_ref().map(Result::unwrap).collect();
        let statistics = generation.statistics();
        let text: String = found.iter().map(|&id| stream.push(id).unwrap()).collect();
        let text = text + &stream.finish().unwrap();
        let (mut greedy, mut greedy_text) = (expected.greedy, expected.greedy_text.as_str());
        if generation.end() == Some(End::Stop) {
            assert!(model.stop().contains(&greedy.pop().unwrap()));
            greedy_text = greedy_text.strip_suffix("<|im_end|>").unwrap();
        }
        assert_eq!(found, greedy, "{text}");
        assert_eq!(text, greedy_text);
        let rate = |tokens: usize, time: Duration| tokens as f64 / time.as_secs_f64();
        let prompt = rate(statistics.prompt_tokens, statistics.prompt_time);
        let generated = rate(statistics.passes, statistics.passes_time);
        eprintln!("prompt {prompt:.1} tokens/s, generation {generated:.1} tokens/s");
    }
}
