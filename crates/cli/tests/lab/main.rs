//! Whole experiments.

#[path = "../common/mod.rs"]
#[expect(dead_code, reason = "other tests need all of it")]
mod common;
mod experiment;
mod here;
mod interrupted;
mod network;
#[path = "../common/networks.rs"]
mod networks;
#[path = "../faults/processes.rs"]
#[expect(dead_code, reason = "other tests need all of it")]
mod processes;
#[path = "../faults/recipe.rs"]
#[expect(dead_code, reason = "other tests need all of it")]
mod recipe;
mod throttled;
