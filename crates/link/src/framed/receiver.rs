//! The receiving half.

use std::{sync::Arc, time::Instant};

use crate::{
    counters::Counters,
    deadline::Patience,
    error::{FrameName, LinkError},
    frame::{FrameError, FrameHeader, HEADER_LEN, PREFIX_LEN, WireHeader, check_payload, check_prefix},
    kind::FrameKind,
    link::{FrameReceiver, LONGEST_REASON, WaitingFor},
    peer::Peer,
    run_id::RunId,
    text,
    transport::{Fault, Source},
};

use super::{Transfer, not_closed};

/// How much the payload's buffer grows ahead of what has come, in bytes.
const GROWTH: usize = 1024 * 1024;

/// Frames out of a source.
pub(crate) struct FramedReceiver<S> {
    source: S,
    peer: Peer,
    run: RunId,
    counters: Arc<Counters>,
    patience: Patience,
    /// False once the stream ended, or a frame stopped half-way and the next one's start is not known.
    usable: bool,
}

impl<S: Source> FramedReceiver<S> {
    pub(crate) fn new(
        source: S,
        peer: Peer,
        run: RunId,
        counters: Arc<Counters>,
        patience: Patience,
    ) -> Self {
        Self { source, peer, run, counters, patience, usable: true }
    }

    pub(crate) fn peer(&self) -> &Peer {
        &self.peer
    }

    pub(crate) fn set_patience(&mut self, patience: Patience) {
        self.patience = patience;
    }

    /// Receives a frame of any run.
    pub(crate) fn receive_any(
        &mut self,
        waiting_for: &WaitingFor,
        payload: &mut Vec<u8>,
    ) -> Result<FrameHeader, LinkError> {
        let mut transfer = Transfer::start(waiting_for.frame, None);
        let outcome = self.receive_frame(waiting_for, &mut transfer, payload);
        if let Err(error) = &outcome {
            payload.clear();
            self.usable &= matches!(error, LinkError::Silent { progress, .. } if progress.done == 0);
        }
        outcome
    }

    fn receive_frame(
        &mut self,
        waiting_for: &WaitingFor,
        transfer: &mut Transfer,
        payload: &mut Vec<u8>,
    ) -> Result<FrameHeader, LinkError> {
        if !self.usable {
            return Err(LinkError::Unusable { peer: self.peer.clone(), frame: waiting_for.frame });
        }
        let wire = self.receive_header(transfer)?;
        let header = wire.header;
        let limit = match header.kind {
            FrameKind::Abort => LONGEST_REASON as u64,
            _ => waiting_for.longest_payload,
        };
        let length = match usize::try_from(header.payload_len) {
            Ok(length) if header.payload_len <= limit => length,
            _ => {
                let error = FrameError::PayloadTooLong { length: header.payload_len, limit };
                return Err(self.malformed(transfer.frame, error));
            }
        };
        transfer.progress.of = Some((HEADER_LEN + length) as u64);
        self.receive_payload(transfer, length, payload)?;
        check_payload(&wire, payload).map_err(|error| self.malformed(transfer.frame, error))?;
        self.counters.received.count_frame(header.kind, header.payload_len);
        Ok(header)
    }

    fn receive_header(&mut self, transfer: &mut Transfer) -> Result<WireHeader, LinkError> {
        let mut bytes = [0; HEADER_LEN];
        let (prefix, rest) = bytes.split_at_mut(PREFIX_LEN);
        self.fill(transfer, prefix)?;
        // Another version may have a shorter header: it is refused before more is awaited.
        let prefix = (&*prefix).try_into().expect("split at PREFIX_LEN");
        check_prefix(prefix).map_err(|error| self.malformed(transfer.frame, error))?;
        self.fill(transfer, rest)?;
        WireHeader::parse(&bytes).map_err(|error| self.malformed(transfer.frame, error))
    }

    fn receive_payload(
        &mut self,
        transfer: &mut Transfer,
        length: usize,
        payload: &mut Vec<u8>,
    ) -> Result<(), LinkError> {
        payload.truncate(length);
        let mut filled = 0;
        while filled < length {
            // Memory of earlier frames first; beyond it, only as much as the bytes that come justify.
            let end = if filled < payload.len() { payload.len() } else { length.min(filled + GROWTH) };
            payload.resize(end, 0);
            self.fill(transfer, &mut payload[filled..end])?;
            filled = end;
        }
        Ok(())
    }

    fn fill(&mut self, transfer: &mut Transfer, mut buffer: &mut [u8]) -> Result<(), LinkError> {
        while !buffer.is_empty() {
            let count =
                self.source.read(buffer, self.patience).map_err(|fault| self.failed(transfer, fault))?;
            transfer.progress.done += count as u64;
            buffer = &mut buffer[count..];
        }
        Ok(())
    }

    fn malformed(&self, frame: FrameName, source: FrameError) -> LinkError {
        LinkError::Frame { peer: self.peer.clone(), frame, source }
    }

    fn failed(&self, transfer: &Transfer, fault: Fault) -> LinkError {
        transfer.failed(&self.peer, fault, |peer, transfer, waited| LinkError::Silent {
            peer,
            frame: transfer.frame,
            waited,
            progress: transfer.progress,
        })
    }
}

impl<S: Source> FrameReceiver for FramedReceiver<S> {
    fn receive(&mut self, waiting_for: &WaitingFor, payload: &mut Vec<u8>) -> Result<FrameHeader, LinkError> {
        let header = self.receive_any(waiting_for, payload)?;
        let peer = self.peer.clone();
        let error = if header.run != self.run {
            LinkError::OtherRun { peer, frame: waiting_for.frame, ours: self.run, found: header.run }
        } else if header.kind == FrameKind::Abort {
            let reason = text::printable(&String::from_utf8_lossy(payload), LONGEST_REASON);
            LinkError::PeerAborted { peer, reason }
        } else {
            return Ok(header);
        };
        payload.clear();
        self.usable = false;
        Err(error)
    }

    fn wait_for_close(&mut self) -> Result<(), LinkError> {
        let start = Instant::now();
        // A peer that goes on sending must not keep us here.
        let patience = Patience::until(self.patience.allowance());
        let mut dropped = [0; 4096];
        loop {
            match self.source.read(&mut dropped, patience) {
                Ok(_) => {}
                Err(Fault::Closed) => return Ok(()),
                Err(fault) => return Err(not_closed(&self.peer, start, fault)),
            }
        }
    }
}
