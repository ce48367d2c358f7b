//! `thinwire bench`, as a user meets it.

mod allreduce;
#[path = "../common/mod.rs"]
#[expect(dead_code, reason = "other tests need all of it")]
mod common;
mod interrupted;
#[path = "../common/networks.rs"]
mod networks;
#[path = "../faults/processes.rs"]
#[expect(dead_code, reason = "other tests need all of it")]
mod processes;
mod refused;
mod train;
