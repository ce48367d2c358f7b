//! A launcher whose standard error nobody reads.

use std::io::{PipeReader, PipeWriter, Write as _, pipe};
use std::process::Stdio;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use super::processes::wait_for;
use super::recipe::Recipe;

/// A pipe with no room left.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, writer) = pipe().unwrap();
    let mut filling = writer.try_clone().unwrap();
    let (progress, written) = channel();
    // Blocks at the last byte, until the reader is gone.
    thread::spawn(move || while filling.write_all(b"x").is_ok() && progress.send(()).is_ok() {});
    while written.recv_timeout(Duration::from_millis(500)).is_ok() {}
    (reader, writer)
}

#[test]
fn a_run_that_nobody_watches_goes_on_and_ends() {
    for (set, code) in [("train.steps=6", 0), ("data.train=nowhere.txt", 1)] {
        let recipe = Recipe::new();
        let (reader, writer) = full_pipe();
        let mut command = recipe.train(2, &[set]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(writer).spawn().unwrap();
        drop(command); // its end of the pipe
        let status = wait_for(|| child.try_wait().unwrap());
        assert_eq!(status.code(), Some(code));
        assert_eq!(recipe.metrics().is_empty(), code != 0);
        drop(reader);
    }
}
