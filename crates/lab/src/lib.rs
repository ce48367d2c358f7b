//! Experiments: many training runs that differ in a setting, over links that are really slow, and a report of them.
//!
//! An [`experiment`] file becomes a matrix of rows, a [`network`] is the machines and links of a row, a [`folder`] keeps
//! what the rows leave, and a [`report`] is made of that. Nothing here trains: the runs are the caller's.

pub mod experiment;
pub mod folder;
pub mod network;
pub mod report;
