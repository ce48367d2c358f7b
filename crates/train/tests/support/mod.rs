//! Runs of several stages inside one process, joined by links in memory.

use std::error::Error;
use std::path::Path;
use std::sync::mpsc::channel;
use std::thread;

use thinwire_link::{Link, memory};
use thinwire_train::config::Config;
use thinwire_train::metrics::Event;
use thinwire_train::run::{Links, Outcome, Resume, RunError, Setup, train};

/// A small model on a small text; `overrides` as after `--set`.
pub(crate) fn config(dir: &Path, overrides: &[&str]) -> Config {
    let text: String = (0..400).map(|i| format!("{} sheep and {} goats; ", i * 7 % 97, i * i % 89)).collect();
    std::fs::write(dir.join("train.txt"), &text[..6000]).unwrap();
    std::fs::write(dir.join("heldout.txt"), &text[6000..7000]).unwrap();
    let recipe = r#"
        run = { dir = "run", seed = 5 }
        model = { family = "llama", layers = 2, hidden = 32, heads = 4, kv_heads = 2, ffn = 48, context = 32, tie_embeddings = false }
        data = { train = "train.txt", heldout = "heldout.txt" }
        train = { steps = 4, sequence = 32, micro_batch = 3, micro_batches = 4 }
        optimizer = { learning_rate = 0.01, warmup_steps = 2, clip_norm = 0.5 }
        eval = { every = 2 }
        pipeline = { stages = 1, forward = "f32", backward = "f32", deadline_seconds = 20.0 }
        metrics = { error_every = 3 }
    "#;
    let path = dir.join("recipe.toml");
    std::fs::write(&path, recipe).unwrap();
    let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
    Config::load(&path, &overrides).unwrap()
}

/// What a run said, by stage.
pub(crate) type Story = Vec<Vec<Event>>;

/// Runs all stages to their end.
pub(crate) fn run(config: &Config, resume: Resume) -> (Story, Vec<Result<Outcome, RunError>>) {
    run_with(config, resume, |_, setup| setup)
}

/// As [`run`], each stage's setup changed first.
pub(crate) fn run_with(
    config: &Config,
    resume: Resume,
    change: impl Fn(usize, Setup) -> Setup,
) -> (Story, Vec<Result<Outcome, RunError>>) {
    let setups: Vec<Setup> =
        (0..config.pipeline.stages).map(|stage| change(stage, Setup::load(config.clone()).unwrap())).collect();
    let links = link_up(&setups, resume);
    let (sender, events) = channel();
    let outcomes = thread::scope(|scope| {
        let handles: Vec<_> = setups
            .into_iter()
            .zip(links)
            .enumerate()
            .map(|(stage, (setup, links))| {
                let sender = sender.clone();
                scope.spawn(move || {
                    let mut emit = |event: Event| {
                        sender.send(event)?;
                        Ok::<(), Box<dyn Error + Send + Sync>>(())
                    };
                    train(setup, stage, links, resume, &mut emit)
                })
            })
            .collect();
        handles.into_iter().map(|handle| handle.join().expect("no stage panics")).collect()
    });
    drop(sender);
    let mut story = vec![Vec::new(); config.pipeline.stages];
    for event in events {
        story[event.stage()].push(event);
    }
    (story, outcomes)
}

fn link_up(setups: &[Setup], resume: Resume) -> Vec<Links> {
    let resume = resume == Resume::Newest;
    let mut ends: Vec<(Option<Link>, Option<Link>)> = setups.iter().map(|_| (None, None)).collect();
    for stage in 1..setups.len() {
        let config = |from: usize, to: usize| setups[from].link_config(from, to, resume).unwrap();
        let (before, after) = memory::pair(&config(stage - 1, stage), &config(stage, stage - 1)).unwrap();
        ends[stage - 1].1 = Some(before);
        ends[stage].0 = Some(after);
    }
    ends.into_iter().map(|(previous, next)| Links { previous, next }).collect()
}

/// The losses of all steps, as one stage told them.
pub(crate) fn losses(events: &[Event]) -> Vec<u64> {
    events
        .iter()
        .filter_map(|event| match event {
            Event::Step { loss, .. } => Some(loss.to_bits()),
            _ => None,
        })
        .collect()
}

/// The losses of all evaluations.
pub(crate) fn evaluations(events: &[Event]) -> Vec<u64> {
    events
        .iter()
        .filter_map(|event| match event {
            Event::Eval { loss, .. } => Some(loss.to_bits()),
            _ => None,
        })
        .collect()
}
