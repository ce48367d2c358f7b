//! Pruning and cleaning, alone and by several stages at once.

use std::fs;
use std::path::Path;
use std::thread;

use thinwire_train::checkpoint::{available, clean, latest, prune, remove, step_folder};
use thinwire_train::config::Family;

use super::support::{WHOLE, architecture, facts, names, trained, units, write};

/// A folder with the checkpoints of these steps.
fn folder(steps: &[u64]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let arch = architecture(Family::Gpt2);
    let stages = trained(&arch, WHOLE, 1);
    for &step in steps {
        write(dir.path(), step, &stages, &facts(&arch, WHOLE));
    }
    dir
}

fn steps(dir: &Path) -> Vec<u64> {
    available(dir, &units(WHOLE)[0]).unwrap()
}

#[test]
fn the_newest_are_kept() {
    let dir = folder(&[9, 10, 100_000_000, 2]);
    assert_eq!(steps(dir.path()), [2, 9, 10, 100_000_000]);
    assert_eq!(prune(dir.path(), 0).unwrap(), [0; 0]);
    assert_eq!(prune(dir.path(), 4).unwrap(), [0; 0]);
    assert_eq!(prune(dir.path(), 2).unwrap(), [2, 9]);
    assert_eq!(names(dir.path()), ["step-00000010", "step-100000000"]);
    assert_eq!(latest(dir.path()).unwrap().unwrap().step, 100_000_000);
}

#[test]
fn several_stages_prune_one_folder() {
    for _ in 0..20 {
        let dir = folder(&[1, 2, 3, 4]);
        thread::scope(|scope| {
            let prune = || prune(dir.path(), 1).unwrap();
            (0..4).for_each(|_| drop(scope.spawn(prune)));
        });
        assert_eq!(names(dir.path()), ["step-00000004"]);
    }
}

#[test]
fn cleaning_removes_what_has_no_manifest_within_the_range() {
    let dir = folder(&[1, 2, 3, 4]);
    fs::write(dir.path().join("notes.txt"), "not ours").unwrap();
    for step in [1, 2, 4] {
        fs::remove_file(step_folder(dir.path(), step).join("manifest.json")).unwrap();
    }
    assert_eq!(clean(dir.path(), ..2).unwrap(), [1]);
    assert_eq!(clean(dir.path(), ..).unwrap(), [2, 4]);
    assert_eq!(names(dir.path()), ["notes.txt", "step-00000003"]);
}

#[test]
fn a_folder_that_is_not_there_is_empty() {
    let dir = tempfile::tempdir().unwrap();
    let absent = dir.path().join("checkpoints");
    assert_eq!(steps(&absent), [0; 0]);
    assert!(latest(&absent).unwrap().is_none());
    assert_eq!(clean(&absent, ..).unwrap(), [0; 0]);
    assert_eq!(prune(&absent, 1).unwrap(), [0; 0]);
    remove(&absent, 1).unwrap();
}
