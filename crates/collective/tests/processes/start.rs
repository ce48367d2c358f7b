//! Groups in shared memory that do not come together, and what is left of them.

use std::env;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use tempfile::TempDir;
use thinwire_collective::{CollectiveError, Settings, shared};

use crate::group::{Between, Order};
use crate::rank::RUN;

const SETTINGS: Settings = Settings { tile: 1024, deadline: Duration::from_secs(10) };

fn order(folder: &Path, rank: usize) -> Order<'_> {
    let deadline_ms = SETTINGS.deadline.as_millis() as u64;
    Order { between: Between::Shared, folder, rank, ranks: 2, tile: SETTINGS.tile, deadline_ms, stops: None }
}

fn file_of(folder: &TempDir, rank: usize) -> PathBuf {
    folder.path().join(format!("thinwire-{RUN}-{rank}"))
}

fn is_empty(folder: &TempDir) -> bool {
    fs::read_dir(folder.path()).unwrap().next().is_none()
}

/// Set in the process that has a small folder in memory: which.
const SMALL: &str = "THINWIRE_TEST_SMALL_FOLDER";

#[test]
fn a_full_folder_is_an_error_that_says_what_is_needed() {
    const NAME: &str = "start::a_full_folder_is_an_error_that_says_what_is_needed";
    if let Some(folder) = env::var_os(SMALL) {
        let error = shared::group(Path::new(&folder), RUN, 0, 2, &SETTINGS).unwrap_err().to_string();
        assert!(error.contains("No space left on device") && error.contains("bytes are needed"), "{error}");
        assert!(fs::read_dir(folder).unwrap().next().is_none());
        return;
    }
    let folder = TempDir::new().unwrap();
    let script = format!("mount -t tmpfs -o size=64k tmpfs \"${SMALL}\" && exec \"$@\"");
    let there = |program: &Path, arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", &script, "sh"]).arg(program).args(arguments);
        command.env(SMALL, folder.path()).output().unwrap()
    };
    if !there(Path::new("true"), &[]).status.success() {
        // Past the test harness, which would keep it to itself.
        writeln!(io::stderr(), "NOT RUN: {NAME}; it needs root to mount a small folder").unwrap();
        return;
    }
    let output = there(&env::current_exe().unwrap(), &["--exact", NAME, "--nocapture"]);
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{:?} {text}", output.status);
}

#[test]
fn a_rank_that_does_not_come_is_named_and_no_file_stays() {
    let folder = TempDir::new().unwrap();
    let soon = Settings { deadline: Duration::from_millis(200), ..SETTINGS };
    let error = shared::group(folder.path(), RUN, 1, 3, &soon).unwrap_err();
    assert!(matches!(error, CollectiveError::Absent { rank: 0, by: 1, .. }), "{error}");
    assert!(is_empty(&folder));
}

/// The file of a rank that was killed while it waited for the others has a name and no owner; the next start replaces it.
#[test]
fn what_a_killed_start_leaves_is_replaced() {
    let folder = TempDir::new().unwrap();
    let mut killed = order(folder.path(), 0).start();
    while !file_of(&folder, 0).exists() {
        thread::sleep(Duration::from_millis(2));
    }
    let mode = fs::metadata(file_of(&folder, 0)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    killed.kill();
    assert!(file_of(&folder, 0).exists(), "the leftover that this is about");
    // Rank 1 comes first, so that it meets the leftover.
    let mut second = order(folder.path(), 1).start();
    while !file_of(&folder, 1).exists() {
        thread::sleep(Duration::from_millis(2));
    }
    let mut first = order(folder.path(), 0).start();
    assert_eq!(first.says(), second.says());
    assert_eq!(first.says(), second.says());
    assert!(is_empty(&folder));
}

#[test]
fn a_rank_that_lives_is_not_replaced() {
    let folder = TempDir::new().unwrap();
    let _first = order(folder.path(), 0).start();
    while !file_of(&folder, 0).exists() {
        thread::sleep(Duration::from_millis(2));
    }
    let error = shared::group(folder.path(), RUN, 0, 2, &SETTINGS).unwrap_err();
    assert!(matches!(error, CollectiveError::Taken { rank: 0, .. }), "{error}");
    assert!(file_of(&folder, 0).exists());
}

#[test]
fn other_settings_are_refused_with_both_named() {
    let folder = TempDir::new().unwrap();
    let mut other = Order { tile: 2048, ..order(folder.path(), 0) }.start();
    let error = shared::group(folder.path(), RUN, 1, 2, &SETTINGS).unwrap_err().to_string();
    assert_eq!(
        error,
        "rank 0 was started for 2 ranks with tiles of 2048 values, rank 1 for 2 ranks with tiles of 1024 values"
    );
    assert_eq!(
        other.says(),
        "error: rank 1 was started for 2 ranks with tiles of 1024 values, rank 0 for 2 ranks with tiles of 2048 values"
    );
    assert!(is_empty(&folder));
}

#[test]
fn files_that_are_something_else_are_refused_before_they_are_mapped() {
    let whole = vec![0; 1 << 16];
    for (content, mode, expected) in [
        (&whole[..7], 0o600, "7 bytes, not "),
        (&whole, 0o600, "not made by this version"),
        (&whole, 0o666, "others than"),
    ] {
        let folder = TempDir::new().unwrap();
        let path = file_of(&folder, 0);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let held = fs::File::open(&path).unwrap();
        held.lock().unwrap();
        let error = shared::group(folder.path(), RUN, 1, 2, &SETTINGS).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let error = shared::group(Path::new("/nowhere"), RUN, 0, 2, &SETTINGS).unwrap_err().to_string();
    assert!(error.contains("/nowhere/thinwire-"), "{error}");
}
