use std::mem;

use thinwire_codec::{CodecSpec, Execution};

use crate::call::{Call, End, Scratch};
use crate::codecs::{Codecs, bits_of_group, group_of};
use crate::error::with_causes;
use crate::settings::MESSAGE_BITS;
use crate::terms::{Kind, Terms};
use crate::{CollectiveError, Contribution, Segments, Statistics, Transport, Value};

/// Steps that lie between the first stage of a tile and its last one.
pub const DEPTH: usize = 4;

/// Steps that lie between pushing a tile and adding it up.
const TO_REDUCE: usize = DEPTH / 2;

/// One rank's end of a group of ranks that add up tensors.
///
/// All ranks make the same calls, with tensors of the same length and the same codec, in the same order; the codec may differ from
/// call to call.
#[derive(Debug)]
pub struct Group {
    end: End,
    tile: usize,
    calls: u64,
    /// Tiles of all calls so far.
    tiles: u64,
    /// A tile of this rank's segment in f32, memory that every call uses again.
    sum: Vec<f32>,
    failure: Option<CollectiveError>,
}

impl Group {
    /// The end of the transport's rank. `tile` is the most values of a tile.
    pub fn new(transport: Box<dyn Transport>, tile: usize, execution: Execution) -> Self {
        let codecs = Codecs::new(transport.rank(), execution);
        let (statistics, scratch) = (Statistics::default(), Scratch::default());
        let end = End { transport, codecs, statistics, measures: false, scratch };
        Self { end, tile, calls: 0, tiles: 0, sum: Vec::new(), failure: None }
    }

    /// This rank.
    pub fn rank(&self) -> usize {
        self.end.transport.rank()
    }

    /// How many ranks there are.
    pub fn ranks(&self) -> usize {
        self.end.transport.ranks()
    }

    /// What this rank has done since its group began or since [`Group::take_statistics`].
    pub fn statistics(&self) -> Statistics {
        self.end.statistics
    }

    /// The same, and begins again from nothing: between two calls, what one site of a model has cost.
    pub fn take_statistics(&mut self) -> Statistics {
        mem::take(&mut self.end.statistics)
    }

    /// Whether calls measure what quantization does to tensors and sums, for [`Statistics::errors`]. They take longer then, each
    /// value is decoded once more. Off until this is called; ranks need not agree.
    pub fn measure_errors(&mut self, measures: bool) {
        self.end.measures = measures;
    }

    /// How a call with this codec cuts a tensor of `values` values.
    pub fn segments(&self, codec: &CodecSpec, values: usize) -> Segments {
        let group = group_of(codec).max(1);
        let tile = self.tile.min(MESSAGE_BITS / bits_of_group(codec) * group);
        Segments::new(values, self.ranks(), group, tile)
    }

    /// `y` becomes the sum of all ranks' `x`, the same bits on every rank that has it in the same format.
    ///
    /// # Errors
    /// [`CollectiveError`], after which the group is of no use.
    pub fn all_reduce<C: Contribution + ?Sized, V: Value>(
        &mut self,
        codec: &CodecSpec,
        x: &C,
        y: &mut [V],
    ) -> Result<(), CollectiveError> {
        let (rank, values) = (self.rank(), x.values());
        let mut sum = mem::take(&mut self.sum);
        let result = self.call(Kind::AllReduce, codec, values, |call, segments| {
            check(rank, "output", values, y.len())?;
            let tiles = segments.tiles();
            for step in 0..tiles + DEPTH {
                if let Some(index) = step.checked_sub(DEPTH) {
                    call.tail(index, y)?;
                }
                if step < tiles {
                    call.push(x, step)?;
                }
                if let Some(index) = step.checked_sub(TO_REDUCE).filter(|&index| index < tiles) {
                    let tile = segments.tile(rank, index);
                    sum.resize(tile.len(), 0.0);
                    call.reduce(x, index, &mut sum)?;
                    call.share("sum", &sum, index, &mut y[tile])?;
                }
            }
            Ok(())
        });
        self.sum = sum;
        result
    }

