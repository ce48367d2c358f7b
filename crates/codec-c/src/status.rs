use std::cell::RefCell;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::str::Utf8Error;

use thinwire_codec::{CodecError, DecodeError, EncodeError, SpecError};
use thiserror::Error;

thread_local! {
    static MESSAGE: RefCell<String> = const { RefCell::new(String::new()) };
}

#[derive(Debug, Error)]
pub(crate) enum Failure {
    #[error("a pointer is null")]
    Null,
    #[error("a pointer is not aligned for its values")]
    Misaligned,
    #[error("no memory has room for so many values")]
    TooLong,
    #[error("number format {0}: 0 is f32, 1 is f16, 2 is bf16")]
    DType(c_int),
    #[error("the spec is not UTF-8")]
    Text(#[from] Utf8Error),
    #[error(transparent)]
    Spec(#[from] SpecError),
    #[error(transparent)]
    Shape(#[from] CodecError),
    #[error(transparent)]
    Encode(#[from] EncodeError),
    #[error(transparent)]
    Decode(#[from] DecodeError),
}

impl Failure {
    /// The header's `thinwire_status`.
    fn status(&self) -> c_int {
        match self {
            Self::Null | Self::Misaligned | Self::TooLong | Self::DType(_) | Self::Text(_) => 1,
            Self::Spec(_) => 2,
            Self::Shape(_) | Self::Encode(_) => 3,
            Self::Decode(_) => 4,
        }
    }
}

/// Of a panic, which must not pass into C.
const INTERNAL: c_int = 5;

/// Turns the outcome into a status, and keeps the message of a failure for this thread.
pub(crate) fn guard(work: impl FnOnce() -> Result<(), Failure>) -> c_int {
    let (status, message) = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => return 0,
        Ok(Err(failure)) => (failure.status(), failure.to_string()),
        Err(_) => (INTERNAL, "a bug in the library".to_owned()),
    };
    MESSAGE.set(message);
    status
}

pub(crate) fn last_message() -> String {
    MESSAGE.with_borrow(String::clone)
}
