//! Sums over ranks that travel compressed: the all-reduce of Echo, and its two halves on their own.
//!
//! `P` ranks each hold a tensor of the same length. It is cut into `P` [segments](Segments), of which each rank owns one.
//!
//! 1. *Push*: every rank encodes each segment it does not own and hands it to the owner.
//! 2. *Reduce*: the owner decodes the `P - 1` copies and adds them to its own segment, which was never encoded, in f32 and in
//!    the order of the ranks; then it encodes the sum, once.
//! 3. *Gather*: the same bytes go to every rank. The owner decodes them too,
//! 4. *tail*: as all others do. So all ranks end with the same bits.
//!
//! Each element is quantized at most twice, however many ranks there are (Echo, section 4.1). Segments are cut into tiles, which
//! are in different stages at the same time (section 4.2): while one tile travels, another one is encoded. With a raw codec the
//! same code is an exact all-reduce.
//!
//! # Layers
//!
//! A [`Group`] is one rank's end. It knows segments, tiles, codecs and sums, and nothing of how bytes travel: that is a
//! [`Transport`]'s: [`memory`] has the one between threads of a process, [`shared`] between processes of a machine, [`links`] between
//! machines. A [`Compensator`] is outside of both: it turns a rank's tensor into a [`Contribution`] that is computed tile by tile as
//! the first stage needs it, and learns from the result afterwards.
//!
//! # Windows
//!
//! Tiles are numbered over the life of a group. A rank begins to send tile `i` only after it has received tile `i - D` from every
//! other rank, with `D` the pipeline's depth. So whoever has received tile `i - D` from a rank knows that this rank has received
//! everything up to tile `i - 2 D`, and may overwrite what it had sent as tile `i - 2 D`: a window of `2 D` tiles in each
//! direction needs no acknowledgement, and no flag is ever cleared.
//!
//! # Failure
//!
//! The first message of a call to each other rank says which call it is, so that ranks in different ones notice at once. Nothing waits
//! without a deadline. The first error of a rank, whatever it is, ends the group: the rank tells the others why, and
//! every call on any rank from that one on is an error that names the rank it began with.
//!
//! ```
//! use std::thread;
//! use std::time::Duration;
//! use thinwire_codec::CodecSpec;
//! use thinwire_collective::{Settings, memory};
//!
//! let codec: CodecSpec = "group:bits=8".parse()?;
//! let ranks = memory::group(2, &Settings { deadline: Duration::from_secs(5), ..Settings::default() })?;
//! let sums = thread::scope(|scope| {
//!     let ranks = ranks.into_iter().map(|mut group| {
//!         scope.spawn(move || {
//!             let x = vec![1.0 + group.rank() as f32; 1000];
//!             let mut y = vec![0.0; 1000];
//!             group.all_reduce(&codec, &x[..], &mut y).map(|()| y)
//!         })
//!     });
//!     ranks.collect::<Vec<_>>().into_iter().map(|rank| rank.join().unwrap()).collect::<Result<Vec<_>, _>>()
//! })?;
//! assert_eq!(sums[0], sums[1]);
//! assert!(sums[0].iter().all(|sum| (sum - 3.0).abs() < 0.02));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod add;
mod board;
mod call;
mod codecs;
mod compensator;
mod contribution;
mod error;
mod group;
pub mod links;
pub mod memory;
mod segments;
mod settings;
#[cfg(unix)]
pub mod shared;
mod spec;
mod statistics;
mod terms;
mod transport;
mod value;

pub use compensator::{Coefficients, Compensated, Compensator};
pub use contribution::Contribution;
pub use error::{CollectiveError, Part};
pub use group::{DEPTH, Group};
pub use segments::Segments;
pub use settings::Settings;
pub use spec::{AllReduceSpec, EchoSettings};
pub use statistics::{Errors, Operation, Statistics, Times};
pub use transport::{Transport, WINDOW};
pub use value::Value;
