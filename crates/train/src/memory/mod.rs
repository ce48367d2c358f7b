//! What AQ-SGD remembers of the samples, at the two ends of each boundary.

mod boundary;
mod file;
mod shared;

pub use boundary::{BoundaryMemory, End};
pub use file::FileMemory;
pub use shared::SharedMemory;
