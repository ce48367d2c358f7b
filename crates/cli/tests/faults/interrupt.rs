//! Runs and stages that are asked to end.

use std::process::Output;
use std::thread;
use std::time::{Duration, Instant};

use super::by_hand::ByHand;
use super::kill::{LONG, random, undisturbed};
use super::processes::{Running, signal, wait_for};
use super::recipe::{Recipe, failed, succeed};

/// What a process says that a signal has stopped.
#[track_caller]
fn stopped(output: &Output, code: i32) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert!(output.stdout.is_empty() && !text.contains("error: ") && !text.contains("failed"), "{text}");
    text
}

/// Waits for this step of the run in `folder`, and some time of the next.
fn wait_for_step(recipe: &Recipe, folder: &str, step: u64, pause: u64) {
    wait_for(|| recipe.metrics_of(folder).iter().any(|(_, at, _)| *at >= step).then_some(()));
    thread::sleep(Duration::from_millis(pause));
}

#[test]
fn a_run_says_where_it_was_stopped_and_goes_on_to_the_bit() {
    let expected = undisturbed(2, &LONG);
    let recipe = Recipe::new();
    let mut seed = 3;
    for (round, (name, code)) in (0..).zip([("INT", 130), ("TERM", 143), ("INT", 130), ("TERM", 143)]) {
        let mut command = recipe.train(2, &LONG);
        if round > 0 {
            command.arg("--resume");
        }
        let running = Running::launcher(&mut command, &recipe.path(""));
        wait_for_step(&recipe, "run", 4 + 3 * round, random(&mut seed) % 60);
        // As a terminal does, which sends it to every process in the foreground.
        let stages = running.stages();
        signal(name, running.id());
        for (id, _) in &stages {
            signal(name, *id);
        }
        running.wait_for_no_stage();
        let text = stopped(&running.output(), code);
        let line = text.lines().last().unwrap();
        let (before, checkpoint) =
            line.split_once("; --resume continues it from the checkpoint of step ").unwrap();
        let step = before.strip_prefix(&format!("the run was stopped by SIG{name} after step ")).unwrap();
        let last = recipe.metrics().last().unwrap().1;
        assert!(step.parse::<u64>().unwrap() >= last && last >= 4 + 3 * round, "{line}, {last}");
        let newest = recipe.checkpoints().into_iter().filter(|(_, whole)| *whole).map(|(step, _)| step).max();
        assert_eq!(checkpoint.parse().ok(), newest, "{line}");
    }
    succeed(recipe.train(2, &LONG).arg("--resume"));
    assert_eq!(recipe.metrics(), expected);
}

#[test]
fn before_the_first_checkpoint_there_is_nothing_to_resume() {
    let recipe = Recipe::new();
    let set = ["train.steps=100000", "checkpoint.every=0"];
    let running = Running::launcher(&mut recipe.train(1, &set), &recipe.path(""));
    wait_for_step(&recipe, "run", 2, 0);
    signal("INT", running.id());
    let text = stopped(&running.output(), 130);
    assert!(text.contains("; it has no checkpoint yet: start anew with --overwrite"), "{text}");
}

#[test]
fn a_second_one_ends_the_run_at_once() {
    let recipe = Recipe::new();
    let mut running = Running::launcher(&mut recipe.train(2, &["train.steps=100000"]), &recipe.path(""));
    wait_for_step(&recipe, "run", 2, 0);
    // A stage that does not react: the launcher gives it 5 s.
    let stage = running.stage(1);
    signal("STOP", stage);
    let begin = Instant::now();
    let id = running.id();
    signal("INT", id);
    thread::sleep(Duration::from_millis(300));
    signal("INT", id);
    wait_for(|| (!running.is_running()).then_some(()));
    assert!(begin.elapsed() < Duration::from_secs(4), "{:?}", begin.elapsed());
    signal("CONT", stage);
    running.wait_for_no_stage();
    let text = stopped(&running.output(), 130);
    assert!(text.contains("stopped at once by SIGINT"), "{text}");
}

#[test]
fn a_stage_started_by_hand_tells_its_neighbours() {
    let by_hand = ByHand::new(2);
    let set: &[&str] = &["train.steps=100000", "pipeline.bandwidth=8mbit"];
    let [first, second] = [0, 1].map(|stage| Running::alone(&mut by_hand.stage(stage, set)));
    wait_for_step(&by_hand.recipe, "run-1", 3, 10);
    signal("TERM", second.id());
    let text = stopped(&second.output(), 143);
    assert!(text.contains("stage 1 was stopped by SIGTERM after step "), "{text}");
    let error = failed(&first.output());
    assert!(error.contains(" aborted: stage 1: stopped by SIGTERM"), "{error}");
}
