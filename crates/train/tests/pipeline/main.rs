//! Whole runs of several stages in one process.

mod aqsgd;
mod fidelity;
#[path = "../model/fixture.rs"]
mod fixture;
mod lora;
mod pretrained;
mod ranks;
mod splits;
#[path = "../support/mod.rs"]
mod support;
