//! Every recipe and experiment of the repository, with models of the real shapes whose weights are holes in a file.

mod hollow;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use thinwire_lab::experiment::Experiment;
use thinwire_train::config::{Config, Unit};
use thinwire_train::run::Preview;

use crate::hollow::Start;

/// What a recipe comes to: its file in `recipes`; values in the parameters, those of a tied matrix once; stages; sequences of a
/// step and tokens of a sequence; the model it starts from; the vocabulary of a tokenizer that is not at hand.
type Expected = (&'static str, u64, usize, [usize; 2], Option<Start>, Option<usize>);

const RECIPES: [Expected; 14] = [
    ("quickstart.toml", 3_082_496, 2, [4, 256], None, None),
    ("tensor-parallel.toml", 3_247_296, 1, [4, 256], None, None),
    ("paper/gpt2-xl-wikitext-2.toml", 1_557_611_200, 8, [32, 1024], Some(Start::Gpt2Xl), None),
    ("paper/gpt2-xl-arxiv21.toml", 1_557_611_200, 8, [32, 1024], Some(Start::Gpt2Xl), None),
    ("paper/qwen2.5-3b-magicoder.toml", 3_085_938_688, 8, [32, 1024], Some(Start::Qwen25), None),
    ("paper/qwen2.5-3b-open-platypus.toml", 3_085_938_688, 8, [32, 1024], Some(Start::Qwen25), None),
    ("paper/llama-3.2-1b-slimpajama.toml", 1_235_814_400, 4, [256, 4096], None, Some(128_256)),
    ("paper/llama-8b-proof-pile.toml", 8_030_261_248, 4, [32, 4096], None, Some(128_256)),
    ("small/prose.toml", 134_515_008, 2, [4, 256], Some(Start::SmolLm2), None),
    ("small/passages.toml", 134_515_008, 2, [4, 256], Some(Start::SmolLm2), None),
    ("small/instructions.toml", 134_515_008, 2, [4, 256], Some(Start::SmolLm2), None),
    ("small/instructions-lora.toml", 139_399_488, 2, [4, 256], Some(Start::SmolLm2), None),
    ("small/pretraining.toml", 8_755_392, 4, [8, 256], None, None),
    ("small/pretraining-wide.toml", 27_533_824, 4, [8, 256], None, None),
];

/// Files in `recipes/lab`, their rows, and the model they start from.
const EXPERIMENTS: [(&str, usize, Option<Start>); 9] = [
    ("ablation-fine-tuning.toml", 17, Some(Start::SmolLm2)),
    ("ablation-from-scratch.toml", 51, None),
    ("bandwidths.toml", 21, None),
    ("fidelity.toml", 4, None),
    ("fine-tuning.toml", 3, Some(Start::SmolLm2)),
    ("from-scratch.toml", 6, None),
    ("micro-batches.toml", 16, None),
    ("tensor-parallel.toml", 12, None),
    ("throughput.toml", 20, None),
];

fn recipes() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recipes")
}

#[test]
fn every_recipe_resolves() {
    let folder = tempfile::tempdir().unwrap();
    for (recipe, parameters, stages, [samples, tokens], start, vocab) in RECIPES {
        let mut sets = vec!["data.tokenizer=byte".to_owned()];
        if let Some(start) = start {
            sets.push(format!("model.pretrained={}", start.write(folder.path()).display()));
        }
        sets.extend(vocab.map(|vocab| format!("model.vocab={vocab}")));
        let config = Config::load(&recipes().join(recipe), &sets)
            .unwrap_or_else(|error| panic!("{recipe}: {error:?}"));
        let Preview { config, architecture, map, .. } = Preview::load(config).unwrap();
        let units =
            std::iter::once(Unit::Embed).chain((0..architecture.layers).map(Unit::Block)).chain([Unit::Head]);
        let tied = if architecture.tied { architecture.vocab * architecture.hidden } else { 0 };
        let found = units.map(|unit| architecture.parameters(unit)).sum::<u64>() - tied as u64;
        assert_eq!(found, parameters, "{recipe}");
        assert_eq!(config.pipeline.stages, stages, "{recipe}");
        assert!(map.is_none_or(|map| map.stages().len() == stages), "{recipe}");
        let train = &config.train;
        assert_eq!([train.micro_batch * train.micro_batches, train.sequence], [samples, tokens], "{recipe}");
        let forward = match start {
            Some(Start::SmolLm2) => "tah:g=64,a=64,p=1,hi=4,lo=3,tau=0",
            _ => "tah:g=64,a=64,p=0.8,hi=4,lo=3,tau=2",
        };
        assert_eq!(config.pipeline.forward.to_string(), forward, "{recipe}");
        let tied = if architecture.trains_tied() { "fixed:bits=8,group=64" } else { "raw:dtype=f32" };
        assert_eq!(config.pipeline.tied.to_string(), tied, "{recipe}");
    }
}

#[test]
fn every_experiment_resolves() {
    let folder = tempfile::tempdir().unwrap();
    for (experiment, rows, start) in EXPERIMENTS {
        let mut sets = vec!["data.tokenizer=byte".to_owned()];
        sets.extend(start.map(|start| format!("model.pretrained={}", start.write(folder.path()).display())));
        let found = Experiment::load(&recipes().join("lab").join(experiment))
            .and_then(|file| file.rows(&sets))
            .unwrap_or_else(|error| panic!("{experiment}: {error:?}"));
        assert_eq!(found.len(), rows, "{experiment}");
    }
}

#[test]
fn no_recipe_is_left_out() {
    let found = |folders: &[&str]| -> BTreeSet<String> {
        let folders = folders.iter().map(|folder| recipes().join(folder));
        let files =
            folders.flat_map(|folder| fs::read_dir(folder).unwrap()).map(|entry| entry.unwrap().path());
        files
            .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
            .map(|path| path.strip_prefix(recipes()).unwrap().to_str().unwrap().to_owned())
            .collect()
    };
    let recipes = RECIPES.iter().map(|expected| expected.0.to_owned()).collect();
    assert_eq!(found(&["", "paper", "small"]), recipes);
    let experiments = EXPERIMENTS.iter().map(|expected| format!("lab/{}", expected.0)).collect();
    assert_eq!(found(&["lab"]), experiments);
}
