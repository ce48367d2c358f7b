//! AQ-SGD: what is on the wire and in the memories of the two ends, visit after visit.

#[path = "../common/mod.rs"]
mod common;

mod bad_memory;
mod hostile;
mod oracle;
mod support;
mod visits;
