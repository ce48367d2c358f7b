//! The one place where bytes leave: held to the rate, and counted.

use std::{sync::Arc, time::Instant};

use crate::{
    counters::Counters,
    deadline::Patience,
    throttle::{Rate, Throttle},
    transport::Fault,
};

/// A byte stream as the operating system or the memory pipe offers it.
pub(crate) trait RawWriter: Send {
    /// Takes at least one byte from the front of `bytes`, which are not empty; returns how many.
    fn write_some(&mut self, bytes: &[u8], patience: Patience) -> Result<usize, Fault>;

    /// Says that no more will come.
    fn finish(&mut self) -> Result<(), Fault>;
}

/// A writer with a throttle and counters.
pub(crate) struct Paced<W> {
    raw: W,
    throttle: Option<Throttle>,
    counters: Arc<Counters>,
}

impl<W: RawWriter> Paced<W> {
    pub(crate) fn new(raw: W, rate: Option<Rate>, counters: Arc<Counters>) -> Self {
        Self { raw, throttle: rate.map(Throttle::new), counters }
    }

    /// Sends all of `bytes`. Time in the throttle does not count as waiting for the peer.
    pub(crate) fn write_all(&mut self, mut bytes: &[u8], patience: Patience) -> Result<(), Fault> {
        while !bytes.is_empty() {
            let mut piece = bytes.len();
            if let Some(throttle) = &mut self.throttle {
                piece = piece.min(throttle.piece());
                self.counters.sent.count_paced(throttle.pay(piece));
            }
            let (now, later) = bytes.split_at(piece);
            self.write_unpaced(now, patience)?;
            bytes = later;
        }
        Ok(())
    }

    /// Says that no more will come.
    pub(crate) fn finish(&mut self) -> Result<(), Fault> {
        self.raw.finish()
    }

    fn write_unpaced(&mut self, mut bytes: &[u8], patience: Patience) -> Result<(), Fault> {
        while !bytes.is_empty() {
            let start = Instant::now();
            let outcome = self.raw.write_some(bytes, patience);
            self.counters.sent.count_blocked(start.elapsed());
            let count = outcome?;
            self.counters.sent.count_wire(count);
            bytes = &bytes[count..];
        }
        Ok(())
    }
}
