use std::mem;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

use super::Feedback;

/// What the thread is to compute.
type Work = Box<dyn FnOnce() -> Feedback + Send>;

/// A thread that updates a state, one call at a time. It ends with this value.
#[derive(Debug)]
pub(super) struct Worker {
    /// None once it is to end.
    work: Option<SyncSender<Work>>,
    done: Receiver<Feedback>,
    busy: bool,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// Nothing if the system gives no thread.
    pub(super) fn start() -> Option<Self> {
        let (work, orders) = sync_channel::<Work>(1);
        let (results, done) = sync_channel(1);
        let run = move || {
            for work in orders {
                // Nobody waits for the last one where the compensator is gone.
                let _ = results.send(work());
            }
        };
        let thread = Builder::new().name("compensator".to_owned()).spawn(run).ok()?;
        Some(Self { work: Some(work), done, busy: false, thread: Some(thread) })
    }

    /// Begins a computation. The one before it was [finished](Worker::finish).
    pub(super) fn begin(&mut self, work: Work) {
        let orders = self.work.as_ref().expect("open until the worker is dropped");
        orders.send(work).expect("the thread lives as long as this value");
        self.busy = true;
    }

    /// Waits for what was begun, if anything was.
    pub(super) fn finish(&mut self) -> Option<Feedback> {
        mem::take(&mut self.busy).then(|| self.done.recv().expect("arithmetic does not panic"))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.work = None;
        if let Some(thread) = self.thread.take() {
            // Its panic was met in `finish` already.
            let _ = thread.join();
        }
    }
}
