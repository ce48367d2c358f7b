use std::time::Duration;

use thinwire_codec::ErrorStats;

/// What one rank has done since its group began, or since it was last asked to [take stock](crate::Group::take_statistics).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Statistics {
    /// Calls that ended well.
    pub calls: u64,
    /// Values quantized in order to be added up elsewhere.
    pub pushed_values: u64,
    /// Values quantized after they were added up, or were to be gathered.
    pub shared_values: u64,
    /// Bytes handed to other ranks, a sum's once for each of them.
    pub sent_bytes: u64,
    /// All-reduces.
    pub all_reduce: Operation,
    /// Reduce-scatters.
    pub reduce_scatter: Operation,
    /// All-gathers.
    pub all_gather: Operation,
    /// Where the time went.
    pub times: Times,
    /// What quantization did, of calls [with measured errors](crate::Group::measure_errors).
    pub errors: Errors,
}

/// Calls of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Operation {
    /// Calls that ended well.
    pub calls: u64,
    /// Bytes handed to other ranks.
    pub sent_bytes: u64,
}

/// Time a rank has spent in each stage of its calls, without what it waited there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    /// Encoding what others add up.
    pub push: Duration,
    /// Decoding and adding up.
    pub reduce: Duration,
    /// Encoding sums, and decoding them again.
    pub share: Duration,
    /// Decoding the sums of others.
    pub tail: Duration,
    /// Waiting for messages, and copying them.
    pub waiting: Duration,
}

/// What quantization did to a rank's tensors and sums.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Errors {
    /// To the pieces of its contributions that others add up.
    pub pushed: ErrorStats,
    /// To the sums it owns, or the segments that were to be gathered.
    pub shared: ErrorStats,
    /// `sum x^2` of its whole contributions, the segments it owns included: the square of the partial sum's norm.
    pub sq_contribution: f64,
}

impl Statistics {
    /// Adds what `other` has.
    pub fn merge(&mut self, other: &Self) {
        self.calls += other.calls;
        self.pushed_values += other.pushed_values;
        self.shared_values += other.shared_values;
        self.sent_bytes += other.sent_bytes;
        self.all_reduce.merge(other.all_reduce);
        self.reduce_scatter.merge(other.reduce_scatter);
        self.all_gather.merge(other.all_gather);
        self.times.merge(&other.times);
        self.errors.pushed.merge(&other.errors.pushed);
        self.errors.shared.merge(&other.errors.shared);
        self.errors.sq_contribution += other.errors.sq_contribution;
    }
}

impl Operation {
    fn merge(&mut self, other: Self) {
        self.calls += other.calls;
        self.sent_bytes += other.sent_bytes;
    }
}

impl Times {
    fn merge(&mut self, other: &Self) {
        self.push += other.push;
        self.reduce += other.reduce;
        self.share += other.share;
        self.tail += other.tail;
        self.waiting += other.waiting;
    }
}
