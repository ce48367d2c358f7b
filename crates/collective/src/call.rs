use std::fmt::Write;

use thinwire_codec::{CodecSpec, DecodeError, EncodeError};

use crate::codecs::Codecs;
use crate::{CollectiveError, Contribution, Part, Segments, Statistics, Transport};

/// One rank's end: what its calls share.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) transport: Box<dyn Transport>,
    pub(crate) codecs: Codecs,
    pub(crate) statistics: Statistics,
    pub(crate) scratch: Scratch,
}

/// Memory that every call uses again.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// What the first message of a call says of it.
    terms: String,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
    /// A tile of the rank's contribution.
    piece: Vec<f32>,
    /// A tile of another rank's.
    decoded: Vec<f32>,
}

/// What all ranks must agree on, and where this call is among the group's.
pub(crate) struct Terms<'a> {
    /// `all-reduce`, `reduce-scatter` or `all-gather`.
    pub(crate) operation: &'a str,
    pub(crate) codec: &'a CodecSpec,
    pub(crate) values: usize,
    pub(crate) segments: Segments,
    /// Calls before it.
    pub(crate) call: u64,
    /// Tiles before it.
    pub(crate) first_tile: u64,
}

/// The most bytes of terms that are sent and compared.
pub(crate) const LONGEST_TERMS: usize = 256;

/// The stages of one call, each of one tile of all ranks.
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
        let terms = &mut end.scratch.terms;
        terms.clear();
        let Terms { operation, codec: spec, values, segments, call, .. } = of;
        let tile = segments.tile_values();
        write!(terms, "call {call}: {operation} of {values} values by {spec} in tiles of {tile}")
            .expect("a string takes any text");
        terms.truncate(LONGEST_TERMS); // a codec's numbers may have any number of digits, all of them ASCII
        Ok(Self { end, rank, ranks, codec, segments: *segments, first_tile: of.first_tile })
    }

    /// Push: encodes what this rank adds to tile `index` of every other rank's segment and sends it there. Each rank begins with
    /// its successor, so that not all wait for the same one.
    pub(crate) fn push<C: Contribution + ?Sized>(
        &mut self,
        x: &C,
        index: usize,
    ) -> Result<(), CollectiveError> {
        for step in 1..self.ranks {
            let to = (self.rank + step) % self.ranks;
            let range = self.segments.tile(to, index);
            let (start, values) = (range.start, range.len());
            let Scratch { terms, outgoing, piece, .. } = &mut self.end.scratch;
            piece.resize(values, 0.0);
            begin_message(index, terms, outgoing);
            let encoded = self.end.codecs.encode(self.codec, x.piece(range, piece), outgoing);
            encoded.map_err(|error| cannot_encode(self.rank, "tensor", start, error))?;
            self.end.transport.push(to, self.first_tile + index as u64, outgoing)?;
            self.end.statistics.pushed_values += values as u64;
            self.end.statistics.sent_bytes += outgoing.len() as u64;
        }
        Ok(())
    }

    /// Reduce: `sum`, of the length of tile `index` of this rank's segment, becomes the sum of its own values and those of all
    /// others.
    pub(crate) fn reduce<C: Contribution + ?Sized>(
        &mut self,
        x: &C,
        index: usize,
        sum: &mut [f32],
    ) -> Result<(), CollectiveError> {
        let piece = &mut self.end.scratch.piece;
        piece.resize(sum.len(), 0.0);
        sum.copy_from_slice(x.piece(self.segments.tile(self.rank, index), piece));
        for from in others(self.rank, self.ranks) {
            let mut decoded = std::mem::take(&mut self.end.scratch.decoded);
            decoded.resize(sum.len(), 0.0);
            let received = self.receive(from, Part::Push, index, &mut decoded);
            if received.is_ok() {
                for (sum, addend) in sum.iter_mut().zip(&decoded) {
                    *sum += addend;
                }
            }
            self.end.scratch.decoded = decoded;
            received?;
        }
        Ok(())
    }

    /// Gather: encodes tile `index` of this rank's segment, sends it to all others, and decodes it to `out` as they will.
    pub(crate) fn share(
        &mut self,
        what: &'static str,
        tile: &[f32],
        index: usize,
        out: &mut [f32],
    ) -> Result<(), CollectiveError> {
        let start = self.segments.tile(self.rank, index).start;
        let Scratch { terms, outgoing, .. } = &mut self.end.scratch;
        let begin = begin_message(index, terms, outgoing);
        let encoded = self.end.codecs.encode(self.codec, tile, outgoing);
        encoded.map_err(|error| cannot_encode(self.rank, what, start, error))?;
        self.end.transport.share(self.first_tile + index as u64, outgoing)?;
        self.end.statistics.shared_values += tile.len() as u64;
        self.end.statistics.sent_bytes += (outgoing.len() * (self.ranks - 1)) as u64;
        let decoded = self.end.codecs.decode(self.codec, &outgoing[begin..], out);
        decoded.map_err(|source| cannot_decode(self.rank, Part::Share, source))
    }

    /// Tail: decodes tile `index` of all other ranks' segments to where it belongs in the whole tensor.
    pub(crate) fn tail(&mut self, index: usize, y: &mut [f32]) -> Result<(), CollectiveError> {
        for from in others(self.rank, self.ranks) {
            self.receive(from, Part::Share, index, &mut y[self.segments.tile(from, index)])?;
        }
        Ok(())
    }

    fn receive(
        &mut self,
        from: usize,
        part: Part,
        index: usize,
        out: &mut [f32],
    ) -> Result<(), CollectiveError> {
        let Scratch { terms, incoming, .. } = &mut self.end.scratch;
        self.end.transport.receive(from, part, self.first_tile + index as u64, incoming)?;
        let message = if index == 0 { payload(self.rank, terms, from, incoming)? } else { incoming };
        let decoded = self.end.codecs.decode(self.codec, message, out);
        decoded.map_err(|source| cannot_decode(from, part, source))
    }
}

/// The part of a call's first message behind its terms, which must be those of `rank`, this one.
fn payload<'m>(rank: usize, ours: &str, from: usize, message: &'m [u8]) -> Result<&'m [u8], CollectiveError> {
    let split = message
        .split_first_chunk()
        .and_then(|(&length, rest)| rest.split_at_checked(u16::from_le_bytes(length).into()));
    let (theirs, payload) = split.unwrap_or((message, &[]));
    if theirs == ours.as_bytes() {
        return Ok(payload);
    }
    let theirs = String::from_utf8_lossy(&theirs[..theirs.len().min(LONGEST_TERMS)]).into_owned();
    Err(CollectiveError::Mismatch { rank: from, theirs, by: rank, ours: ours.to_owned() })
}

/// All ranks but `rank`, in order.
fn others(rank: usize, ranks: usize) -> impl Iterator<Item = usize> {
    (0..ranks).filter(move |&other| other != rank)
}

/// Leaves in `message` what is in front of the codec's part, and returns its length.
fn begin_message(index: usize, terms: &str, message: &mut Vec<u8>) -> usize {
    message.clear();
    if index == 0 {
        message.extend((terms.len() as u16).to_le_bytes());
        message.extend(terms.as_bytes());
    }
    message.len()
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
