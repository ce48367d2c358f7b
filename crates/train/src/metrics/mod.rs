//! What a run tells about itself: the events of its stages, and the files, display, tables and pictures made from
//! them.
//!
//! A stage process writes [`Event`]s; a [`Recorder`] takes them and writes the run's folder. Every file and field is
//! described in `docs/metrics.md`.

mod all_reduce;
mod display;
mod error;
pub mod event;
mod float;
mod jsonl;
mod merge;
mod plot;
mod record;
mod recorder;
mod report;
#[cfg(test)]
mod samples;
mod summary;
mod tensorboard;
pub mod text;
mod trace;

pub use all_reduce::{AllReduceReport, SiteReport};
pub use display::DisplayMode;
pub use error::MetricsError;
pub use event::{Direction, Event, LinkReport, Span, StageTimes};
pub use jsonl::read_records;
pub use plot::{LossCurve, write_loss_curves};
pub use record::{AllReduceRecord, EvalRecord, LinkRecord, Record, StageRecord, StepRecord};
pub use recorder::{METRICS_FILE, Recorder, RecorderOptions, TRACE_FILE};
pub use report::{Comparison, LinkSummary, RunReport, StageSummary};
