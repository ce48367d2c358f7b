//! Processes that a test has started, directly or not.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Longer than anything here takes: what is not done by then hangs.
const HANGS: Duration = Duration::from_mins(1);

/// A launcher or a stage. What is left of it, a launcher's stages included, ends with this value.
pub(crate) struct Running {
    child: Child,
    /// In a launcher's case: the folder that all its stages have on their command lines.
    folder: Option<PathBuf>,
}

impl Running {
    /// Starts a launcher that keeps everything in `folder`.
    pub(crate) fn launcher(command: &mut Command, folder: &Path) -> Self {
        let mut running = Self::alone(command);
        running.folder = Some(folder.to_owned());
        running
    }

    /// Starts a stage.
    pub(crate) fn alone(command: &mut Command) -> Self {
        let pipes = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self { child: pipes.spawn().unwrap(), folder: None }
    }

    /// The process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The process id of this stage, once it has started.
    pub(crate) fn stage(&self, stage: usize) -> u32 {
        wait_for(|| {
            let stage = stage.to_string();
            let is_it =
                |arguments: &[String]| arguments.windows(2).any(|two| two[0] == "--stage" && two[1] == stage);
            self.stages().into_iter().find(|(_, arguments)| is_it(arguments)).map(|(id, _)| id)
        })
    }

    /// The stages that are there.
    pub(crate) fn stages(&self) -> Vec<(u32, Vec<String>)> {
        let id = self.id();
        let all = self.folder.iter().flat_map(|folder| processes_of(folder));
        all.filter(|(other, _)| *other != id).collect()
    }

    /// Waits until no stage is left.
    pub(crate) fn wait_for_no_stage(&self) {
        wait_for(|| self.stages().is_empty().then_some(()));
    }

    /// Whether it has not ended.
    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for its end; what it said.
    pub(crate) fn output(mut self) -> Output {
        let readers = [
            self.child.stdout.take().map(|mut pipe| thread::spawn(move || read(&mut pipe))),
            self.child.stderr.take().map(|mut pipe| thread::spawn(move || read(&mut pipe))),
        ];
        let status = wait_for(|| self.child.try_wait().unwrap());
        let [stdout, stderr] = readers.map(|reader| reader.unwrap().join().unwrap());
        Output { status, stdout, stderr }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill(); // it may have ended
        let _ = self.child.wait();
        for (id, _) in self.stages() {
            signal("KILL", id);
        }
    }
}

fn read(pipe: &mut impl std::io::Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    pipe.read_to_end(&mut bytes).unwrap();
    bytes
}

/// Sends a signal; a process that has just ended is fine.
pub(crate) fn signal(name: &str, id: u32) {
    let mut kill = Command::new("sh");
    kill.args(["-c", &format!("kill -s {name} {id}")]).stderr(Stdio::null());
    kill.status().unwrap();
}

/// Calls `look` until it finds something.
#[track_caller]
pub(crate) fn wait_for<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < HANGS, "nothing has come");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Processes with an argument inside `folder`, and their arguments. One that has ended has none, even if it has not been
/// waited for.
fn processes_of(folder: &Path) -> Vec<(u32, Vec<String>)> {
    let folder = folder.to_str().unwrap();
    let ids =
        fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    ids.filter_map(|id: u32| {
        let line = fs::read_to_string(format!("/proc/{id}/cmdline")).ok()?;
        let arguments: Vec<String> = line.split('\0').map(str::to_owned).collect();
        let is_ours = arguments[0].ends_with("thinwire") && line.contains(folder);
        is_ours.then_some((id, arguments))
    })
    .collect()
}
