//! What a run tells about itself: events of the stages, and the files, display and tables made from them.

pub mod event;
mod float;

pub use event::{Direction, Event, LinkReport, Span, StageTimes};
