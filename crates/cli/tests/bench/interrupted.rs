//! Ranks that die, and launchers.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Stdio};

use super::common::thinwire;
use super::networks::{can_have_networks, namespace, processes_in};
use super::processes::{signal, wait_for};

/// A bench that is in the middle of its calls.
struct Bench {
    launcher: Child,
    stderr: BufReader<std::process::ChildStderr>,
    /// Process ids of the ranks.
    ranks: Vec<u32>,
}

impl Bench {
    /// Starts one that would take very long, with 3 ranks, and waits for the first result.
    fn start(place: [&str; 2]) -> Self {
        let arguments = "bench allreduce --ranks 3 --sizes 64KiB,8MiB --wire bf16 --warmup 0 --repeats 1000";
        let mut command = thinwire(arguments.split(' ').chain(place));
        let mut launcher =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(launcher.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        assert!(line.contains("64KiB: thinwire, bf16"), "{line}");
        let ranks = (0..3).map(|rank| process_of(rank, launcher.id())).collect();
        Self { launcher, stderr, ranks }
    }

    /// Waits until it has failed without a result; what it said.
    fn failed(mut self) -> String {
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).unwrap();
        assert_eq!(self.launcher.wait().unwrap().code(), Some(1), "{said}");
        let mut stdout = Vec::new();
        self.launcher.stdout.take().unwrap().read_to_end(&mut stdout).unwrap();
        assert!(stdout.is_empty());
        said
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = self.launcher.kill(); // it may have ended
        let _ = self.launcher.wait();
    }
}

/// The process of a rank that this launcher has started.
fn process_of(rank: usize, launcher: u32) -> u32 {
    let is_it = |id: u32| {
        let parent = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        let parent = parent.rsplit(") ").next()?.split(' ').nth(1)?.parse::<u32>().ok()?;
        let line = fs::read_to_string(format!("/proc/{id}/cmdline")).ok()?;
        (parent == launcher && line.ends_with(&format!("allreduce-rank\0{rank}\0"))).then_some(id)
    };
    let ids =
        fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    ids.into_iter().find_map(is_it).unwrap()
}

/// Whether a process has not ended.
fn is_there(id: u32) -> bool {
    fs::read_to_string(format!("/proc/{id}/cmdline")).is_ok_and(|line| line.contains("allreduce-rank"))
}

#[test]
#[cfg(target_os = "linux")]
fn a_rank_that_is_killed_is_named_and_nothing_is_left() {
    for (rank, over) in [(0, "loopback"), (2, "loopback"), (1, "shared")] {
        let bench = Bench::start(["--over", over]);
        let ranks = bench.ranks.clone();
        signal("KILL", ranks[rank]);
        let said = bench.failed();
        let expected = format!("error: rank {rank}: its process ended with signal: 9 (SIGKILL)\n");
        assert!(said.ends_with(&expected), "{said}");
        wait_for(|| (!ranks.iter().any(|id| is_there(*id))).then_some(()));
    }
}

#[test]
fn a_bench_that_is_killed_leaves_no_process_and_no_network() {
    if !can_have_networks("a bench over slow links that is killed") {
        return;
    }
    for with in ["KILL", "INT"] {
        let bench = Bench::start(["--links", "1gbit"]);
        let namespaces: BTreeSet<_> = bench.ranks.iter().filter_map(|id| namespace(*id)).collect();
        assert_eq!(namespaces.len(), 3, "each rank has a machine of its own");
        assert!(!namespaces.contains(&namespace(std::process::id()).unwrap()));
        assert_eq!(processes_in(&namespaces).len(), 6, "ranks, and what holds their machines");
        signal(with, bench.launcher.id());
        wait_for(|| processes_in(&namespaces).is_empty().then_some(()));
        let interfaces = fs::read_dir("/sys/class/net").unwrap().map(|entry| entry.unwrap().file_name());
        assert!(!interfaces.into_iter().any(|name| name == "switch" || name == "wire"));
    }
}
