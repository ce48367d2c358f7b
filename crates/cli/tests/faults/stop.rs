//! A stage that is stopped: alive, and silent.

use std::time::{Duration, Instant};

use super::processes::{Running, signal, wait_for};
use super::recipe::{Recipe, failed};

#[test]
fn a_stopped_stage_is_blamed_and_reaped() {
    for stopped in [0, 1, 2] {
        let recipe = Recipe::new();
        let set = ["train.steps=100000", "pipeline.deadline_seconds=3"];
        let running = Running::launcher(&mut recipe.train(3, &set), &recipe.path(""));
        wait_for(|| (recipe.metrics().len() > 3).then_some(()));
        let begin = Instant::now();
        signal("STOP", running.stage(stopped));
        let error = failed(&running.output());
        let blamed = [
            format!("stage {stopped} sent nothing for "),
            "was silent for ".to_owned(),
            "took nothing for ".to_owned(),
        ];
        assert!(error.contains(&format!("stage {stopped} ")), "{error}");
        assert!(blamed.iter().any(|blame| error.contains(blame.as_str())), "{error}");
        // Deadlines of at most 4.5 s, then 5 s in which the stopped stage could end by itself.
        assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    }
}
