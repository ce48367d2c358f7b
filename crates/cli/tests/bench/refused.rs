//! What cannot be measured.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::common::{failure, thinwire};

fn bench(options: &str) -> Command {
    let arguments = ["bench", "allreduce"].into_iter().chain(options.split(' '));
    thinwire(arguments)
}

#[test]
fn tensors_that_do_not_fit_are_refused_before_anything_starts() {
    let said = failure(&mut bench("--over memory --ranks 2 --sizes 64KiB,64TiB"), 1);
    assert!(said.starts_with("error: 2 ranks with tensors of 64TiB need "), "{said}");
    assert!(said.contains(" are available: choose smaller --sizes"), "{said}");
    let said = failure(&mut bench("--sizes 10B"), 1);
    assert!(said.starts_with("error: a tensor of 10B: expected a multiple of 4 bytes"), "{said}");
    failure(&mut bench("--sizes 0B"), 1);
}

#[test]
fn what_there_is_not_is_a_wrong_call() {
    for (options, expected) in [
        ("--wire tah", "expected f32 (or exact), bf16, or group with its settings"),
        ("--wire group:bits=9", "bits"),
        ("--ranks 1", "1 is not in 2..=64"),
        ("--repeats 0", "0 is not in 1.."),
        ("--compensation some", "none, fused, separate"),
        ("--peers nccl", "gloo, mpi, mpi-ring"),
        ("--links slow", "expected a bandwidth"),
    ] {
        let said = failure(&mut bench(options), 2);
        assert!(said.contains(expected), "{options}: {said}");
    }
}

/// A folder with an `unshare` that says what the real one says to those who may not.
#[cfg(unix)]
fn forbidden(folder: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let unshare = folder.join("unshare");
    fs::write(&unshare, "#!/bin/sh\necho 'unshare: unshare failed: Operation not permitted' >&2\nexit 1\n")
        .unwrap();
    fs::set_permissions(unshare, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
#[cfg(target_os = "linux")]
fn links_of_a_rate_need_root() {
    let folder = tempfile::tempdir().unwrap();
    forbidden(folder.path());
    let said = failure(bench("--links 1gbit --sizes 64KiB").env("PATH", folder.path()), 1);
    let expected =
        "error: cannot make a network namespace; links of a rate need root: unshare: unshare failed";
    assert!(said.starts_with(expected), "{said}");
}

#[test]
fn a_peer_that_is_not_there_is_said_to_be_missing() {
    let nothing = tempfile::tempdir().unwrap();
    let options = "--over loopback --ranks 2 --sizes 64KiB --wire bf16 --repeats 1 --peers gloo,mpi --python no-such-python";
    let output = bench(options).env("PATH", nothing.path()).output().unwrap();
    let [text, said] = [output.stdout, output.stderr].map(|said| String::from_utf8(said).unwrap());
    assert!(output.status.success(), "{said}");
    for (peer, program) in [("gloo", "no-such-python"), ("mpi", "mpirun")] {
        let early = format!("{peer} cannot be measured: cannot start `{program}`");
        assert!(said.contains(&early), "{said}");
        let late = format!("{peer} was not measured: cannot start `{program}`");
        assert!(text.contains(&late), "{text}");
    }
    let first = said.lines().position(|line| line.contains("cannot be measured"));
    let result = said.lines().position(|line| line.contains("2 ranks"));
    assert!(first < result, "it is said before anything is measured: {said}");
}
