//! A link inside one process, with the same framing, checks, deadlines and accounting as over TCP.

mod pipe;
#[cfg(test)]
mod tests;

use std::{io::IoSlice, sync::Arc, time::Instant};

use crate::{
    counters::Counters,
    deadline::Patience,
    error::LinkError,
    framed::{FramedReceiver, FramedSender},
    handshake,
    link::{Link, LinkConfig},
    paced::Paced,
    peer::Peer,
    transport::{Fault, Sink, Source},
};

pub(crate) use pipe::{PipeReader, PipeWriter, pipe};

/// What a direction holds before its sender has to wait, in bytes.
const CAPACITY: usize = 256 * 1024;

/// The longest piece written at once, in bytes.
const PIECE: usize = 64 * 1024;

/// Two ends joined: the first is set up by `first`, the second by `second`.
///
/// # Errors
/// [`LinkError::Hello`] and [`LinkError::Disagreement`], as the first end sees it: the two have to fit together
/// as over a network.
pub fn pair(first: &LinkConfig, second: &LinkConfig) -> Result<(Link, Link), LinkError> {
    let peer = Peer::in_memory(second.hello.stage);
    let malformed = |source| LinkError::Hello { peer: peer.clone(), source };
    first.hello.encode().map_err(malformed)?;
    second.hello.encode().map_err(malformed)?;
    handshake::check(&first.hello, &second.hello, &peer)?;

    let (to_second, from_first) = pipe(CAPACITY);
    let (to_first, from_second) = pipe(CAPACITY);
    Ok((end(first, second, to_second, from_second), end(second, first, to_first, from_first)))
}

fn end(here: &LinkConfig, there: &LinkConfig, out: PipeWriter, input: PipeReader) -> Link {
    let peer = Peer::in_memory(there.hello.stage);
    let counters = Arc::new(Counters::default());
    let patience = Patience::Idle(here.deadlines.progress);
    let sink = MemorySink::new(Paced::new(out, here.rate, Arc::clone(&counters)));
    let source = MemorySource::new(input, Arc::clone(&counters));
    Link {
        sender: Box::new(FramedSender::new(sink, peer.clone(), Arc::clone(&counters), patience)),
        receiver: Box::new(FramedReceiver::new(
            source,
            peer.clone(),
            here.hello.run,
            Arc::clone(&counters),
            patience,
        )),
        peer,
        counters,
    }
}

pub(crate) struct MemorySink {
    out: Paced<PipeWriter>,
}

impl MemorySink {
    pub(crate) fn new(out: Paced<PipeWriter>) -> Self {
        Self { out }
    }
}

impl Sink for MemorySink {
    fn write(&mut self, parts: &[IoSlice<'_>], patience: Patience) -> Result<usize, Fault> {
        let piece = &parts[0][..parts[0].len().min(PIECE)];
        self.out.write_all(piece, patience)?;
        Ok(piece.len())
    }

    fn close(&mut self, _patience: Patience) -> Result<(), Fault> {
        self.out.finish()
    }
}

pub(crate) struct MemorySource {
    input: PipeReader,
    counters: Arc<Counters>,
}

impl MemorySource {
    pub(crate) fn new(input: PipeReader, counters: Arc<Counters>) -> Self {
        Self { input, counters }
    }
}

impl Source for MemorySource {
    fn read(&mut self, buffer: &mut [u8], patience: Patience) -> Result<usize, Fault> {
        let start = Instant::now();
        let outcome = self.input.read_some(buffer, patience);
        self.counters.received.count_blocked(start.elapsed());
        self.counters.received.count_wire(*outcome.as_ref().unwrap_or(&0));
        outcome
    }
}
