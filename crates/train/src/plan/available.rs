//! How much memory this machine has left.

use std::fs;

/// Bytes that can be taken without swapping; `None` where the system does not tell as Linux does.
pub fn memory() -> Option<u64> {
    parse(&fs::read_to_string("/proc/meminfo").ok()?)
}

/// `MemAvailable` of `/proc/meminfo` (`man 5 proc_meminfo`), which calls a KiB `kB`.
fn parse(text: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = value.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_read() {
        assert_eq!(parse("MemTotal: 9 kB\nMemAvailable:   12 kB\n"), Some(12 * 1024));
        assert_eq!(parse("MemTotal: 9 kB\n"), None);
        assert_eq!(parse("MemAvailable: 12 pages\n"), None);
    }
}
