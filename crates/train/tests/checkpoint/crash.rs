//! A process killed at any moment leaves checkpoints that are whole, or none.

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use thinwire_train::checkpoint::{
    FileEntry, Manifest, Results, available, clean, commit, prune, step_folder, write_units,
};
use thinwire_train::config::Family;

use super::support::{Stage, THREE, WHOLE, architecture, bits, facts, names, trained, units, write};

/// Set in the process that is to be killed: its checkpoint folder.
const VICTIM: &str = "THINWIRE_TEST_CRASH_DIR";

/// Checkpoints kept by the victim.
const KEEP: usize = 2;

/// Writes checkpoints of three stages into one folder, from a thread each, until it is killed.
fn write_for_ever(dir: &Path) -> ! {
    let arch = architecture(Family::Gpt2);
    let facts = facts(&arch, THREE);
    let stages = trained(&arch, THREE, 1);
    let mut step = available(dir, &units(WHOLE)[0]).unwrap().last().copied().unwrap_or(0);
    loop {
        step += 1;
        let files: Vec<FileEntry> = thread::scope(|scope| {
            let writers: Vec<_> = stages
                .iter()
                .map(|Stage { part, optimizer }| {
                    scope.spawn(move || write_units(dir, step, part, optimizer, &[]).unwrap())
                })
                .collect();
            writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
        });
        let manifest = &Manifest::new(step, Results::default(), facts.clone(), files).unwrap();
        thread::scope(|scope| {
            for _ in &stages {
                scope.spawn(move || {
                    commit(dir, manifest).unwrap();
                    prune(dir, KEEP).unwrap();
                });
            }
        });
    }
}

/// Starts the victim, waits until it writes a step after `last`, and a little longer, and kills it.
fn run_and_kill(dir: &Path, last: u64, delay: Duration) {
    let mut victim = Command::new(env::current_exe().unwrap())
        .args(["--exact", "crash::a_killed_process_leaves_whole_checkpoints_or_none"])
        .env(VICTIM, dir)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while !step_folder(dir, last + 1).exists() {
        let waiting = start.elapsed() < Duration::from_mins(1) && victim.try_wait().unwrap().is_none();
        assert!(waiting, "the victim does not write");
        thread::sleep(Duration::from_millis(1));
    }
    thread::sleep(delay);
    assert!(victim.try_wait().unwrap().is_none(), "the victim ended by itself");
    victim.kill().unwrap();
    victim.wait().unwrap();
}

#[test]
fn a_killed_process_leaves_whole_checkpoints_or_none() {
    if let Some(dir) = env::var_os(VICTIM) {
        write_for_ever(Path::new(&dir));
    }
    let dir = tempfile::tempdir().unwrap();
    let arch = architecture(Family::Gpt2);
    let facts = facts(&arch, WHOLE);
    let expected = bits(&trained(&arch, WHOLE, 1));
    let whole = &units(WHOLE)[0];
    let (mut last, mut interrupted) = (0, 0);
    for kill in 0..25u8 {
        run_and_kill(dir.path(), last, Duration::from_millis(2) * kill.into());
        let steps = available(dir.path(), whole).unwrap();
        for &step in &steps {
            let mut restored = trained(&arch, WHOLE, 0);
            restored[0].restore(dir.path(), step, &facts).unwrap();
            assert_eq!(bits(&restored), expected, "kill {kill}, step {step}");
        }
        assert!(
            steps.last().copied() >= Some(last).filter(|&last| last > 0),
            "the newest checkpoint is lost"
        );
        interrupted += clean(dir.path(), ..).unwrap().len();
        assert_eq!(names(dir.path()).len(), steps.len(), "cleaning leaves the complete ones");
        assert!(steps.len() <= KEEP + 1, "{steps:?}: the one that is about to be pruned at most");
        last = steps.last().copied().unwrap_or(0);
    }
    assert!(interrupted > 0, "no kill hit a checkpoint that was being written");
}

#[test]
fn every_state_on_the_way_to_the_manifest_is_no_checkpoint() {
    let finished = tempfile::tempdir().unwrap();
    let arch = architecture(Family::Gpt2);
    let manifest = write(finished.path(), 1, &trained(&arch, WHOLE, 1), &facts(&arch, WHOLE));
    let source = step_folder(finished.path(), 1);
    let order: Vec<&str> =
        manifest.files.iter().map(|file| file.name.as_str()).chain(["manifest.json"]).collect();

    let dir = tempfile::tempdir().unwrap();
    let folder = step_folder(dir.path(), 1);
    fs::create_dir(&folder).unwrap();
    for name in order {
        let bytes = fs::read(source.join(name)).unwrap();
        for len in [0, bytes.len() / 2, bytes.len()] {
            assert_eq!(available(dir.path(), &units(WHOLE)[0]).unwrap(), [0; 0], "{len} bytes of {name}");
            fs::write(folder.join(".unfinished.tmp"), &bytes[..len]).unwrap();
        }
        assert_eq!(available(dir.path(), &units(WHOLE)[0]).unwrap(), [0; 0], "all but the name of {name}");
        fs::rename(folder.join(".unfinished.tmp"), folder.join(name)).unwrap();
    }
    assert_eq!(available(dir.path(), &units(WHOLE)[0]).unwrap(), [1]);
}
