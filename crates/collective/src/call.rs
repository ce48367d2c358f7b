use std::mem;
use std::time::{Duration, Instant};

use pulp::Arch;
use thinwire_codec::{DecodeError, EncodeError};

use crate::add::Add;
use crate::codecs::Codecs;
use crate::statistics::Times;
use crate::terms::{self, Terms};
use crate::{CollectiveError, Contribution, Part, Segments, Statistics, Transport, Value};

/// One rank's end: what its calls share.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) transport: Box<dyn Transport>,
    pub(crate) codecs: Codecs,
    pub(crate) statistics: Statistics,
    /// Whether what quantization does is measured.
    pub(crate) measures: bool,
    pub(crate) scratch: Scratch,
}

/// Memory that every call uses again.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// What the first message of a call says of it.
    terms: String,
    /// As long as the longest message so far.
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
    /// A tile of the rank's contribution.
    piece: Vec<f32>,
    /// A tile of another rank's.
    decoded: Vec<f32>,
}

/// The stages of one call, each of one tile of all ranks.
///
/// Whatever the kind of call, the first thing that a rank says to each other one is a push that begins with its terms.
pub(crate) struct Call<'a> {
    end: &'a mut End,
    rank: usize,
    ranks: usize,
    codec: usize,
    segments: Segments,
    first_tile: u64,
}

impl<'a> Call<'a> {
    pub(crate) fn begin(end: &'a mut End, of: &Terms<'_>) -> Result<Self, CollectiveError> {
        let (rank, ranks) = (end.transport.rank(), end.transport.ranks());
        let codec = end.codecs.find(of.codec)?;
        of.write(&mut end.scratch.terms);
        Ok(Self { end, rank, ranks, codec, segments: of.segments, first_tile: of.first_tile })
    }

    /// Push: encodes what this rank adds to tile `index` of every other rank's segment and sends it there. Each rank begins with
    /// its successor, so that not all wait for the same one.
    pub(crate) fn push<C: Contribution + ?Sized>(
        &mut self,
        x: &C,
        index: usize,
    ) -> Result<(), CollectiveError> {
        self.timed(
            |times| &mut times.push,
            |call| {
                (1..call.ranks).try_for_each(|step| call.push_to((call.rank + step) % call.ranks, x, index))
            },
        )
    }

    fn push_to<C: Contribution + ?Sized>(
        &mut self,
        to: usize,
        x: &C,
        index: usize,
    ) -> Result<(), CollectiveError> {
        let range = self.segments.tile(to, index);
        let (start, values) = (range.start, range.len());
        let End { transport, codecs, statistics, measures, scratch } = &mut *self.end;
        let Scratch { terms, outgoing, piece, .. } = scratch;
        piece.resize(values, 0.0);
        let x = x.piece(range, piece);
        let begin = if index == 0 { terms::begin(terms, outgoing) } else { 0 };
        let end = codecs
            .encode(self.codec, x, outgoing, begin)
            .map_err(|error| cannot_encode(self.rank, "tensor", start, error))?;
        transport.push(to, self.first_tile + index as u64, &outgoing[..end])?;
        statistics.pushed_values += values as u64;
        statistics.sent_bytes += end as u64;
        if *measures {
            let errors = codecs.measure(self.codec, x, &outgoing[begin..end]);
            let errors = errors.map_err(|source| cannot_decode(self.rank, Part::Push, source))?;
            statistics.errors.pushed.merge(&errors);
            statistics.errors.sq_contribution += errors.sq_signal;
        }
        Ok(())
    }

    /// What stands for the first push in a call without pushes: the terms alone.
    pub(crate) fn greet(&mut self) -> Result<(), CollectiveError> {
        let Scratch { terms, outgoing, .. } = &mut self.end.scratch;
        let end = terms::begin(terms, outgoing);
        for to in others(self.rank, self.ranks) {
            self.end.transport.push(to, self.first_tile, &self.end.scratch.outgoing[..end])?;
            self.end.statistics.sent_bytes += end as u64;
        }
        Ok(())
    }

    /// Waits for everyone's [greeting](Call::greet).
    pub(crate) fn meet(&mut self) -> Result<(), CollectiveError> {
        others(self.rank, self.ranks).try_for_each(|from| self.receive(from, Part::Push, 0).map(|_| ()))
    }

    /// Reduce: `sum`, of the length of tile `index` of this rank's segment, becomes the sum of its own values and those of all
    /// others.
    pub(crate) fn reduce<C: Contribution + ?Sized>(
        &mut self,
        x: &C,
        index: usize,
        sum: &mut [f32],
    ) -> Result<(), CollectiveError> {
        self.timed(
            |times| &mut times.reduce,
            |call| {
                // The first addend is decoded where the sum is to be; a sum of two does not depend on their order.
                let mut others = others(call.rank, call.ranks);
                let first = others.next().expect("a group has two ranks");
                call.decode_push(first, index, sum)?;
                call.add_own(x, index, sum);
                let mut decoded = mem::take(&mut call.end.scratch.decoded);
                decoded.resize(sum.len(), 0.0);
                let added = others.try_for_each(|from| {
                    call.decode_push(from, index, &mut decoded)?;
                    Arch::new().dispatch(Add { sum, addend: &decoded });
                    Ok(())
                });
                call.end.scratch.decoded = decoded;
                added
            },
        )
    }

