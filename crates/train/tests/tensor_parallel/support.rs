//! Small models of every family, and ranks that share them, each a thread.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use burn::tensor::Device;
use thinwire_collective::{AllReduceSpec, Settings, memory};
use thinwire_train::config::{Family, RopeScaling, StageUnits, Unit};
use thinwire_train::data::MicroBatch;
use thinwire_train::model::{Architecture, Lora, Part, Shard, Start};
use thinwire_train::pipeline::{Compute, Forwarded};
use thinwire_train::tensor_parallel::TensorGroup;

pub(crate) const SAMPLES: usize = 2;
pub(crate) const TOKENS: usize = 20;
pub(crate) const VOCAB: usize = 61;

/// Every family, with tied and untied matrices, with adapters and without; neither the vocabulary nor the feed-forward
/// channels can be shared evenly by 2 or 3.
pub(crate) fn architectures() -> Vec<Architecture> {
    let llama = Architecture {
        family: Family::Llama,
        layers: 3,
        hidden: 48,
        heads: 12,
        head_dim: None,
        kv_heads: 6,
        ffn: 65,
        context: 2 * TOKENS,
        vocab: VOCAB,
        tied: false,
        norm_eps: 1e-5,
        rope_theta: 10_000.0,
        rope_scaling: None,
        lora: None,
    };
    let lora = |targets: &[&str]| {
        let targets = targets.iter().map(ToString::to_string).collect();
        Some(Lora { rank: 3, alpha: 4.0, targets })
    };
    let gpt2 = Architecture { family: Family::Gpt2, kv_heads: 12, tied: true, ..llama.clone() };
    let rope_scaling = Some(RopeScaling::Linear { factor: 2.0 });
    let qwen2 = Architecture { family: Family::Qwen2, tied: true, rope_scaling, ..llama.clone() };
    let qwen3 = Architecture { family: Family::Qwen3, head_dim: Some(6), ..llama.clone() };
    let adapted = lora(&["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]);
    vec![
        Architecture { tied: true, ..llama.clone() },
        Architecture { lora: adapted.clone(), ..qwen2.clone() },
        Architecture { lora: adapted, ..qwen3.clone() },
        Architecture { lora: lora(&["c_attn", "c_proj", "c_fc"]), ..gpt2.clone() },
        llama,
        gpt2,
        qwen2,
        qwen3,
    ]
}

/// Tokens without a pattern, not all of which count.
pub(crate) fn batch(seed: usize) -> MicroBatch {
    let ids = |offset: usize| -> Vec<u32> {
        let id = |i: usize| ((i * i * 31 + i * seed + offset) % VOCAB) as u32;
        (0..SAMPLES * TOKENS).map(id).collect()
    };
    let mask = Some((0..SAMPLES * TOKENS).map(|i| i % 7 != seed).collect());
    MicroBatch {
        samples: SAMPLES,
        tokens: TOKENS,
        inputs: ids(0),
        targets: ids(5),
        mask,
        ids: vec![0, 1],
        tag: 0,
    }
}

/// The model's units in the given number of stages.
pub(crate) fn stages(arch: &Architecture, count: usize) -> Vec<Vec<Unit>> {
    let units: Vec<Unit> = StageUnits::whole(arch.layers).iter().collect();
    units.chunks(units.len().div_ceil(count)).map(<[Unit]>::to_vec).collect()
}

/// A rank's share of some units. Parameters that start at zero or one do not: they would hide what reaches them.
pub(crate) fn part(arch: &Architecture, units: &[Unit], shard: Shard) -> Part {
    let mut part = Part::of_shard(arch, units, Start::Seeded(7), shard, &Device::flex());
    let params = part.params().clone();
    for parameter in part.params_mut().iter_mut() {
        if parameter.name.ends_with(".lora_B.weight") || !parameter.decays() {
            let base = f32::from(u8::from(parameter.name.contains("norm")));
            let phase: u32 = parameter.name.bytes().map(u32::from).sum();
            let value = |i: usize| base + ((i * 37) as f32 + phase as f32).sin() * 0.2;
            let whole = (0..parameter.slice.whole().iter().product()).map(value).collect();
            parameter.value = params.upload(parameter.slice.take(whole));
        }
    }
    part
}

/// Runs `rank` on each of `count` ranks that share `arch` in `stages` stages; what each of them returns.
pub(crate) fn share<T: Send>(
    arch: &Architecture,
    count: usize,
    spec: &str,
    of_stages: usize,
    rank: impl Fn(Vec<Compute>, Arc<TensorGroup>) -> T + Sync,
) -> Vec<T> {
    let spec: AllReduceSpec = spec.parse().unwrap();
    let settings = Settings { deadline: Duration::from_secs(20), tile: 256 };
    let groups = memory::group(count, &settings).unwrap();
    let shards = Shard::all(arch, count).unwrap();
    thread::scope(|scope| {
        let start = |(group, shard)| {
            let rank = &rank;
            scope.spawn(move || {
                let group = TensorGroup::new(group, spec);
                let stages = stages(arch, of_stages);
                let compute =
                    |units: &Vec<Unit>| Compute::new(part(arch, units, shard).join(&group), Device::flex());
                let computes = stages.iter().map(compute).collect();
                rank(computes, group)
            })
        };
        let threads: Vec<_> = groups.into_iter().zip(shards).map(start).collect();
        threads.into_iter().map(|thread| thread.join().expect("no rank panics")).collect()
    })
}

/// The model on one rank.
pub(crate) fn alone(arch: &Architecture) -> Compute {
    Compute::new(part(arch, &stages(arch, 1)[0], Shard::WHOLE), Device::flex())
}

/// Losses of two micro-batches whose backward passes follow them.
pub(crate) fn train(stages: &mut [Compute]) -> [f64; 2] {
    [0, 1].map(|index| {
        let (batch, mut entered, mut loss) = (batch(index as usize), None, f64::NAN);
        for stage in stages.iter_mut() {
            match stage.forward(index, &batch, entered.take(), 0.01) {
                Forwarded::Hidden(h) => entered = Some(h),
                Forwarded::Loss(sum) => loss = sum,
            }
        }
        let mut upstream = None;
        for stage in stages.iter_mut().rev() {
            upstream = stage.backward(index, upstream);
        }
        loss
    })
}
