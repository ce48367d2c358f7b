//! Runs under faults: what is lost, what every stage says, and that none waits for ever.

mod engines;
mod frames;
mod memory;
mod non_finite;
mod ranks;
mod resume;
mod silence;
#[path = "../support/mod.rs"]
mod support;
mod tamper;
mod tied;

use support::Outcomes;
use thinwire_link::LinkError;
use thinwire_train::pipeline::PipelineError;
use thinwire_train::run::RunError;
use thinwire_train::text::chain;

/// Layer maps of a model of two blocks, by number of stages.
const SPLITS: [&str; 4] = [
    r#"pipeline.layers=["embed 0-1 head"]"#,
    r#"pipeline.layers=["embed 0", "1 head"]"#,
    r#"pipeline.layers=["embed", "0-1", "head"]"#,
    r#"pipeline.layers=["embed", "0", "1", "head"]"#,
];

/// Overrides for this many stages, and more.
fn stages<'a>(stages: usize, more: &[&'a str]) -> Vec<&'a str> {
    let count = ["pipeline.stages=1", "pipeline.stages=2", "pipeline.stages=3", "pipeline.stages=4"];
    [&[count[stages - 1], SPLITS[stages - 1]], more].concat()
}

/// The error with everything behind it.
fn text(error: &RunError) -> String {
    chain(error)
}

/// Asserts that stage `origin` failed with an error that names all of `parts`, and that every other stage was told that
/// error. Returns it.
#[track_caller]
fn assert_origin(outcomes: &Outcomes, origin: usize, parts: &[&str]) -> String {
    let own = outcomes[origin].as_ref().expect_err("the origin fails");
    let own_text = text(own);
    for part in parts {
        assert!(own_text.contains(part), "{own_text:?} does not name {part:?}");
    }
    for (stage, outcome) in outcomes.iter().enumerate().filter(|(stage, _)| *stage != origin) {
        let error = outcome.as_ref().expect_err("no stage goes on alone");
        let RunError::Pipeline(PipelineError::Link(LinkError::PeerAborted { reason, .. })) = error else {
            panic!("stage {stage} was not told why: {}", text(error));
        };
        let expected = format!("stage {origin}: {own_text}");
        assert_eq!(*reason, expected, "what stage {stage} was told");
    }
    own_text
}
