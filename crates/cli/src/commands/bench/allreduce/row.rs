//! What a case came to.

use serde::Serialize;
use thinwire_collective::Coefficients;
use thinwire_lab::network::Shape;
use thinwire_train::config::{Bandwidth, ByteSize};

use super::case::{Case, Compensation};
use super::measure::{Deviation, Measured};
use super::medium::Medium;
use super::peers::{PeerCase, PeerName};
use super::report::By;

/// The shortest time, in seconds, in which the kernel counts finely enough how busy the machine is.
const LEAST_BUSY: f64 = 0.25;

/// One line of the table. Times are seconds, sizes bytes.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) medium: Medium,
    pub(super) rate: Option<Bandwidth>,
    pub(super) ranks: usize,
    /// Of a rank's tensor in f32.
    pub(super) bytes: u64,
    pub(super) values: usize,
    pub(super) by: By,
    pub(super) wire: String,
    #[serde(skip)]
    pub(super) label: String,
    pub(super) compensation: Compensation,
    /// Of each call, on the slowest rank.
    pub(super) seconds: Vec<f64>,
    pub(super) median_seconds: f64,
    pub(super) min_seconds: f64,
    /// `bytes` by the median.
    pub(super) bytes_per_second: f64,
    /// The median of Thinwire's bf16 by this one's.
    pub(super) speed_over_bf16: Option<f64>,
    /// The median of the updates that follow the calls.
    pub(super) update_seconds: Option<f64>,
    /// Sent in a call, by the rank that sends most.
    pub(super) sent_bytes: Option<u64>,
    /// What these take on a link of this rate.
    pub(super) link_seconds: Option<f64>,
    /// Cores of the machine that were busy during the calls; `None` if those were too short to tell.
    pub(super) busy_cores: Option<f64>,
    /// A hash of the last call's result: equal if all bits are.
    pub(super) digest: Option<String>,
    pub(super) relative_error: Option<f64>,
    /// Of the first call, whose error is bounded by `allowed_error`.
    pub(super) largest_error: Option<f64>,
    pub(super) allowed_error: Option<f64>,
}

/// A result that is not what it has to be.
#[derive(Debug, thiserror::Error)]
pub(super) enum WrongResult {
    #[error("rank {rank} has another result than rank 0: {of}")]
    Differs { rank: usize, of: String },
    #[error("a value of the {which} call's result is {error} off, which may be {allowed}: {of}")]
    TooFar { which: &'static str, error: f64, allowed: f64, of: String },
}

impl Row {
    /// Of Thinwire, as all ranks measured it.
    ///
    /// # Errors
    /// The ranks do not agree, or the result is further from the exact sum than rounding explains.
    pub(super) fn of_case(medium: Medium, case: &Case, ranks: &[Measured]) -> Result<Self, WrongResult> {
        let Case { values, wire, compensation } = *case;
        let of = format!(
            "{}, {}, compensation {}",
            ByteSize(4 * values as u64),
            wire.label(),
            compensation.name()
        );
        if let Some(other) = ranks.iter().find(|rank| rank.digest != ranks[0].digest) {
            return Err(WrongResult::Differs { rank: other.rank, of });
        }
        let allowed_error = allowed_error(case, ranks, &of)?;
        let mut row = Self::new(medium, values, ranks);
        row.wire = wire.to_string();
        row.label = wire.label();
        row.compensation = compensation;
        let updates = slowest(ranks, |rank| &rank.update_seconds);
        row.update_seconds = (!updates.is_empty()).then(|| median(&updates));
        let sent = ranks.iter().map(|rank| rank.sent_bytes).max().unwrap_or(0);
        row.sent_bytes = Some(sent);
        row.link_seconds =
            medium.rate().map(|rate| sent as f64 * 8.0 / Shape::of(rate).payload_rate() as f64);
        row.digest = Some(format!("{:016x}", ranks[0].digest));
        row.relative_error = ranks[0].deviation.map(|deviation| deviation.relative);
        row.largest_error = ranks[0].deviation.map(|deviation| deviation.first);
        row.allowed_error = allowed_error;
        Ok(row)
    }

    /// Of a peer, which has compared its result itself.
    pub(super) fn of_peer(medium: Medium, peer: PeerName, case: PeerCase, ranks: &[Measured]) -> Self {
        let mut row = Self::new(medium, case.values, ranks);
        row.by = By::Peer(peer);
        case.wire.name().clone_into(&mut row.wire);
        case.wire.name().clone_into(&mut row.label);
        row
    }

    fn new(medium: Medium, values: usize, ranks: &[Measured]) -> Self {
        let seconds = slowest(ranks, |rank| &rank.seconds);
        let (bytes, median_seconds) = (4 * values as u64, median(&seconds));
        let (busy, measured) = (ranks[0].busy_seconds, ranks[0].seconds.iter().sum::<f64>());
        Self {
            medium,
            rate: medium.rate(),
            ranks: ranks.len(),
            bytes,
            values,
            by: By::Thinwire,
            wire: String::new(),
            label: String::new(),
            compensation: Compensation::None,
            median_seconds,
            min_seconds: seconds.iter().copied().fold(f64::INFINITY, f64::min),
            bytes_per_second: bytes as f64 / median_seconds,
            speed_over_bf16: None,
            update_seconds: None,
            sent_bytes: None,
            link_seconds: None,
            busy_cores: busy.filter(|_| measured >= LEAST_BUSY).map(|busy| busy / measured),
            digest: None,
            relative_error: None,
            largest_error: None,
            allowed_error: None,
            seconds,
        }
    }

