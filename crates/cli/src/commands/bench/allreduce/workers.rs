//! Processes that measure, and what they say.

use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long the others have to say why once one has failed.
const GRACE: Duration = Duration::from_secs(2);

/// The longest part of a standard error that is kept, in bytes.
const KEPT: usize = 4096;

/// Why there is nothing to be heard any more.
#[derive(Debug, thiserror::Error)]
pub(super) enum WorkersError {
    #[error("cannot start {name}")]
    Start { name: String, source: io::Error },
    #[error("{name}: {reason}")]
    Failed { name: String, reason: String },
    #[error("{name} said what cannot be understood: {line}")]
    Nonsense { name: String, line: String },
    #[error("{} said nothing for {:.0} s", .names.join(", "), .patience.as_secs_f64())]
    Silent { names: Vec<String>, patience: Duration },
}

/// A process to be started.
pub(super) struct Start {
    pub(super) name: String,
    pub(super) command: Command,
    /// A line that it is told first.
    pub(super) order: Option<String>,
}

/// Processes that end with this value at the latest.
pub(super) struct Workers {
    workers: Vec<Worker>,
    said: Receiver<(usize, Option<String>)>,
}

struct Worker {
    name: String,
    process: Child,
    /// Held open: a worker ends itself when this closes, even if this process is killed.
    stdin: Option<ChildStdin>,
    errors: Option<JoinHandle<String>>,
    /// How it ended.
    ended: Option<Ended>,
}

struct Ended {
    well: bool,
    how: String,
}

impl Workers {
    /// Starts them all.
    pub(super) fn start(all: impl IntoIterator<Item = Start>) -> Result<Self, WorkersError> {
        let (sender, said) = channel();
        let mut workers = Self { workers: Vec::new(), said };
        for (index, Start { name, command, order }) in all.into_iter().enumerate() {
            workers.workers.push(Worker::start(name, command, index, sender.clone())?);
            if let Some(order) = order {
                workers.tell(index, &order);
            }
        }
        Ok(workers)
    }

    /// Writes a line to a worker's standard input. One that has ended is heard of by [`Workers::next`].
    pub(super) fn tell(&mut self, worker: usize, line: &str) {
        if let Some(stdin) = &mut self.workers[worker].stdin {
            let _ = writeln!(stdin, "{line}").and_then(|()| stdin.flush());
        }
    }

    /// The next line that one of them says, or `None` when all have ended well.
    ///
    /// # Errors
    /// One failed, be it that it was killed: the one that the others failed because of. Or all are silent for longer than `patience`.
    pub(super) fn next(&mut self, patience: Duration) -> Result<Option<(usize, String)>, WorkersError> {
        while self.workers.iter().any(|worker| worker.ended.is_none()) {
            match self.said.recv_timeout(patience) {
                Ok((index, Some(line))) => match failure(&line) {
                    Some(reason) => return Err(self.cause(index, Some(reason))),
                    None => return Ok(Some((index, line))),
                },
                Ok((index, None)) => {
                    if !self.workers[index].end() {
                        return Err(self.cause(index, None));
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    let silent = self.workers.iter().filter(|worker| worker.ended.is_none());
                    return Err(WorkersError::Silent {
                        names: silent.map(|worker| worker.name.clone()).collect(),
                        patience,
                    });
                }
            }
        }
        Ok(None)
    }

    /// A line that a worker should not have said.
    pub(super) fn nonsense(&self, worker: usize, line: &str) -> WorkersError {
        let name = self.workers[worker].name.clone();
        WorkersError::Nonsense { name, line: line.chars().take(200).collect() }
    }

    /// Listens for a while to what the others say of it, and tells who it began with: one that was killed could not tell; otherwise
    /// the first whose error is not about another rank.
    fn cause(&mut self, index: usize, reason: Option<String>) -> WorkersError {
        let mut told: Vec<(usize, String)> = reason.map(|reason| (index, reason)).into_iter().collect();
        let end = Instant::now() + GRACE;
        while self.workers.iter().any(|worker| worker.ended.is_none())
            && let Ok((index, said)) = self.said.recv_timeout(end.saturating_duration_since(Instant::now()))
        {
            match said.as_deref().map(failure) {
                Some(Some(reason)) => told.push((index, reason)),
                Some(None) => {}
                None => drop(self.workers[index].end()),
            }
        }
        let silent = self.workers.iter().enumerate().find_map(|(index, worker)| {
            let ended = worker.ended.as_ref().filter(|ended| !ended.well)?;
            (!told.iter().any(|(teller, _)| *teller == index)).then(|| (index, ended.how.clone()))
        });
        let own = told.iter().find(|(_, reason)| !speaks_of_another(reason)).or(told.first());
        let (index, reason) =
            silent.or_else(|| own.cloned()).unwrap_or_else(|| (index, "it ended".to_owned()));
        WorkersError::Failed { name: self.workers[index].name.clone(), reason }
    }
}

/// The reason in a line that tells of a failure.
fn failure(line: &str) -> Option<String> {
    let said: serde_json::Value = serde_json::from_str(line).ok()?;
    Some(said.get("failed")?.as_str()?.to_owned())
}

fn speaks_of_another(reason: &str) -> bool {
    let said = [" gave up: ", "the link with rank ", " has left the group", "the process of rank "];
    said.iter().any(|said| reason.contains(said))
}

impl Worker {
    fn start(
        name: String,
        mut command: Command,
        index: usize,
        said: Sender<(usize, Option<String>)>,
    ) -> Result<Self, WorkersError> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = match command.spawn() {
            Ok(process) => process,
            Err(source) => return Err(WorkersError::Start { name, source }),
        };
        let (stdin, stdout, stderr) = (process.stdin.take(), process.stdout.take(), process.stderr.take());
        thread::spawn(move || {
            for line in
                stdout.into_iter().flat_map(|stdout| BufReader::new(stdout).lines()).map_while(Result::ok)
            {
                // Nobody listens any more once one has failed.
                let _ = said.send((index, Some(line)));
            }
            let _ = said.send((index, None));
        });
        let errors = stderr.map(|stderr| thread::spawn(move || tail(stderr)));
        Ok(Self { name, process, stdin, errors, ended: None })
    }

