//! Runs of several stages inside one process, joined by links in memory.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use thinwire_link::{Link, memory};
use thinwire_train::config::Config;
use thinwire_train::metrics::Event;
use thinwire_train::run::{Links, Outcome, Resume, RunError, Setup, Stop, train};

/// A small model on a small text; `overrides` as after `--set`.
pub(crate) fn config(dir: &Path, overrides: &[&str]) -> Config {
    let text = (0..400)
        .fold(String::new(), |text, i| text + &format!("{} sheep and {} goats; ", i * 7 % 97, i * i % 89));
    fs::write(dir.join("train.txt"), &text[..6000]).unwrap();
    fs::write(dir.join("heldout.txt"), &text[6000..7000]).unwrap();
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
    fs::write(&path, recipe).unwrap();
    let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
    Config::load(&path, &overrides).unwrap()
}

/// What a run said, by stage.
pub(crate) type Story = Vec<Vec<Event>>;

/// How each stage ended.
pub(crate) type Outcomes = Vec<Result<Outcome, RunError>>;

/// Longer than any of these runs takes: a stage that is not done by then hangs.
const HANGS: Duration = Duration::from_secs(100);

/// A run to be started in this process.
pub(crate) struct Plan<'a> {
    /// One for each stage; they may differ in their folders.
    pub(crate) configs: Vec<Config>,
    /// Where it starts.
    pub(crate) resume: Resume,
    /// Gets each end of each link, and the stage it belongs to, before the stage does.
    pub(crate) wrap: &'a dyn Fn(usize, Link) -> Link,
    /// The first stage fails once it has done this step.
    pub(crate) stop_at: Option<u64>,
}

impl Plan<'_> {
    /// A whole run of `config`.
    pub(crate) fn new(config: &Config, resume: Resume) -> Self {
        let configs = vec![config.clone(); config.pipeline.stages];
        Self { configs, resume, wrap: &|_, link| link, stop_at: None }
    }

    /// Runs all stages to their end.
    pub(crate) fn run(self) -> (Story, Outcomes) {
        let Self { configs, resume, wrap, stop_at } = self;
        let setups: Vec<Setup> = configs.into_iter().map(|config| Setup::load(config).unwrap()).collect();
        let stages = setups.len();
        let links = link_up(&setups, resume, wrap);
        let (sender, events) = channel();
        let (done, outcomes) = channel();
        for (stage, (setup, links)) in setups.into_iter().zip(links).enumerate() {
            let (sender, done) = (sender.clone(), done.clone());
            thread::spawn(move || {
                let mut emit = |event: Event| -> Result<(), Box<dyn Error + Send + Sync>> {
                    let stops = matches!(event, Event::Step { stage: 0, step, .. } if Some(step) == stop_at);
                    sender.send(event)?;
                    if stops { Err("stopped by the test".into()) } else { Ok(()) }
                };
                done.send((stage, train(setup, stage, links, resume, &Stop::default(), &mut emit)))
            });
        }
        drop((sender, done));
        let ended: BTreeMap<_, _> =
            (0..stages).map(|_| outcomes.recv_timeout(HANGS).expect("no stage hangs or panics")).collect();
        let mut story = vec![Vec::new(); stages];
        for event in events {
            story[event.stage()].push(event);
        }
        (story, ended.into_values().collect())
    }
}

/// Runs all stages to their end.
pub(crate) fn run(config: &Config, resume: Resume) -> (Story, Outcomes) {
    Plan::new(config, resume).run()
}

/// Every file of the last checkpoint but the manifest, which names the split.
pub(crate) fn last_checkpoint(config: &Config) -> BTreeMap<String, Vec<u8>> {
    let last = entries(&config.run.dir.join("checkpoints")).max().unwrap();
    entries(&last)
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(path).unwrap()))
        .filter(|(name, _)| name != "manifest.json")
        .collect()
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path())
}

fn link_up(setups: &[Setup], resume: Resume, wrap: &dyn Fn(usize, Link) -> Link) -> Vec<Links> {
    let resume = resume == Resume::Newest;
    let mut ends: Vec<(Option<Link>, Option<Link>)> = setups.iter().map(|_| (None, None)).collect();
    for stage in 1..setups.len() {
        let config = |from: usize, to: usize| setups[from].link_config(from, to, resume).unwrap();
        let (before, after) = memory::pair(&config(stage - 1, stage), &config(stage, stage - 1)).unwrap();
        ends[stage - 1].1 = Some(wrap(stage - 1, before));
        ends[stage].0 = Some(wrap(stage, after));
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
