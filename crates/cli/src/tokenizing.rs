//! How far the tokenizing of large data has come.

use std::time::{Duration, Instant};

use thinwire_train::data::Progress;

/// Between two lines, and before the first: small data is done by then.
const INTERVAL: Duration = Duration::from_secs(5);

/// Tells on standard error, now and then, how far it is.
pub(crate) fn tokenizing() -> impl FnMut(Progress) {
    let mut last = Instant::now();
    move |progress| {
        if last.elapsed() < INTERVAL {
            return;
        }
        last = Instant::now();
        let Progress { files, all_files, records, tokens } = progress;
        eprintln!("tokenizing: {tokens} tokens of {records} records, {files} of {all_files} files done");
    }
}
