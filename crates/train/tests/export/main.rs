//! Trained runs, exported and opened again.

mod damaged;
mod round_trip;
#[expect(dead_code, reason = "shared with tests that watch what happens in a run")]
#[path = "../support/mod.rs"]
mod support;