    /// Waits for the end of a process that has closed its output; whether it was a good one.
    fn end(&mut self) -> bool {
        let status = self.process.wait().ok();
        let well = status.is_some_and(|status| status.success());
        let errors = self.errors.take().and_then(|errors| errors.join().ok()).unwrap_or_default();
        self.ended = Some(Ended { well, how: how(status, &errors) });
        well
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.process.kill(); // one that has ended is fine
        let _ = self.process.wait();
    }
}

/// How a process ended, and the last that it said of it.
fn how(status: Option<ExitStatus>, errors: &str) -> String {
    let status =
        status.map_or_else(|| "its process is gone".to_owned(), |s| format!("its process ended with {s}"));
    let lines = errors.lines().map(str::trim).filter(|line| line.chars().any(char::is_alphanumeric));
    let mut last: Vec<&str> = lines.rev().take(3).collect();
    last.reverse();
    if last.is_empty() { status } else { format!("{status}: {}", last.join(" / ")) }
}

/// The end of what comes until there is no more.
fn tail(mut from: impl Read) -> String {
    let (mut kept, mut piece) = (Vec::new(), [0; KEPT]);
    while let Ok(read @ 1..) = from.read(&mut piece) {
        kept.extend(&piece[..read]);
        kept.drain(..kept.len().saturating_sub(KEPT));
    }
    String::from_utf8_lossy(&kept).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_mins(1);

    fn start(scripts: &[&str]) -> Workers {
        let all = scripts.iter().enumerate().map(|(rank, script)| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            Start { name: format!("rank {rank}"), command, order: None }
        });
        Workers::start(all).unwrap()
    }

    fn to_the_end(scripts: &[&str]) -> Result<Vec<(usize, String)>, String> {
        let mut workers = start(scripts);
        let mut lines = Vec::new();
        loop {
            match workers.next(PATIENCE) {
                Ok(Some(line)) => lines.push(line),
                Ok(None) => return Ok(lines),
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    #[test]
    fn lines_come_until_all_have_ended() {
        let mut lines = to_the_end(&["echo a; echo b", "echo c", "true"]).unwrap();
        lines.sort();
        assert_eq!(lines, [(0, "a".into()), (0, "b".into()), (1, "c".into())]);
    }

    #[test]
    fn the_one_that_it_began_with_is_named() {
        let gone = r#"echo '{"failed":"the link with rank 1 failed: vanished"}'; exit 1"#;
        let told = r#"sleep 0.1; echo '{"failed":"the disk is full"}'; exit 1"#;
        for (scripts, expected) in [
            (
                [gone, "sleep 0.2; kill -9 $$", "exec sleep 100"],
                "rank 1: its process ended with signal: 9 (SIGKILL)",
            ),
            ([gone, told, gone], "rank 1: the disk is full"),
            (["exit 3", "exec sleep 100", "exec sleep 100"], "rank 0: its process ended with exit status: 3"),
            (
                ["echo a >&2; echo - >&2; exit 1", gone, gone],
                "rank 0: its process ended with exit status: 1: a",
            ),
        ] {
            assert_eq!(to_the_end(&scripts).unwrap_err(), expected);
        }
    }

    #[test]
    fn those_that_say_nothing_are_named() {
        let mut workers = start(&["exit 0", "exec sleep 100"]);
        let error = workers.next(Duration::from_millis(300)).unwrap_err();
        assert_eq!(error.to_string(), "rank 1 said nothing for 0 s");
    }

    #[test]
    fn what_they_are_told_arrives_and_they_end_with_their_input() {
        let mut workers = start(&["read line; echo got $line; cat > /dev/null"]);
        workers.tell(0, "it");
        assert_eq!(workers.next(PATIENCE).unwrap(), Some((0, "got it".to_owned())));
        workers.workers[0].stdin = None;
        assert!(workers.next(PATIENCE).unwrap().is_none());
    }
}
