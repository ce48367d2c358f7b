//! Pipeline-parallel training of language models over slow links.

pub mod config;
pub mod data;
pub mod metrics;
pub mod model;
pub mod optim;
pub mod pipeline;
pub mod text;
