//! Memory as planned against memory as allocated.

mod allocator;
mod predictions;

use std::fs;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use burn::tensor::Device;
use thinwire_train::config::{Config, Dtype, Family, StageUnits, Unit};
use thinwire_train::data::MicroBatch;
use thinwire_train::model::{Architecture, Lora, Part};
use thinwire_train::pipeline::{Compute, HostTensor};
use thinwire_train::plan::{BatchShape, StageMemory};
use thinwire_train::run::Bench;

const SAMPLES: usize = 2;
const TOKENS: usize = 256;
const HIDDEN: usize = 64;

/// Bytes of a graph's nodes, of the rotary angles and of what else grows with neither rows nor width: for a block.
const NODES: u64 = 96 << 10;

/// Allocations are counted for the whole process.
fn alone() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

fn arch(family: Family) -> Architecture {
    Architecture {
        family,
        layers: 3,
        hidden: HIDDEN,
        heads: 4,
        head_dim: None,
        kv_heads: if family == Family::Gpt2 { 4 } else { 2 },
        ffn: 160,
        context: TOKENS,
        vocab: 300,
        tied: false,
        norm_eps: 1e-5,
        rope_theta: 10_000.0,
        rope_scaling: None,
        lora: None,
    }
}

fn batch() -> MicroBatch {
    let ids: Vec<u32> = (0..SAMPLES * TOKENS).map(|i| (i * 7 % 300) as u32).collect();
    MicroBatch {
        samples: SAMPLES,
        tokens: TOKENS,
        inputs: ids.clone(),
        targets: ids,
        mask: None,
        ids: (0..SAMPLES as u64).collect(),
        tag: 0,
    }
}

/// Bytes that one more micro-batch in flight takes on a stage of `units`.
fn kept(arch: &Architecture, units: &StageUnits, dtype: Dtype, checkpointing: bool) -> u64 {
    let ids: Vec<Unit> = units.iter().collect();
    let part = Part::new(arch, &ids, 1, &Device::flex()).in_dtype(dtype);
    let mut compute = Compute::new(part, Device::flex()).checkpointing(checkpointing);
    let batch = batch();
    let hidden = || {
        let values = (0..SAMPLES * TOKENS * HIDDEN).map(|i| (i % 13) as f32 - 6.0).collect();
        HostTensor { shape: [SAMPLES, TOKENS, HIDDEN], values }
    };
    let mut forward = |index| {
        let entered = (!units.embed).then(hidden);
        drop(compute.forward(index, &batch, entered, 0.01));
        allocator::live()
    };
    forward(0); // what is made once is made now
    let before = forward(1);
    forward(2) - before
}

#[test]
fn activations_in_flight_take_what_is_planned() {
    let _alone = alone();
    let lora = Lora { rank: 4, alpha: 8.0, targets: vec!["q_proj".into(), "down_proj".into()] };
    let adapted = Architecture { lora: Some(lora), ..arch(Family::Llama) };
    let families = [Family::Gpt2, Family::Llama, Family::Qwen2, Family::Qwen3].map(arch);
    for arch in families.iter().chain([&adapted]) {
        for (embed, blocks, head) in
            [(true, 0..2, false), (false, 1..3, false), (false, 2..3, true), (true, 0..3, true)]
        {
            let units = StageUnits { embed, blocks, head };
            for (dtype, checkpointing) in [(Dtype::F32, false), (Dtype::Bf16, false), (Dtype::F32, true)] {
                let shape =
                    BatchShape { samples: SAMPLES, tokens: TOKENS, dtype, checkpointing, in_flight: 1 };
                let planned = StageMemory::of_compute(arch, &units, &shape).activations;
                let found = kept(arch, &units, dtype, checkpointing);
                let nodes = NODES * units.len() as u64;
                let case = format!("{:?} {units} {dtype}, checkpointing {checkpointing}", arch.family);
                assert!(found >= planned, "{case}: planned {planned}, found {found}");
                assert!(found <= planned + nodes, "{case}: planned {planned}, found {found}");
            }
        }
    }
}

fn config(dir: &Path, overrides: &[&str]) -> Config {
    let text = (0..4000).fold(String::new(), |text, i| text + &format!("{} sheep; ", i * 7 % 97));
    fs::write(dir.join("train.txt"), text).unwrap();
    let recipe = r#"
        run = { dir = "run" }
        model = { family = "llama", layers = 4, hidden = 128, heads = 4, kv_heads = 2, ffn = 384, context = 128, tie_embeddings = false }
        data = { train = "train.txt" }
        train = { steps = 4, sequence = 128, micro_batch = 4, micro_batches = 3 }
        optimizer = { learning_rate = 0.01, warmup_steps = 1 }
    "#;
    let path = dir.join("recipe.toml");
    fs::write(&path, recipe).unwrap();
    let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
    Config::load(&path, &overrides).unwrap()
}

/// The most bytes that a run of one stage has allocated, its data included.
fn peak(overrides: &[&str]) -> u64 {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path(), overrides);
    let before = allocator::live();
    allocator::reset_peak();
    Bench::load(config, &mut |_| {}).unwrap().run(1, 1, &mut |_| {}).unwrap();
    allocator::peak() - before
}

#[test]
fn a_whole_run_takes_what_is_planned() {
    let _alone = alone();
    let whole = StageUnits::whole(4);
    let arch =
        Architecture { layers: 4, hidden: 128, ffn: 384, context: 128, vocab: 257, ..arch(Family::Llama) };
    for (overrides, in_flight, checkpointing) in [
        (&["pipeline.schedule=1f1b"][..], 1, false),
        (&["pipeline.schedule=gpipe"], 3, false),
        (&["pipeline.schedule=gpipe", "train.gradient_checkpointing=true"], 3, true),
    ] {
        let shape = BatchShape { samples: 4, tokens: 128, dtype: Dtype::F32, checkpointing, in_flight };
        let planned = StageMemory::of_compute(&arch, &whole, &shape);
        let found = peak(overrides);
        // Model and activations are there at the peak; the scratch is the most that is there besides, apart from nodes and
        // the text with its tokens.
        let least = planned.total() - planned.scratch;
        let most = planned.total() + 6 * NODES * in_flight as u64 + (1 << 20);
        assert!((least..=most).contains(&found), "{overrides:?}: {least} to {most} planned, {found} found");
    }
}