    /// Rows of the same place are compared with one another.
    pub(super) fn place(&self) -> (Medium, usize, usize) {
        (self.medium, self.ranks, self.values)
    }
}

/// The bound of the first call's error, which it and the last one's hold.
fn allowed_error(case: &Case, ranks: &[Measured], of: &str) -> Result<Option<f64>, WrongResult> {
    let Some(Deviation { first, last, .. }) = ranks[0].deviation else { return Ok(None) };
    let largest = ranks.iter().map(|rank| f64::from(rank.largest)).fold(0.0, f64::max);
    let fresh = case.wire.allowed_error(ranks.len(), 1.0);
    // The corrections of all ranks add up to a share of errors of earlier calls.
    let gain = match case.compensation {
        Compensation::None => 0.0,
        Compensation::Fused | Compensation::Separate => f64::from(Coefficients::default().gain),
    };
    let later = (1.0 + gain) * case.wire.allowed_error(ranks.len(), largest);
    for (which, error, allowed) in [("first", first, fresh), ("last", last, later)] {
        if error > allowed {
            return Err(WrongResult::TooFar { which, error, allowed, of: of.to_owned() });
        }
    }
    Ok(Some(fresh))
}

/// Of each call the time of the rank that took longest.
fn slowest(ranks: &[Measured], times: impl Fn(&Measured) -> &Vec<f64>) -> Vec<f64> {
    let calls = ranks.iter().map(|rank| times(rank).len()).min().unwrap_or(0);
    (0..calls).map(|call| ranks.iter().map(|rank| times(rank)[call]).fold(0.0, f64::max)).collect()
}

/// The middle value; of an even number, the upper one of the two.
fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::super::medium::Local;
    use super::*;

    const MEDIUM: Medium = Medium::Local(Local::Memory);

    /// Two ranks that have measured three calls.
    fn measured(digests: [u64; 2], [first, last]: [f64; 2]) -> Vec<Measured> {
        let seconds = [vec![3.0, 1.0, 5.0], vec![2.0, 4.0, 1.0]];
        let of_rank = |rank: usize| Measured {
            rank,
            seconds: seconds[rank].clone(),
            digest: digests[rank],
            largest: 1.5,
            sent_bytes: 100 + rank as u64,
            deviation: (rank == 0).then_some(Deviation { first, last, relative: 0.1 }),
            ..Measured::default()
        };
        vec![of_rank(0), of_rank(1)]
    }

    fn row(compensation: Compensation, ranks: &[Measured]) -> Result<Row, String> {
        let case = Case { values: 250, wire: "group".parse().unwrap(), compensation };
        Row::of_case(MEDIUM, &case, ranks).map_err(|error| error.to_string())
    }

    #[test]
    fn the_slowest_rank_counts() {
        let row = row(Compensation::None, &measured([7, 7], [0.1, 0.1])).unwrap();
        assert_eq!(row.seconds, [3.0, 4.0, 5.0]);
        assert_eq!([row.median_seconds, row.min_seconds, row.bytes_per_second], [4.0, 3.0, 250.0]);
        assert_eq!((row.bytes, row.sent_bytes, row.update_seconds), (1000, Some(101), None));
    }

    #[test]
    fn results_that_differ_or_are_off_are_refused() {
        let differs = row(Compensation::None, &measured([7, 8], [0.1, 0.1])).unwrap_err();
        assert_eq!(differs, "rank 1 has another result than rank 0: 1kB, 4 bits, compensation none");
        let allowed = "group".parse::<super::super::wire::Wire>().unwrap().allowed_error(2, 1.0);
        for (compensation, off, which) in [
            (Compensation::None, [allowed * 1.01, 0.0], Some("first")),
            (Compensation::None, [0.0, allowed * 1.52], Some("last")),
            (Compensation::None, [allowed, allowed * 1.48], None),
            (Compensation::Fused, [0.0, allowed * 2.6], None), // 1.5 times the values, 1.75 times the error
            (Compensation::Fused, [0.0, allowed * 2.65], Some("last")),
        ] {
            let found = row(compensation, &measured([7, 7], off));
            match which {
                Some(which) => {
                    let error = found.unwrap_err();
                    assert!(error.contains(&format!("a value of the {which} call's result is")), "{error}");
                }
                None => assert_eq!(found.unwrap().allowed_error, Some(allowed)),
            }
        }
    }

    #[test]
    fn how_busy_short_calls_were_is_not_told() {
        let mut ranks = measured([7, 7], [0.1, 0.1]);
        ranks[0].busy_seconds = Some(13.5);
        assert_eq!(row(Compensation::None, &ranks).unwrap().busy_cores, Some(1.5));
        ranks[0].seconds = vec![0.01; 3];
        assert_eq!(row(Compensation::None, &ranks).unwrap().busy_cores, None);
    }
}
