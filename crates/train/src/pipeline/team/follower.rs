//! A rank that does on a thread of its own what it is asked to.

use std::any::Any;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use super::Member;

type Job = Box<dyn FnOnce(&mut Member) + Send>;

/// A rank on its thread. It ends with this value, after the jobs it was given.
#[derive(Debug)]
pub(super) struct Follower {
    /// `None` once there are no more.
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    /// What its panic said.
    reason: String,
}

impl Follower {
    pub(super) fn start(mut member: Member) -> Self {
        let (jobs, received) = channel::<Job>();
        let thread = thread::spawn(move || received.into_iter().for_each(|job| job(&mut member)));
        Self { jobs: Some(jobs), thread: Some(thread), reason: String::new() }
    }

    /// Hands over a job. What it gives comes through the receiver, or nothing if the rank has ended.
    pub(super) fn ask<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Member) -> T + Send + 'static,
    ) -> Receiver<T> {
        let (reply, answer) = channel();
        let job = Box::new(move |member: &mut Member| {
            // Whoever asked may have ended.
            let _ = reply.send(job(member));
        });
        if let Some(jobs) = &self.jobs {
            // A rank that has ended drops the job, and with it the way for the answer.
            let _ = jobs.send(job);
        }
        answer
    }

    /// Ends the rank; what it said if it had ended by a panic.
    pub(super) fn end(&mut self) -> &str {
        self.jobs = None;
        if let Some(Err(payload)) = self.thread.take().map(JoinHandle::join) {
            self.reason = reason(&*payload);
        }
        &self.reason
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.end();
    }
}

/// What a panic said.
fn reason(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no reason").to_owned()
}
