//! Pipeline-parallel training of language models over slow links.

pub mod checkpoint;
pub mod config;
pub mod data;
pub mod evaluate;
pub mod export;
pub mod metrics;
pub mod model;
pub mod optim;
pub mod pipeline;
pub mod plan;
pub mod pretrained;
pub mod run;
pub mod text;
