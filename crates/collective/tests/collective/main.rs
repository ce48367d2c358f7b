//! Groups of threads.

mod all_reduce;
mod compensator;
mod failures;
mod halves;
mod links;
mod support;
mod vector;
mod windows;
