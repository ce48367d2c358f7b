//! Generation: the cache changes no logit, and the text is that of `transformers`.

mod assets;
mod cache;
mod choices;
#[path = "../model/fixture.rs"]
#[expect(dead_code, reason = "the model's tests read more of it")]
mod fixture;
mod greedy;
mod limits;
mod models;
mod shared;
mod smollm2;
