//! A bounded stream of bytes between two threads that behaves as a socket does.

use std::{
    collections::VecDeque,
    io::{self, Read as _},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
};

use crate::{deadline::Patience, paced::RawWriter, transport::Fault};

struct Pipe {
    state: Mutex<State>,
    changed: Condvar,
    capacity: usize,
}

struct State {
    bytes: VecDeque<u8>,
    writer: End,
    reader: End,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Open,
    Finished,
    Dropped,
}

pub(crate) struct PipeWriter(Arc<Pipe>);
pub(crate) struct PipeReader(Arc<Pipe>);

/// A pipe that holds at most `capacity` bytes.
pub(crate) fn pipe(capacity: usize) -> (PipeWriter, PipeReader) {
    let state = State { bytes: VecDeque::with_capacity(capacity), writer: End::Open, reader: End::Open };
    let pipe = Arc::new(Pipe { state: Mutex::new(state), changed: Condvar::new(), capacity });
    (PipeWriter(Arc::clone(&pipe)), PipeReader(pipe))
}

impl Pipe {
    /// A panic of the other thread leaves the bytes as they are, and its end is dropped.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while `blocked`, then lets `act` change the state.
    fn when<T>(
        &self,
        patience: Patience,
        blocked: impl Fn(&State) -> bool,
        act: impl FnOnce(&mut State) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let allowance = patience.allowance();
        let (mut state, timeout) = self
            .changed
            .wait_timeout_while(self.lock(), allowance, |state| blocked(state))
            .unwrap_or_else(PoisonError::into_inner);
        if timeout.timed_out() {
            return Err(Fault::Idle(allowance));
        }
        let outcome = act(&mut state);
        self.changed.notify_all();
        outcome
    }
}

impl RawWriter for PipeWriter {
    fn write_some(&mut self, bytes: &[u8], patience: Patience) -> Result<usize, Fault> {
        let capacity = self.0.capacity;
        let full = |state: &State| state.reader == End::Open && state.bytes.len() == capacity;
        self.0.when(patience, full, |state| {
            if state.reader != End::Open {
                return Err(Fault::Broken(io::ErrorKind::BrokenPipe.into()));
            }
            let count = bytes.len().min(capacity - state.bytes.len());
            state.bytes.extend(&bytes[..count]);
            Ok(count)
        })
    }

    fn finish(&mut self) -> Result<(), Fault> {
        self.0.lock().writer = End::Finished;
        self.0.changed.notify_all();
        Ok(())
    }
}

impl PipeReader {
    /// As [`Source::read`](crate::transport::Source::read).
    pub(crate) fn read_some(&mut self, buffer: &mut [u8], patience: Patience) -> Result<usize, Fault> {
        let empty = |state: &State| state.bytes.is_empty() && state.writer == End::Open;
        self.0.when(patience, empty, |state| match (state.bytes.is_empty(), state.writer) {
            (true, End::Finished) => Err(Fault::Closed),
            (true, _) => Err(Fault::Vanished),
            (false, _) => state.bytes.read(buffer).map_err(Fault::from),
        })
    }
}

impl Drop for PipeWriter {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        if state.writer == End::Open {
            state.writer = End::Dropped;
        }
        self.0.changed.notify_all();
    }
}

impl Drop for PipeReader {
    fn drop(&mut self) {
        self.0.lock().reader = End::Dropped;
        self.0.changed.notify_all();
    }
}
