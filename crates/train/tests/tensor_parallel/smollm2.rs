//! A real model shared by three ranks, where the assets are there.

use std::num::NonZeroUsize;

use thinwire_train::data::{WindowSize, evaluation};
use thinwire_train::evaluate::{Perplexity, SavedModel, Sharing};

use crate::assets::asset;

#[test]
fn fewer_bits_cost_more_and_compensation_gives_some_back() {
    let Some(model) = asset("SmolLM2-135M-Instruct.Q4_1.gguf") else { return };
    let Some(text) = asset("state-of-the-union-2021.txt") else { return };
    let model = SavedModel::open(&model, None).unwrap();
    let size = WindowSize::consecutive(511, 1);
    let corpus = model.read_text(&text, size).unwrap();
    let perplexity = |ranks: usize, all_reduce: &str| -> Perplexity {
        let ranks = NonZeroUsize::new(ranks).unwrap();
        let sharing = Sharing { ranks, all_reduce: all_reduce.parse().unwrap() };
        let mut pipeline = model.load_shared(Vec::new(), sharing).unwrap();
        let found = pipeline.evaluate(evaluation(&corpus, size, 511), || ()).unwrap();
        eprintln!("{ranks} ranks, {all_reduce}: {}", found.compressed);
        found
    };
    let whole = perplexity(1, "exact").compressed;
    let exact = perplexity(3, "exact").compressed;
    // The independent implementation has 23.91.
    assert!((whole - 23.91).abs() < 0.01, "{whole}");
    assert!((exact / whole - 1.0).abs() < 1e-4, "{exact}, {whole} alone");
    let specs = ["echo:bits=8,group=64", "echo:bits=4,group=64", "echo:bits=4,group=64,compensate=false"];
    let found = specs.map(|spec| {
        let Perplexity { compressed, uncompressed, .. } = perplexity(3, spec);
        assert_eq!(uncompressed, exact, "{spec}: exact sums are as exact as alone");
        compressed
    });
    let ascending = [exact].into_iter().chain(found).is_sorted_by(|a, b| a < b);
    assert!(ascending, "{exact}, then {found:?}");
}
