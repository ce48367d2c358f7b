//! Stages that are started one by one.

use std::fmt::Write as _;
use std::fs;
use std::net::TcpListener;
use std::process::{Command, Output};

use super::common::thinwire;
use super::processes::{Running, signal, wait_for};
use super::recipe::{Recipe, failed, settings, split, steps, succeed};

/// A run whose recipe says where each stage is and what key it has.
pub(crate) struct ByHand {
    pub(crate) recipe: Recipe,
    stages: usize,
}

impl ByHand {
    /// Stages at ports of this machine that were free a moment ago.
    pub(crate) fn new(stages: usize) -> Self {
        let free: Vec<_> = (0..stages).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let addresses: Vec<String> = free.iter().map(|port| port.local_addr().unwrap().to_string()).collect();
        Self::at(&addresses)
    }

    /// Stages at these addresses.
    pub(crate) fn at(addresses: &[String]) -> Self {
        let recipe = Recipe::new();
        let mut text = fs::read_to_string(recipe.path("recipe.toml")).unwrap();
        for (stage, address) in addresses.iter().enumerate() {
            let key = thinwire(["key"]).arg(recipe.path(&format!("{stage}.pem"))).output().unwrap();
            let key = String::from_utf8(key.stdout).unwrap();
            write!(text, "\n[[stage]]\naddress = \"{address}\"\nkey = \"{}\"\n", key.trim()).unwrap();
        }
        fs::write(recipe.path("recipe.toml"), text).unwrap();
        Self { recipe, stages: addresses.len() }
    }

    /// The command for one stage, in a folder of its own.
    pub(crate) fn stage(&self, stage: usize, set: &[&str]) -> Command {
        let mut command = thinwire(["stage", "--json", "--stage", &stage.to_string(), "--config"]);
        command.arg(self.recipe.path("recipe.toml"));
        command.arg("--key").arg(self.recipe.path(&format!("{stage}.pem")));
        let folder = format!("run.dir=run-{stage}");
        command.args(split(self.stages)).args(settings(&[&[folder.as_str()], set].concat()));
        command
    }

    /// Runs all stages, each with settings of its own, to their end.
    fn run(&self, set: &[&[&str]]) -> Vec<Output> {
        let running: Vec<_> =
            set.iter().enumerate().map(|(stage, set)| Running::alone(&mut self.stage(stage, set))).collect();
        running.into_iter().map(Running::output).collect()
    }
}

#[test]
fn stages_find_each_other_and_agree_on_the_result() {
    let by_hand = ByHand::new(3);
    let outputs = by_hand.run(&[&[], &[], &[]]);
    let losses: Vec<String> = outputs
        .iter()
        .map(|output| {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            format!("{} {}", report["final_loss"], report["heldout_perplexity"])
        })
        .collect();
    let local = Recipe::new();
    let report = local.report(3, &[]);
    let expected = format!("{} {}", report["final_loss"], report["heldout_perplexity"]);
    assert_eq!(losses, [&expected[..]; 3]);
    for stage in 0..3 {
        assert_eq!(by_hand.recipe.metrics_of(&format!("run-{stage}")), local.metrics());
    }

    let wrong = failed(&by_hand.recipe.train(3, &[]).output().unwrap());
    assert!(wrong.contains("the configuration has [[stage]] entries"), "{wrong}");
}

