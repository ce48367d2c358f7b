//! A model shared by ranks is the model: what it computes, with what it learns, and what happens when a rank fails.

#[path = "../generate/assets.rs"]
mod assets;
mod compressed;
mod exact;
mod failures;
mod smollm2;
mod support;
