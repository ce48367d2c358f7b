//! Multiple-choice questions: how likely the model finds each choice behind the question, and how often the likeliest is
//! the right one.
//!
//! Prompts and measures are those of the LM Evaluation Harness (Gao et al., 2021), without examples in front
//! ("zero-shot").

mod accuracy;
mod error;
mod format;
mod question;
mod read;
mod score;

pub use accuracy::Accuracy;
pub use error::{ChoicesError, RecordError};
pub use format::Format;
pub use question::Question;
pub use read::{Damaged, Questions};
pub use score::{Encoded, Score};