#[test]
fn what_two_stages_do_not_share_is_named_with_both_values() {
    let tokenizer = r#"{"version":"1.0","truncation":null,"padding":null,"added_tokens":[],"normalizer":null,
        "pre_tokenizer":{"type":"Whitespace"},"post_processor":null,"decoder":null,
        "model":{"type":"WordLevel","vocab":{"sheep":0,"goats":1},"unk_token":"sheep"}}"#;
    for (set, term, here, there) in [
        ("model.ffn=64", "model", r#""ffn":48"#, r#""ffn":64"#),
        ("model.ffn=64", "model hash", "", ""),
        ("run.seed=9", "seed", "5", "9"),
        (r#"pipeline.layers=["embed", "0-1 head"]"#, "layer map", "embed 0", "0-1 head"),
        ("pipeline.schedule=gpipe", "schedule", "1f1b", "gpipe"),
        ("train.steps=7", "steps", "6", "7"),
        ("train.sequence=16", "sequence", "32", "16"),
        ("train.micro_batch=1", "micro-batch", "2", "1"),
        ("train.micro_batches=4", "micro-batches", "3", "4"),
        ("pipeline.forward=tah:g=64", "codec 0-1", "g=32", "g=64"),
        ("pipeline.backward=fixed:bits=8,group=32", "codec 1-0", "bits=6", "bits=8"),
        ("pipeline.tied=fixed:bits=8,group=64", "codec tied", "dtype=f32", "bits=8"),
        ("data.train=heldout.txt", "training text", "", ""),
        ("data.heldout=train.txt", "held-out text", "", ""),
        ("eval.every=3", "evaluation", r#""every":2"#, r#""every":3"#),
        ("optimizer.learning_rate=0.5", "optimizer", "0.01", "0.5"),
        ("pipeline.non_finite=skip-step", "non-finite", "stop", "skip-step"),
        ("checkpoint.every=3", "checkpoint every", "2", "3"),
        ("data.tokenizer=words.json", "tokenizer", "byte", ""),
    ] {
        let by_hand = ByHand::new(2);
        fs::write(by_hand.recipe.path("words.json"), tokenizer).unwrap();
        // A tokenizer of two words has another vocabulary, unless it is padded: then the model is the same.
        let other: &[&str] = if term == "tokenizer" { &[set, "model.vocab=256"] } else { &[set] };
        for (stage, output) in by_hand.run(&[&[], other]).iter().enumerate() {
            let error = failed(output);
            let (ours, theirs) = if stage == 0 { (here, there) } else { (there, here) };
            let named = error.lines().find(|line| {
                line.trim_start().trim_start_matches("because: ").starts_with(&format!("{term}: "))
            });
            let line = named.unwrap_or_else(|| panic!("{set}: stage {stage} does not name {term}: {error}"));
            let (left, right) = line.split_once(&format!("stage {} has ", 1 - stage)).unwrap();
            assert!(left.contains(ours) && right.contains(theirs), "{set}: {line}");
        }
    }
}

#[test]
fn a_stage_that_resumes_does_not_meet_one_that_starts_anew() {
    let by_hand = ByHand::new(2);
    for output in by_hand.run(&[&[], &[]]) {
        assert!(output.status.success());
    }
    let first = Running::alone(by_hand.stage(0, &[]).arg("--resume"));
    let second = Running::alone(by_hand.stage(1, &[]).arg("--overwrite"));
    for (stage, output) in [first.output(), second.output()].iter().enumerate() {
        let error = failed(output);
        assert!(error.contains(&format!("resume: stage {stage} (here) has {}", stage == 0)), "{error}");
    }
}

#[test]
fn an_earlier_run_stays_until_the_neighbours_agree_to_replace_it() {
    let by_hand = ByHand::new(2);
    for output in by_hand.run(&[&[], &[]]) {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let earlier = || [0, 1].map(|stage| by_hand.recipe.metrics_of(&format!("run-{stage}")));
    let before = earlier();
    let start = |stage, set: &[&str]| Running::alone(by_hand.stage(stage, set).arg("--overwrite"));
    for set in [["train.steps=31"], ["run.seed=77"]] {
        let refused = [start(0, &set), start(1, &[])].map(Running::output);
        assert!(refused.iter().all(|output| failed(output).contains(": stage 0")), "{refused:?}");
    }
    assert_eq!(earlier(), before);
    assert!(by_hand.recipe.path("run-0/checkpoints").read_dir().unwrap().next().is_some());

    let replaced = [start(0, &["train.steps=2"]), start(1, &["train.steps=2"])].map(Running::output);
    assert!(replaced.iter().all(|output| output.status.success()), "{replaced:?}");
    assert_eq!(earlier().map(|metrics| steps(&metrics)), [[1, 2], [1, 2]]);
}

#[test]
fn a_third_stage_hears_of_a_disagreement() {
    let by_hand = ByHand::new(3);
    let outputs = by_hand.run(&[&[], &[], &["train.steps=7"]]);
    let errors: Vec<String> = outputs.iter().map(failed).collect();
    for error in &errors[1..] {
        assert!(error.contains("steps: stage "), "{error}");
    }
    // Stage 0 may have met stage 1 before or after stage 1 met stage 2.
    let heard = errors[0].contains("steps: stage ");
    assert!(heard || errors[0].contains("stage 1"), "{}", errors[0]);
}

#[test]
fn another_key_than_the_pinned_one_is_refused_by_both() {
    let by_hand = ByHand::new(2);
    let wrong = thinwire(["stage", "--stage", "1", "--config"])
        .arg(by_hand.recipe.path("recipe.toml"))
        .arg("--key")
        .arg(by_hand.recipe.path("0.pem"))
        .args(split(2))
        .output()
        .unwrap();
    let error = failed(&wrong);
    assert!(error.contains("0.pem holds the key ed25519:") && error.contains("pins ed25519:"), "{error}");

    // The same, found only when they meet: the second stage has a recipe that pins the key it holds.
    let stranger = ByHand::new(2);
    let pinned = fs::read_to_string(by_hand.recipe.path("recipe.toml")).unwrap();
    let keys = |text: &str| -> Vec<String> {
        text.lines().filter(|line| line.starts_with("key = ")).map(str::to_owned).collect()
    };
    let other = fs::read_to_string(stranger.recipe.path("recipe.toml")).unwrap();
    let forged = pinned.replace(&keys(&pinned)[1], &keys(&other)[1]);
    fs::write(by_hand.recipe.path("forged.toml"), forged).unwrap();
    let mut second = thinwire(["stage", "--stage", "1", "--config"]);
    second.arg(by_hand.recipe.path("forged.toml")).arg("--key").arg(stranger.recipe.path("1.pem"));
    second.args(split(2)).args(settings(&["run.dir=run-1", "pipeline.connect_seconds=3"]));
    let first = Running::alone(&mut by_hand.stage(0, &["pipeline.connect_seconds=3"]));
    let second = Running::alone(&mut second);
    let error = failed(&first.output());
    assert!(error.contains(" has the key ed25519:") && error.contains(" is pinned for it"), "{error}");
    let error = failed(&second.output());
    assert!(
        error.contains("stage 0 with key ed25519:") && error.contains("did not come to 127.0.0.1:"),
        "{error}"
    );
}

#[test]
fn a_port_in_use_and_a_peer_that_does_not_come_are_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let by_hand = ByHand::at(&[free.local_addr().unwrap().to_string(), address.clone()]);
    let short: &[&str] = &["pipeline.connect_seconds=1.5"];
    let outputs = by_hand.run(&[short, short]);
    let error = failed(&outputs[1]);
    assert!(error.contains(&format!("cannot listen on {address}")) && error.contains("in use"), "{error}");
    let error = failed(&outputs[0]);
    assert!(error.contains(&format!("stage 1 could not be reached at {address} within 1.5 s")), "{error}");

    drop(taken);
    let error = failed(&by_hand.stage(0, short).output().unwrap());
    assert!(error.contains("stage 1 could not be reached") && error.contains("refused"), "{error}");
    let error = failed(&by_hand.stage(1, short).output().unwrap());
    assert!(error.contains("stage 0 with key ed25519:") && error.contains("within 1.5 s"), "{error}");

    // Nothing of this is in the way of a run that finds its peers.
    for output in by_hand.run(&[&[], &[]]) {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_stage_that_is_killed_ends_the_others() {
    let by_hand = ByHand::new(3);
    let slow = "pipeline.bandwidth=8mbit";
    let set: &[&str] = &["train.steps=100000", slow];
    let running: Vec<_> = (0..3).map(|stage| Running::alone(&mut by_hand.stage(stage, set))).collect();
    // The checkpoint of step 2 is there once step 3 is done.
    wait_for(|| by_hand.recipe.metrics_of("run-0").iter().any(|(_, step, _)| *step == 3).then_some(()));
    signal("KILL", running[1].id());
    let outputs: Vec<_> = running.into_iter().map(Running::output).collect();
    for stage in [0, 2] {
        let error = failed(&outputs[stage]);
        assert!(
            error.contains("stage 1 at 127.0.0.1:") && error.contains("vanished") || error.contains("broke"),
            "{error}"
        );
    }

    let resumed: Vec<_> = (0..3)
        .map(|stage| Running::alone(by_hand.stage(stage, &["train.steps=60", slow]).arg("--resume")))
        .collect();
    for output in resumed.into_iter().map(Running::output) {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_single_stage_needs_neither_key_nor_address() {
    let recipe = Recipe::new();
    let mut command = thinwire(["stage", "--json", "--stage", "0", "--config"]);
    let report = succeed(command.arg(recipe.path("recipe.toml")));
    assert_eq!(report["steps"], 6);
}
