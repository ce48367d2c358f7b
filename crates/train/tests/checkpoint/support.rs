//! Small models with a training state, without the cost of training.

use std::fs;
use std::path::Path;

use burn::tensor::Device;
use thinwire_train::checkpoint::{
    CheckpointError, FileEntry, Manifest, Results, RunFacts, commit, restore, write_units,
};
use thinwire_train::config::{Family, LayerMap, OptimizerConfig, StageUnits, Unit};
use thinwire_train::model::{Architecture, Part};
use thinwire_train::optim::AdamW;

pub(crate) const WHOLE: &[&str] = &["embed 0-2 head"];
pub(crate) const THREE: &[&str] = &["embed 0", "1", "2 head"];

/// Three blocks, a tied head.
pub(crate) fn architecture(family: Family) -> Architecture {
    Architecture {
        family,
        layers: 3,
        hidden: 16,
        heads: 4,
        head_dim: None,
        kv_heads: if family == Family::Gpt2 { 4 } else { 2 },
        ffn: 24,
        context: 8,
        vocab: 29,
        tied: true,
        norm_eps: 1e-5,
        rope_theta: 10_000.0,
        rope_scaling: None,
        lora: None,
    }
}

pub(crate) fn units(stages: &[&str]) -> Vec<StageUnits> {
    let stages = stages.iter().map(|text| text.parse().unwrap()).collect();
    LayerMap::new(3, stages).unwrap().stages().to_vec()
}

pub(crate) fn facts(arch: &Architecture, stages: &[&str]) -> RunFacts {
    RunFacts {
        run: format!("run with {} stages", stages.len()),
        architecture: arch.clone(),
        base: None,
        stages: units(stages),
        seed: u64::MAX,
        tokenizer: "byte".into(),
        data: "e3b0c44298fc1c14".into(),
        batch: [32, 3, 4],
    }
}

/// One stage's share of the training state.
pub(crate) struct Stage {
    pub(crate) part: Part,
    pub(crate) optimizer: AdamW,
}

impl Stage {
    pub(crate) fn new(arch: &Architecture, units: &StageUnits, seed: u64) -> Self {
        let units: Vec<Unit> = units.iter().collect();
        let part = Part::new(arch, &units, seed, &Device::flex());
        let optimizer = AdamW::new(&OptimizerConfig::default(), part.params().len());
        Self { part, optimizer }
    }

    /// One update with gradients that depend on the step and the parameters' names alone.
    pub(crate) fn update(&mut self, step: u64) {
        let gradient = |name: &str, len: usize| {
            let phase =
                name.bytes().fold(step as f32, |phase, byte| phase.mul_add(1.7, f32::from(byte)).sin());
            (0..len).map(|i| (i as f32).mul_add(0.37, phase).sin()).collect()
        };
        let params = self.part.params();
        let gradients = params.iter().map(|p| Some(params.upload(gradient(&p.name, p.len())))).collect();
        self.optimizer.step(self.part.params_mut(), gradients, 1e-2, 1.0);
    }

    pub(crate) fn restore(
        &mut self,
        dir: &Path,
        step: u64,
        facts: &RunFacts,
    ) -> Result<Manifest, CheckpointError> {
        restore(dir, step, &mut self.part, &mut self.optimizer, facts)
    }

    /// Every parameter, its moments and its number of updates, as bits.
    fn bits(&self) -> Vec<(String, Vec<u32>)> {
        let bits = |tensor: &burn::tensor::Tensor<1>| -> Vec<u32> {
            tensor.clone().into_data().try_to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect()
        };
        let mut all = Vec::new();
        for (index, parameter) in self.part.params().iter().enumerate() {
            let mut state = bits(&parameter.value);
            if let Some(moments) = self.optimizer.moments(index) {
                state.push(moments.updates as u32);
                state.extend(bits(&moments.first));
                state.extend(bits(&moments.second));
            }
            all.push((parameter.name.clone(), state));
        }
        all
    }
}

pub(crate) fn bits(stages: &[Stage]) -> Vec<(String, Vec<u32>)> {
    stages.iter().flat_map(Stage::bits).collect()
}

/// Fresh stages after `updates` updates.
pub(crate) fn trained(arch: &Architecture, stages: &[&str], updates: u64) -> Vec<Stage> {
    let mut stages: Vec<Stage> = units(stages).iter().map(|units| Stage::new(arch, units, 7)).collect();
    for stage in &mut stages {
        (1..=updates).for_each(|step| stage.update(step));
    }
    stages
}

/// Writes the checkpoint of step `step` of stages that share `dir`.
pub(crate) fn write(dir: &Path, step: u64, stages: &[Stage], facts: &RunFacts) -> Manifest {
    let write = |stage: &Stage| write_units(dir, step, &stage.part, &stage.optimizer, &[]).unwrap();
    let files: Vec<FileEntry> = stages.iter().flat_map(write).collect();
    let manifest = Manifest::new(step, Results::default(), facts.clone(), files).unwrap();
    commit(dir, &manifest).unwrap();
    manifest
}

/// A one-stage model after two updates, and its checkpoint as step 2 in a fresh folder.
pub(crate) fn checkpoint() -> (tempfile::TempDir, Vec<Stage>, RunFacts) {
    let dir = tempfile::tempdir().unwrap();
    let arch = architecture(Family::Llama);
    let facts = facts(&arch, WHOLE);
    let stages = trained(&arch, WHOLE, 2);
    write(dir.path(), 2, &stages, &facts);
    (dir, stages, facts)
}

/// The names in a folder, sorted.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// An error with its causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
