//! One stage process.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::PathBuf;
use std::process::{self, ExitStatus, Stdio};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::{env, thread};

use thinwire_train::metrics::Event;

use super::hosts::Hosts;
use crate::error::CommandError;
use crate::signals::Signal;

/// The tensor library's thread count.
const THREADS: &str = "RAYON_NUM_THREADS";

/// What a stage process needs to be told.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) config: PathBuf,
    pub(super) stage: usize,
    pub(super) key: Option<PathBuf>,
    pub(super) listen: Option<String>,
    pub(super) next: Option<String>,
    pub(super) resume: bool,
    pub(super) threads: usize,
}

/// What a stage process lets the launcher know.
#[derive(Debug)]
pub(super) enum Said {
    /// An event, from its standard output.
    Event(Event),
    /// A line on its standard output that is no event.
    Nonsense { stage: usize, line: String },
    /// A line on its standard error.
    Line { stage: usize, text: String },
    /// Nothing: the launcher is asked to end.
    Asked(Signal),
    /// It has ended, and everything it said has been passed on.
    Ended { stage: usize, status: Option<ExitStatus> },
}

/// Standard output and standard error.
type Pipes = (Option<process::ChildStdout>, Option<process::ChildStderr>);

/// A running stage. Dropping it ends the process.
#[derive(Debug)]
pub(super) struct Child {
    /// Shared with the watcher, which takes it for good only when the process is at its end.
    process: Arc<Mutex<process::Child>>,
    /// Held open: a stage ends itself when this closes, even if the launcher is killed.
    stdin: Option<process::ChildStdin>,
    watcher: Option<thread::JoinHandle<()>>,
}

impl Child {
    pub(super) fn start(order: &Order, hosts: Hosts<'_>, said: Sender<Said>) -> Result<Self, CommandError> {
        let mut command = hosts.thinwire(order.stage)?;
        command.arg("stage").arg("--driven").arg("--config").arg(&order.config);
        command.arg("--stage").arg(order.stage.to_string());
        if let Some(key) = &order.key {
            command.arg("--key").arg(key);
        }
        for (flag, value) in [("--listen", &order.listen), ("--next", &order.next)] {
            if let Some(value) = value {
                command.arg(flag).arg(value);
            }
        }
        if order.resume {
            command.arg("--resume");
        }
        if env::var_os(THREADS).is_none() {
            command.env(THREADS, order.threads.to_string());
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child =
            command.spawn().map_err(|error| format!("cannot start stage {}: {error}", order.stage))?;
        let stdin = child.stdin.take();
        let pipes = (child.stdout.take(), child.stderr.take());
        let process = Arc::new(Mutex::new(child));
        let (shared, stage) = (process.clone(), order.stage);
        let watcher = thread::spawn(move || watch(&shared, pipes, stage, &said));
        Ok(Self { process, stdin, watcher: Some(watcher) })
    }
}

impl Child {
    /// Asks the stage to end in order: a line on its standard input says who does.
    pub(super) fn ask_to_stop(&self, signal: Signal) {
        if let Some(mut stdin) = self.stdin.as_ref() {
            let _ = writeln!(stdin, "{signal}"); // one that has ended is fine
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // A stage that is stopped or hangs would not see its standard input close. Where the watcher has the process,
        // its pipes are closed, so it is ending.
        if let Ok(mut process) = self.process.try_lock() {
            let _ = process.kill(); // one that has ended is fine
        }
        if let Some(watcher) = self.watcher.take() {
            let _ = watcher.join();
        }
    }
}

/// Passes on what the process says until it ends.
fn watch(child: &Mutex<process::Child>, pipes: Pipes, stage: usize, said: &Sender<Said>) {
    // Nobody listens any more once the launcher is on its way out.
    let tell = |what| drop(said.send(what));
    thread::scope(|scope| {
        let (stdout, stderr) = pipes;
        if let Some(stderr) = stderr {
            scope.spawn(move || for_each_line(stderr, |text| tell(Said::Line { stage, text })));
        }
        if let Some(stdout) = stdout {
            for_each_line(stdout, |line| {
                tell(match serde_json::from_str(&line) {
                    Ok(event) => Said::Event(event),
                    Err(_) => Said::Nonsense { stage, line },
                });
            });
        }
    });
    let status = child.lock().unwrap_or_else(PoisonError::into_inner).wait();
    tell(Said::Ended { stage, status: status.ok() });
}

fn for_each_line(from: impl Read, mut act: impl FnMut(String)) {
    let mut reader = BufReader::new(from);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
        act(String::from_utf8_lossy(&line).trim_end().to_owned());
        line.clear();
    }
}