    /// `sum` becomes this rank's [segment](Segments::segment) of the sum of all ranks' `x`. It is not quantized.
    ///
    /// # Errors
    /// As [`Group::all_reduce`].
    pub fn reduce_scatter<C: Contribution + ?Sized>(
        &mut self,
        codec: &CodecSpec,
        x: &C,
        sum: &mut [f32],
    ) -> Result<(), CollectiveError> {
        let rank = self.rank();
        self.call(Kind::ReduceScatter, codec, x.values(), |call, segments| {
            let segment = segments.segment(rank);
            check(rank, "output", segment.len(), sum.len())?;
            let tiles = segments.tiles();
            for step in 0..tiles + DEPTH {
                if let Some(index) = step.checked_sub(DEPTH) {
                    let tile = segments.tile(rank, index);
                    let place = tile.start - segment.start..tile.end - segment.start;
                    call.reduce(x, index, &mut sum[place])?;
                }
                if step < tiles {
                    call.push(x, step)?;
                }
            }
            Ok(())
        })
    }

    /// `y` becomes all ranks' [segments](Segments::segment), one behind the other, the same bits on every rank: `segment`, this
    /// rank's, comes back as the others get it.
    ///
    /// # Errors
    /// As [`Group::all_reduce`].
    pub fn all_gather<V: Value, W: Value>(
        &mut self,
        codec: &CodecSpec,
        segment: &[V],
        y: &mut [W],
    ) -> Result<(), CollectiveError> {
        let rank = self.rank();
        let mut widened = mem::take(&mut self.sum);
        let result = self.call(Kind::AllGather, codec, y.len(), |call, segments| {
            let own = segments.segment(rank);
            check(rank, "segment", own.len(), segment.len())?;
            let tiles = segments.tiles();
            call.greet()?;
            for step in 0..tiles + DEPTH {
                if step == DEPTH {
                    call.meet()?;
                }
                if let Some(index) = step.checked_sub(DEPTH) {
                    call.tail(index, y)?;
                }
                if step < tiles {
                    let tile = segments.tile(rank, step);
                    widened.resize(tile.len(), 0.0);
                    let values =
                        V::widen(&segment[tile.start - own.start..tile.end - own.start], &mut widened);
                    call.share("segment", values, step, &mut y[tile])?;
                }
            }
            Ok(())
        });
        self.sum = widened;
        result
    }

    /// Makes a call of `stages`; its error is the last thing that the other ranks hear from this one.
    fn call(
        &mut self,
        kind: Kind,
        codec: &CodecSpec,
        values: usize,
        stages: impl FnOnce(&mut Call<'_>, Segments) -> Result<(), CollectiveError>,
    ) -> Result<(), CollectiveError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let segments = self.segments(codec, values);
        let (call, first_tile) = (self.calls, self.tiles);
        let terms = Terms { kind, codec, values, segments, call, first_tile };
        let sent_before = self.end.statistics.sent_bytes;
        let result = Call::begin(&mut self.end, &terms).and_then(|mut call| stages(&mut call, segments));
        self.calls += 1;
        self.tiles += segments.tiles() as u64;
        match &result {
            Ok(()) => self.count(kind, sent_before),
            Err(error) => {
                self.end.transport.give_up(first_tile, &with_causes(error));
                self.failure = Some(error.clone());
            }
        }
        result
    }

    fn count(&mut self, kind: Kind, sent_before: u64) {
        let statistics = &mut self.end.statistics;
        statistics.calls += 1;
        let operation = match kind {
            Kind::AllReduce => &mut statistics.all_reduce,
            Kind::ReduceScatter => &mut statistics.reduce_scatter,
            Kind::AllGather => &mut statistics.all_gather,
        };
        operation.calls += 1;
        operation.sent_bytes += statistics.sent_bytes - sent_before;
    }
}

fn check(rank: usize, what: &'static str, expected: usize, got: usize) -> Result<(), CollectiveError> {
    if got == expected { Ok(()) } else { Err(CollectiveError::Length { rank, what, expected, got }) }
}
