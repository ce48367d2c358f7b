//! What turns gradients into parameters: AdamW, learning-rate schedules, clipping.

mod adamw;
mod clip;
mod rate;

pub use adamw::{AdamW, Moments};
pub use clip::clip_factor;
pub use rate::RateSchedule;
