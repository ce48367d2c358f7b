//! How far a command has come.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar on standard error, if that is a terminal, of `count` things with the plural `name`.
pub(crate) fn bar(count: u64, name: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} {msg}, {eta} left");
    ProgressBar::new(count).with_style(style.expect("the template is valid")).with_message(name)
}
