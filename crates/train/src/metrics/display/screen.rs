//! The thread that writes: whoever does not read what is shown holds up nobody else.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use super::Progress;

/// What may wait to be shown; more of it is dropped.
const QUEUE: usize = 256;

/// How long the end of a run waits for its last lines.
const PATIENCE: Duration = Duration::from_secs(1);

/// Draws what it is given.
pub(super) trait Draw {
    /// Where the run stands.
    fn update(&mut self, progress: &Progress);

    /// A line of its own.
    fn note(&mut self, line: &str);

    /// The last state, which stays.
    fn finish(&mut self, progress: &Progress);
}

enum Message {
    Update(Progress),
    Note(String),
    Finish(Progress),
}

/// The way to a [`Draw`] on a thread of its own. Nothing here waits for it, but the end, for a moment.
#[derive(Debug)]
pub(super) struct Screen {
    messages: SyncSender<Message>,
    finished: Receiver<()>,
}

impl Screen {
    /// `start` makes the display, on its thread.
    pub(super) fn new<D: Draw>(start: impl FnOnce() -> D + Send + 'static) -> Self {
        let (messages, received) = sync_channel(QUEUE);
        let (done, finished) = sync_channel(1);
        // Not joined: one that waits for its reader ends with the process.
        thread::spawn(move || {
            let mut display = start();
            for message in received {
                match message {
                    Message::Update(progress) => display.update(&progress),
                    Message::Note(line) => display.note(&line),
                    Message::Finish(progress) => {
                        display.finish(&progress);
                        let _ = done.try_send(()); // whoever asked may have lost patience
                    }
                }
            }
        });
        Self { messages, finished }
    }

    /// Shows where the run stands, unless too much waits already.
    pub(super) fn update(&self, progress: &Progress) {
        let _ = self.messages.try_send(Message::Update(progress.clone()));
    }

    /// Shows a line, unless too much waits already.
    pub(super) fn note(&self, line: String) {
        let _ = self.messages.try_send(Message::Note(line));
    }

    /// Leaves the last state on the screen, if it can be shown in time.
    pub(super) fn finish(&self, progress: &Progress) {
        let end = Instant::now() + PATIENCE;
        let mut message = Message::Finish(progress.clone());
        while let Err(TrySendError::Full(back)) = self.messages.try_send(message) {
            if Instant::now() >= end {
                return;
            }
            message = back;
            thread::sleep(Duration::from_millis(5));
        }
        let _ = self.finished.recv_timeout(end.saturating_duration_since(Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    /// Passes lines on once it may.
    struct Slow {
        may: Receiver<()>,
        lines: Sender<String>,
    }

    impl Draw for Slow {
        fn update(&mut self, _: &Progress) {}

        fn note(&mut self, line: &str) {
            let _ = self.may.recv();
            let _ = self.lines.send(line.to_owned());
        }

        fn finish(&mut self, _: &Progress) {
            let _ = self.lines.send("end".to_owned());
        }
    }

    #[test]
    fn lines_that_nobody_reads_are_dropped_and_the_end_does_not_wait_for_them() {
        let (may, allowed) = channel();
        let (lines, shown) = channel();
        let screen = Screen::new(move || Slow { may: allowed, lines });
        let begin = Instant::now();
        for line in 0..10 * QUEUE {
            screen.note(line.to_string());
        }
        assert!(begin.elapsed() < PATIENCE);
        screen.finish(&Progress::default());
        let took = begin.elapsed();
        assert!(took >= PATIENCE && took < 5 * PATIENCE, "{took:?}");

        drop(may); // now it reads
        screen.finish(&Progress::default());
        drop(screen);
        let lines: Vec<String> = shown.iter().collect();
        assert!(lines.len() >= QUEUE && lines.len() <= QUEUE + 2, "{}", lines.len());
        assert_eq!((lines[0].as_str(), lines.last().unwrap().as_str()), ("0", "end"));
    }
}
