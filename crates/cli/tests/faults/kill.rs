//! Processes that are killed, and runs that go on afterwards.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use super::processes::{Running, signal, wait_for};
use super::recipe::{Line, Recipe, failed, succeed};

/// Slow enough that there is time to be killed in: each step takes about 20 ms on the links.
pub(crate) const LONG: [&str; 3] = ["train.steps=20", "pipeline.bandwidth=8mbit", "checkpoint.every=3"];
const F32: [&str; 2] = ["pipeline.forward=f32", "pipeline.backward=f32"];

/// Who is killed.
#[derive(Clone, Copy, Debug)]
enum Victim {
    Stage(usize),
    Driver,
    /// Every process, as when a machine loses power.
    All,
}

/// When.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// So many milliseconds after this step was recorded.
    After(u64, u64),
    /// While this step's checkpoint is being written.
    InCheckpoint(u64),
}

impl Moment {
    fn wait(self, recipe: &Recipe) {
        match self {
            Moment::After(step, pause) => {
                wait_for(|| recipe.metrics().iter().any(|(_, at, _)| *at >= step).then_some(()));
                thread::sleep(Duration::from_millis(pause));
            }
            Moment::InCheckpoint(step) => {
                let folder = recipe.path(&format!("run/checkpoints/step-{step:08}"));
                wait_for(|| holds_a_file(&folder).then_some(()));
            }
        }
    }
}

fn holds_a_file(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut files| files.next().is_some())
}

/// Starts a run of `stages` stages, kills `victim` at `moment`, and sees everything end.
fn kill(recipe: &Recipe, stages: usize, set: &[&str], resume: bool, victim: Victim, moment: Moment) {
    let mut command = recipe.train(stages, set);
    if resume {
        command.arg("--resume");
    }
    let mut running = Running::launcher(&mut command, &recipe.path(""));
    moment.wait(recipe);
    assert!(running.is_running(), "{victim:?} {moment:?}: the run was over too soon");
    let driver = running.id();
    match victim {
        Victim::Stage(stage) => signal("KILL", running.stage(stage)),
        Victim::Driver => signal("KILL", driver),
        Victim::All => {
            let stages = running.stages();
            [driver].into_iter().chain(stages.iter().map(|(id, _)| *id)).for_each(|id| signal("KILL", id));
        }
    }
    running.wait_for_no_stage();
    let output = running.output();
    if let Victim::Stage(stage) = victim {
        let error = failed(&output);
        let expected = format!("stage {stage}: its process ended with signal: 9 (SIGKILL)");
        assert!(error.contains(&expected), "{error}");
    }
}

/// The metrics of a run that nothing happens to.
pub(crate) fn undisturbed(stages: usize, set: &[&str]) -> Vec<Line> {
    let recipe = Recipe::new();
    recipe.report(stages, set);
    recipe.metrics()
}

/// A small generator (Steele et al., 2014), so that a failure can be repeated.
pub(crate) fn random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*seed ^ (*seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 33
}

#[test]
fn a_run_killed_again_and_again_gives_what_an_undisturbed_one_gives() {
    let expected = undisturbed(2, &LONG);
    let recipe = Recipe::new();
    let mut seed = 1;
    let victims = [Victim::Stage(1), Victim::Driver, Victim::All, Victim::Stage(0), Victim::All];
    for (round, victim) in (0..).zip(victims) {
        // Never before the first checkpoint, always before the end; the third round falls into a checkpoint.
        let moment = match round {
            2 => Moment::InCheckpoint(9),
            _ => Moment::After(4 + 3 * round, random(&mut seed) % 60),
        };
        kill(&recipe, 2, &LONG, round > 0, victim, moment);
    }
    let report = succeed(recipe.train(2, &LONG).arg("--resume"));
    assert_eq!(recipe.metrics(), expected);
    assert_eq!(report["steps"], 20);
}

#[test]
fn a_checkpoint_that_was_being_written_does_not_count() {
    let set = [&LONG[..], &["checkpoint.every=1"]].concat();
    let expected = undisturbed(2, &set);
    for (victim, step) in [(Victim::Stage(0), 4), (Victim::Driver, 6), (Victim::All, 8)] {
        let recipe = Recipe::new();
        kill(&recipe, 2, &set, false, victim, Moment::InCheckpoint(step));
        succeed(recipe.train(2, &set).arg("--resume"));
        assert_eq!(recipe.metrics(), expected, "{victim:?}");
        assert!(recipe.checkpoints().iter().all(|(_, whole)| *whole), "{:?}", recipe.checkpoints());
    }
}

#[test]
fn uncompressed_runs_go_on_with_another_number_of_stages() {
    let set = [&LONG[..], &F32].concat();
    let expected = undisturbed(1, &set);
    let recipe = Recipe::new();
    kill(&recipe, 2, &set, false, Victim::All, Moment::After(5, 10));
    kill(&recipe, 4, &set, true, Victim::Driver, Moment::After(10, 30));
    succeed(recipe.train(3, &set).arg("--resume"));
    assert_eq!(recipe.metrics(), expected);
}