    fn add_own<C: Contribution + ?Sized>(&mut self, x: &C, index: usize, sum: &mut [f32]) {
        let piece = &mut self.end.scratch.piece;
        piece.resize(sum.len(), 0.0);
        let own = x.piece(self.segments.tile(self.rank, index), piece);
        Arch::new().dispatch(Add { sum, addend: own });
        if self.end.measures {
            let square: f64 = own.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
            self.end.statistics.errors.sq_contribution += square;
        }
    }

    fn decode_push(&mut self, from: usize, index: usize, out: &mut [f32]) -> Result<(), CollectiveError> {
        let begin = self.receive(from, Part::Push, index)?;
        let message = &self.end.scratch.incoming[begin..];
        let decoded = self.end.codecs.decode(self.codec, message, out.into());
        decoded.map_err(|source| cannot_decode(from, Part::Push, source))
    }

    /// Gather: encodes tile `index` of this rank's segment, sends it to all others, and decodes it to `out` as they will.
    pub(crate) fn share<V: Value>(
        &mut self,
        what: &'static str,
        tile: &[f32],
        index: usize,
        out: &mut [V],
    ) -> Result<(), CollectiveError> {
        self.timed(
            |times| &mut times.share,
            |call| {
                let start = call.segments.tile(call.rank, index).start;
                let End { transport, codecs, statistics, measures, scratch } = &mut *call.end;
                let outgoing = &mut scratch.outgoing;
                let encoded = codecs.encode(call.codec, tile, outgoing, 0);
                let end = encoded.map_err(|error| cannot_encode(call.rank, what, start, error))?;
                let message = &outgoing[..end];
                transport.share(call.first_tile + index as u64, message)?;
                statistics.shared_values += tile.len() as u64;
                statistics.sent_bytes += (end * (call.ranks - 1)) as u64;
                let not_decoded = |source| cannot_decode(call.rank, Part::Share, source);
                if *measures {
                    let errors = codecs.measure(call.codec, tile, message).map_err(not_decoded)?;
                    statistics.errors.shared.merge(&errors);
                }
                codecs.decode(call.codec, message, V::view_mut(out)).map_err(not_decoded)
            },
        )
    }

    /// Tail: decodes tile `index` of all other ranks' segments to where it belongs in the whole tensor.
    pub(crate) fn tail<V: Value>(&mut self, index: usize, y: &mut [V]) -> Result<(), CollectiveError> {
        self.timed(
            |times| &mut times.tail,
            |call| {
                others(call.rank, call.ranks).try_for_each(|from| {
                    call.receive(from, Part::Share, index)?;
                    let out = V::view_mut(&mut y[call.segments.tile(from, index)]);
                    let decoded = call.end.codecs.decode(call.codec, &call.end.scratch.incoming, out);
                    decoded.map_err(|source| cannot_decode(from, Part::Share, source))
                })
            },
        )
    }

    /// Waits for a message, and says where the codec's part of it begins.
    fn receive(&mut self, from: usize, part: Part, index: usize) -> Result<usize, CollectiveError> {
        let start = Instant::now();
        let Scratch { terms, incoming, .. } = &mut self.end.scratch;
        let received = self.end.transport.receive(from, part, self.first_tile + index as u64, incoming);
        self.end.statistics.times.waiting += start.elapsed();
        received?;
        if part == Part::Push && index == 0 { terms::check(self.rank, terms, from, incoming) } else { Ok(0) }
    }

    /// Does `work` and counts its time, but for what it waited.
    fn timed<R>(&mut self, stage: fn(&mut Times) -> &mut Duration, work: impl FnOnce(&mut Self) -> R) -> R {
        let (start, waited) = (Instant::now(), self.end.statistics.times.waiting);
        let result = work(self);
        let times = &mut self.end.statistics.times;
        let waited = times.waiting.saturating_sub(waited);
        *stage(times) += start.elapsed().saturating_sub(waited);
        result
    }
}

/// All ranks but `rank`, in order.
fn others(rank: usize, ranks: usize) -> impl Iterator<Item = usize> {
    (0..ranks).filter(move |&other| other != rank)
}

fn cannot_encode(rank: usize, what: &'static str, start: usize, error: EncodeError) -> CollectiveError {
    match error {
        EncodeError::NonFinite { index, value } => {
            CollectiveError::NonFinite { rank, what, index: start + index, value }
        }
        source => CollectiveError::Encode { rank, source: Box::new(source) },
    }
}

fn cannot_decode(rank: usize, part: Part, source: DecodeError) -> CollectiveError {
    CollectiveError::Decode { rank, part, source: Box::new(source) }
}
