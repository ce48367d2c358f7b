//! Whole runs of real processes, and what becomes of them when something breaks.

mod by_hand;
#[path = "../common/mod.rs"]
#[expect(dead_code, reason = "other tests need all of it")]
mod common;
mod folder;
mod full_disk;
mod interrupt;
mod kill;
mod namespaces;
mod processes;
mod recipe;
mod stop;
mod train;
mod unread;
