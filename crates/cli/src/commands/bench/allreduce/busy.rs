//! How busy the machine is.

use std::fs;

/// Parts of a second in which the kernel counts, whatever its own clock is (`man 5 proc_stat`).
const TICKS: f64 = 100.0;

/// Seconds that all cores together have worked since the machine started, interrupts included; `None` where the system does not
/// tell as Linux does.
pub(super) fn busy_seconds() -> Option<f64> {
    parse(&fs::read_to_string("/proc/stat").ok()?)
}

/// The line of all cores: user, nice, system, idle, waiting for disks, interrupts of two kinds.
fn parse(text: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_whitespace().map_while(|ticks| ticks.parse().ok()).collect();
    let [user, nice, system, _, _, hard, soft, ..] = ticks[..] else { return None };
    Some((user + nice + system + hard + soft) as f64 / TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_cores_do_not_count() {
        assert_eq!(parse("cpu  100 20 3 9999 888 40 5 77 0 0\ncpu0 1 2 3 4 5 6 7\n"), Some(1.68));
        assert_eq!(parse("cpu0 1 2 3 4 5 6 7\n"), None);
        assert_eq!(parse("cpu  1 2 3\n"), None);
    }
}
