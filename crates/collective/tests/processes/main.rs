//! Groups of processes: each rank is this test's program again.
#![cfg(unix)]

mod group;
mod killed;
mod rank;
mod start;
