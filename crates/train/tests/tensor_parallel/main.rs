//! A model shared by ranks is the model: what it computes, with what it learns, and what happens when a rank fails.

mod compressed;
mod exact;
mod failures;
mod support;
