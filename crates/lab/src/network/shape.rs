//! How a link is held to its rate.

use std::fmt;

use thinwire_train::config::Bandwidth;

/// The share of a rate that TCP leaves for data: of 1514 bytes of an Ethernet frame, which `tc` counts without preamble
/// and checksum, 14 are Ethernet's, 20 IP's and 32 TCP's with its timestamps.
pub const TCP_PAYLOAD_SHARE: f64 = 1448.0 / 1514.0;

/// A token bucket (`man 8 tc-tbf`): what leaves waits until the bucket, which fills at the rate, holds as many bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    rate: Bandwidth,
    /// Bytes that the bucket holds: after a pause, so many leave at once. The kernel cuts packets that are larger, as
    /// those of segmentation offload are at low rates.
    pub burst: u64,
    /// Bytes that may wait; what comes then is lost.
    pub limit: u64,
}

/// Room for some full frames.
const LEAST_BURST: u64 = 8 << 10;
/// Time at the full rate that the bucket can hold: longer than the kernel may be late with a packet, and little beside a
/// training step.
const BURST_SECONDS: f64 = 0.004;
/// TCP keeps less than this waiting below it (`tcp_limit_output_bytes` is 4 MiB).
const LIMIT: u64 = 8 << 20;

impl Shape {
    /// What holds a link to `rate`.
    pub fn of(rate: Bandwidth) -> Self {
        let burst = (rate.rate().bits_per_second() as f64 / 8.0 * BURST_SECONDS) as u64;
        let burst = burst.clamp(LEAST_BURST, 1 << 30);
        Self { rate, burst, limit: LIMIT + burst }
    }

    /// Data that TCP carries over the link, in bits a second.
    pub fn payload_rate(&self) -> u64 {
        (self.rate.rate().bits_per_second() as f64 * TCP_PAYLOAD_SHARE) as u64
    }
}

/// As `tc` reads it.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.rate.rate().bits_per_second();
        write!(f, "tbf rate {bits}bit burst {} limit {}", self.burst, self.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bucket_holds_some_frames_or_some_milliseconds() {
        for (rate, burst) in [("1mbit", 8192), ("100mbit", 50_000), ("10gbit", 5_000_000)] {
            assert_eq!(Shape::of(rate.parse().unwrap()).burst, burst, "{rate}");
        }
        let shape = Shape::of("100mbit".parse().unwrap());
        assert_eq!(shape.to_string(), "tbf rate 100000000bit burst 50000 limit 8438608");
        assert_eq!(shape.payload_rate(), 95_640_686);
    }
}
