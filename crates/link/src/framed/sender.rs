//! The sending half.

use std::{
    io::{self, IoSlice},
    sync::Arc,
    time::Instant,
};

use crate::{
    counters::Counters,
    deadline::Patience,
    error::{FrameName, LinkError},
    frame::{FrameHeader, HEADER_LEN},
    link::FrameSender,
    peer::Peer,
    transport::{Fault, Sink},
};

use super::{Transfer, not_closed};

/// Frames into a sink.
pub(crate) struct FramedSender<S> {
    sink: S,
    peer: Peer,
    counters: Arc<Counters>,
    patience: Patience,
    /// False once a frame stopped half-way: what follows it would not be understood.
    usable: bool,
}

impl<S: Sink> FramedSender<S> {
    pub(crate) fn new(sink: S, peer: Peer, counters: Arc<Counters>, patience: Patience) -> Self {
        Self { sink, peer, counters, patience, usable: true }
    }

    pub(crate) fn set_patience(&mut self, patience: Patience) {
        self.patience = patience;
    }

    fn check_usable(&self, frame: FrameName) -> Result<(), LinkError> {
        if self.usable { Ok(()) } else { Err(LinkError::Unusable { peer: self.peer.clone(), frame }) }
    }

    fn failed(&mut self, transfer: &Transfer, fault: Fault) -> LinkError {
        self.usable = false;
        transfer.failed(&self.peer, fault, |peer, transfer, waited| LinkError::StoppedReading {
            peer,
            frame: transfer.frame,
            waited,
            progress: transfer.progress,
        })
    }
}

impl<S: Sink> FrameSender for FramedSender<S> {
    fn send(&mut self, header: &FrameHeader, payload: &[u8]) -> Result<(), LinkError> {
        let frame = header.name();
        self.check_usable(frame)?;
        let head = header.encode(payload).map_err(|source| LinkError::Frame {
            peer: self.peer.clone(),
            frame,
            source,
        })?;
        let mut transfer = Transfer::start(frame, Some((HEADER_LEN + payload.len()) as u64));
        let parts = &mut [IoSlice::new(&head), IoSlice::new(payload)][..];
        let mut parts = if payload.is_empty() { &mut parts[..1] } else { parts };
        while !parts.is_empty() {
            let sent =
                self.sink.write(parts, self.patience).map_err(|fault| self.failed(&transfer, fault))?;
            transfer.progress.done += sent as u64;
            IoSlice::advance_slices(&mut parts, sent);
        }
        self.counters.sent.count_frame(header.kind, header.payload_len);
        Ok(())
    }

    fn close(&mut self) -> Result<(), LinkError> {
        let start = Instant::now();
        let outcome = if std::mem::replace(&mut self.usable, false) {
            self.sink.close(self.patience)
        } else {
            Err(Fault::Broken(io::ErrorKind::NotConnected.into()))
        };
        outcome.map_err(|fault| not_closed(&self.peer, start, fault))
    }
}
