//! Pipeline-parallel training of language models over slow links.

pub mod checkpoint;
pub mod choices;
pub mod config;
pub mod evaluate;
pub mod export;
pub mod fidelity;
pub mod generate;
pub mod memory;
pub mod metrics;
pub mod model;
pub mod optim;
pub mod pipeline;
pub mod plan;
pub mod pretrained;
pub mod resident;
pub mod run;
pub mod tensor_parallel;
pub mod text;

pub use thinwire_data as data;
