//! `cargo xtask test`: what has to hold before a change goes in, cheapest first.

use std::env;
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use crate::aarch64::{self, Required};
use crate::phase::{self, Outcome, Phase, Work};
use crate::repository;
use crate::transformers;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Everything,
    TestsOnly,
}

/// The crates with vector kernels.
const UNOPTIMIZED: [&str; 5] = ["test", "--package", "thinwire-codec", "--package", "thinwire-int4"];

/// Runs the phases of `scope` in the workspace at `root`.
///
/// # Errors
///
/// The exit code of the first phase that fails, or 2 when a tool is missing.
pub(crate) fn run(root: &Path, scope: Scope) -> Outcome {
    let Required { here, emulated } = Required::from_env();
    if emulated {
        aarch64::require_tools()?;
    }
    let python = transformers::python();
    if let Some(python) = &python {
        transformers::require_packages(root, python)?;
    }
    let here = [(aarch64::VARIABLE, &*here)];
    let mut phases = match scope {
        Scope::TestsOnly => Vec::new(),
        Scope::Everything => checks(root, emulated)?,
    };
    phases.extend([
        cargo_phase(root, "tests", &["test", "--workspace", "--release"], &here),
        // Overflow checks, and arithmetic the optimizer has not touched: signed zeros have differed.
        cargo_phase(root, "unoptimized kernel tests", &UNOPTIMIZED, &here),
    ]);
    let name = "kernel tests on aarch64";
    if emulated {
        phases.push(cargo_phase(root, name, &aarch64::TEST, &aarch64::ENVIRONMENT));
    } else if env::consts::ARCH != "aarch64" {
        phases.push(Phase { name, work: Work::Omit("THINWIRE_TEST_ISAS does not name neon") });
    }
    let name = "exported models in transformers";
    let work = match &python {
        None => Work::Omit("THINWIRE_TEST_PYTHON does not name a Python that has transformers"),
        Some(python) => {
            let work = || started(root, Path::new(python)).args(transformers::TEST).status();
            Work::Run(Box::new(move || finished(python, work())))
        }
    };
    phases.push(Phase { name, work });
    phase::run(&phases, &mut io::stderr())
}

/// What is no test.
fn checks(root: &Path, emulated: bool) -> Result<Vec<Phase<'_>>, u8> {
    require_component(root, "fmt", "rustfmt")?;
    require_component(root, "clippy", "clippy")?;
    // Clippy and rustdoc use the release profile too: all three then share one set of build scripts
    // and procedural macros, and the first two the metadata of every dependency.
    let clippy = &["clippy", "--workspace", "--all-targets", "--release", "--", "-D", "warnings"];
    let mut phases = vec![
        Phase { name: "repository", work: Work::Run(Box::new(|| repository::check(root))) },
        cargo_phase(root, "rustfmt", &["fmt", "--all", "--check"], &[]),
        cargo_phase(root, "clippy", clippy, &[]),
        cargo_phase(root, "rustdoc", &["doc", "--workspace", "--no-deps", "--release"], &[]),
    ];
    if emulated {
        phases.push(cargo_phase(root, "clippy on aarch64", &aarch64::CLIPPY, &[]));
    }
    Ok(phases)
}

fn cargo_phase<'a>(
    root: &'a Path,
    name: &'static str,
    arguments: &'a [&'a str],
    environment: &'a [(&'a str, &'a str)],
) -> Phase<'a> {
    let work = move || cargo(root).args(arguments).envs(environment.iter().copied()).status();
    Phase { name, work: Work::Run(Box::new(move || finished("cargo", work()))) }
}

/// The outcome of `program`, if it could be started.
fn finished(program: &str, status: io::Result<ExitStatus>) -> Outcome {
    match status {
        Ok(status) => outcome(status),
        Err(error) => {
            eprintln!("error: cannot start {program}: {error}");
            Err(2)
        }
    }
}

/// The cargo that started this program, as if a user had started it.
fn cargo(root: &Path) -> Command {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = started(root, Path::new(&cargo));
    command.env("RUSTDOCFLAGS", "-D warnings");
    command
}

/// A program in the workspace, as if a user had started it.
///
/// Cargo describes the package it runs in variables that some build scripts (ring's) watch; handed on, they would
/// rebuild those packages and all above them at every change between `cargo xtask` and `cargo`.
fn started(root: &Path, program: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root);
    for (name, _) in env::vars_os() {
        let describes_package = name
            .to_str()
            .is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"));
        if describes_package {
            command.env_remove(name);
        }
    }
    command
}

/// A process ended by a signal has no exit code: 1 stands for it.
fn outcome(status: ExitStatus) -> Outcome {
    if status.success() {
        return Ok(());
    }
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Err(code.unwrap_or(1))
}

fn require_component(root: &Path, subcommand: &str, component: &str) -> Outcome {
    let found =
        cargo(root).args([subcommand, "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if found.is_ok_and(|status| status.success()) {
        return Ok(());
    }
    eprintln!("error: `cargo {subcommand}` is missing; install it with `rustup component add {component}`,");
    eprintln!("or run the tests alone: `cargo xtask test --quick`");
    Err(2)
}
