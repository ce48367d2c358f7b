//! A disk that is full, or refuses: nothing half-written stays, and the error says what is needed.

use std::env;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use thinwire_codec::{DType, RamMemory, SampleMemory};
use thinwire_train::checkpoint::{
    CheckpointError, Manifest, Results, available, commit, step_folder, write_units,
};
use thinwire_train::config::Family;
use thinwire_train::memory::{BoundaryMemory, End, FileMemory, SharedMemory};

use super::support::{WHOLE, architecture, chain, checkpoint, facts, names, trained, units, write};

/// Set in the process that has a small disk: its folder.
const SMALL_DISK: &str = "THINWIRE_TEST_SMALL_DISK";

/// A shell on a disk of 1 MiB that no other process sees.
fn on_a_small_disk(folder: &Path, script: &str) -> Command {
    let mut command = Command::new("unshare");
    let script = format!("mount -t tmpfs -o size=1m tmpfs \"${SMALL_DISK}\" && {script}");
    command.args(["--mount", "sh", "-c", &script]).env(SMALL_DISK, folder);
    command
}

#[test]
fn a_full_disk_leaves_the_checkpoints_before_it() {
    with_a_small_disk("full_disk::a_full_disk_leaves_the_checkpoints_before_it", fill_up);
}

/// Runs the test `name` once more, in a process with a small disk, where it does `work` in the disk's folder.
fn with_a_small_disk(name: &str, work: fn(&Path)) {
    if let Some(folder) = env::var_os(SMALL_DISK) {
        return work(Path::new(&folder));
    }
    let folder = tempfile::tempdir().unwrap();
    let probe = on_a_small_disk(folder.path(), "true").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !probe.is_ok_and(|status| status.success()) {
        // Past the test harness, which would keep it to itself.
        let text = format!("NOT RUN: {name}; it needs root to mount a small disk\n");
        io::stderr().write_all(text.as_bytes()).unwrap();
        return;
    }
    let this = env::current_exe().unwrap();
    let script = format!("exec \"$0\" --exact {name} --nocapture");
    let output = on_a_small_disk(folder.path(), &script).arg(this).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

/// Takes all space but `left` bytes.
fn fill(path: &Path, left: u64) {
    let mut file = File::create(path).unwrap();
    let error = loop {
        if let Err(error) = file.write_all(&[1; 4096]) {
            break error;
        }
    };
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    let len = file.metadata().unwrap().len();
    file.set_len(len - left).unwrap();
}

fn fill_up(dir: &Path) {
    let arch = architecture(Family::Gpt2);
    let facts = facts(&arch, WHOLE);
    let stages = trained(&arch, WHOLE, 1);
    let first = write(dir, 1, &stages, &facts);
    let memory = remembered();
    let bytes: u64 = first.files.iter().map(|file| file.bytes).sum::<u64>() + 3 * (16 + 400);
    let steps = || available(dir, &units(WHOLE)[0]).unwrap();
    let filler = dir.join("filler");

    for left in [0, bytes / 3 / 4096 * 4096] {
        fill(&filler, left);
        let error = write_units(dir, 2, &stages[0].part, &stages[0].optimizer, &memory).unwrap_err();
        assert!(
            matches!(&error, CheckpointError::Write { needed, .. } if *needed == bytes) || left == 0,
            "{error}"
        );
        let text = chain(&error);
        assert!(text.contains("step-00000002") && text.contains("No space left on device"), "{text}");
        assert_eq!(names(&step_folder(dir, 2)), [""; 0]);
        assert_eq!(steps(), [1]);
        fs::remove_file(&filler).unwrap();
    }

    let files = write_units(dir, 2, &stages[0].part, &stages[0].optimizer, &memory).unwrap();
    let manifest = Manifest::new(2, Results::default(), facts, files).unwrap();
    fill(&filler, 0);
    let text = chain(&commit(dir, &manifest).unwrap_err());
    assert!(text.contains("manifest.json") && text.contains("No space left on device"), "{text}");
    assert_eq!(
        names(&step_folder(dir, 2)).len(),
        manifest.all_files().count(),
        "neither manifest nor temporary file"
    );
    assert_eq!(steps(), [1]);
    fs::remove_file(&filler).unwrap();
    commit(dir, &manifest).unwrap();
    assert_eq!(steps(), [1, 2]);
}

/// What one end remembers of three samples.
fn remembered() -> [BoundaryMemory; 1] {
    let mut memory = RamMemory::new(9, u64::MAX);
    for sample in [2, 3, 5] {
        memory.write(sample, &mut vec![sample as u8; 400]).unwrap();
    }
    [BoundaryMemory {
        before: 1,
        end: End::Sent,
        keep: DType::F32,
        token_bytes: 100,
        tokens: 4,
        samples: 9,
        memory: SharedMemory::new(memory),
    }]
}

#[test]
fn a_full_disk_is_an_error_of_the_memory_on_it() {
    with_a_small_disk("full_disk::a_full_disk_is_an_error_of_the_memory_on_it", |folder| {
        const LEN: usize = 100_000;
        let mut memory = FileMemory::create(folder, 1000, LEN as u64).unwrap();
        let mut sample = 0;
        let error = loop {
            if let Err(error) = memory.write(sample, &mut vec![sample as u8; LEN]) {
                break error;
            }
            sample += 1;
        };
        assert!((5..12).contains(&sample), "{sample} samples in 1 MiB");
        let text = error.to_string();
        let expected =
            format!("cannot write what is kept of sample {sample}: a file in {}: ", folder.display());
        assert!(text.starts_with(&expected) && text.contains("No space left on device"), "{text}");
        assert_eq!(memory.bytes(), sample * LEN as u64);
        let mut kept = Vec::new();
        for before in 0..sample {
            memory.read(before, &mut kept).unwrap();
            assert!(kept == vec![before as u8; LEN]);
        }
    });
}

#[test]
fn a_file_that_cannot_be_written_takes_the_others_with_it() {
    let (dir, stages, _) = checkpoint();
    let folder = step_folder(dir.path(), 3);
    let obstacle = folder.join("layer-0001.safetensors");
    fs::create_dir_all(obstacle.join("something")).unwrap();
    let error = write_units(dir.path(), 3, &stages[0].part, &stages[0].optimizer, &[]).unwrap_err();
    assert!(matches!(&error, CheckpointError::Write { path, .. } if *path == obstacle), "{error}");
    assert_eq!(names(&folder), ["layer-0001.safetensors"]);
    assert_eq!(available(dir.path(), &units(WHOLE)[0]).unwrap(), [2]);
}
