//! Groups of threads.

mod all_reduce;
mod compensator;
mod failures;
mod halves;
mod links;
mod statistics;
mod support;
mod vector;
mod windows;
