//! How much memory this process has taken.

use std::fs;

/// The most memory that was ever resident, in bytes; `None` where the system does not tell as Linux does.
pub fn peak() -> Option<u64> {
    high_water_mark(&fs::read_to_string("/proc/self/status").ok()?)
}

/// `VmHWM` of a status file (`man 5 proc_pid_status`), which calls a KiB `kB`.
fn high_water_mark(status: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = value.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_is_read() {
        let status = "Name:\tthinwire\nVmPeak:\t  999 kB\nVmHWM:\t    1234 kB\nVmRSS:\t 7 kB\n";
        assert_eq!(high_water_mark(status), Some(1234 * 1024));
        assert_eq!(high_water_mark("Name:\tthinwire\n"), None);
        assert_eq!(high_water_mark("VmHWM:\t1234 pages\n"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn memory_that_is_touched_is_in_it() {
        let touched = std::hint::black_box(vec![1u8; 64 << 20]);
        assert!(peak().unwrap() >= touched.len() as u64);
    }
}
