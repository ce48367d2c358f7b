//! One machine: a network namespace, held by a process that does nothing.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Command, Stdio};

use super::error::NetworkError;

/// A namespace. Dropping it ends the process that holds it; what still runs in it keeps it.
#[derive(Debug)]
pub(super) struct Host {
    /// `cat`, which waits for input that never comes and ends when it cannot come any more.
    holder: Child,
}

impl Host {
    pub(super) fn new() -> Result<Self, NetworkError> {
        let mut command = Command::new("unshare");
        command.args(["--net", "--", "cat"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        out_of_the_foreground(&mut command);
        let mut host = Self { holder: command.spawn().map_err(start("unshare"))? };
        if !host.answers() {
            let mut said = String::new();
            if let Some(stderr) = &mut host.holder.stderr {
                let _ = stderr.read_to_string(&mut said); // nothing said is told as nothing
            }
            return Err(NetworkError::Namespace { said: said.trim().to_owned() });
        }
        Ok(host)
    }

    /// `cat` says back what it hears, and so that it has taken the place of `unshare`.
    fn answers(&mut self) -> bool {
        let (Some(stdin), Some(stdout)) = (&mut self.holder.stdin, &mut self.holder.stdout) else {
            return false;
        };
        let mut answer = String::new();
        writeln!(stdin, "there").is_ok()
            && BufReader::new(stdout).read_line(&mut answer).is_ok()
            && answer == "there\n"
    }

    /// Its process id.
    pub(super) fn process(&self) -> u32 {
        self.holder.id()
    }

    /// A command that becomes `program` in the namespace.
    pub(super) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/proc/{}/ns/net", self.process())).arg("--").arg(program);
        command
    }

    /// Runs `program` in the namespace to its good end.
    pub(super) fn run(&self, program: &str, arguments: &str) -> Result<(), NetworkError> {
        let mut command = self.command(program);
        command.args(arguments.split(' ')).stdin(Stdio::null());
        let output = command.output().map_err(start("nsenter"))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(NetworkError::Command { command: format!("{program} {arguments}"), said })
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        let _ = self.holder.wait(); // it ends, as nothing else holds its input
    }
}

pub(super) fn start(program: &str) -> impl FnOnce(std::io::Error) -> NetworkError {
    move |source| NetworkError::Start { program: program.to_owned(), source }
}

/// Ctrl-C is for the process that made the network: it still needs it while the stages end in order.
pub(super) fn out_of_the_foreground(command: &mut Command) {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    #[cfg(not(unix))]
    let _ = command;
}
