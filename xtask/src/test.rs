//! `cargo xtask test`: what has to hold before a change goes in, cheapest first.

use std::env;
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use crate::phase::{self, Outcome, Phase};
use crate::repository;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Everything,
    TestsOnly,
}

/// Runs the phases of `scope` in the workspace at `root`.
///
/// # Errors
///
/// The exit code of the first phase that fails, or 2 when a tool is missing.
pub(crate) fn run(root: &Path, scope: Scope) -> Outcome {
    let tests = cargo_phase(root, "tests", &["test", "--workspace", "--release"]);
    // Overflow checks, and arithmetic the optimizer has not touched: signed zeros have differed.
    let unoptimized = cargo_phase(root, "unoptimized codec tests", &["test", "--package", "thinwire-codec"]);
    let phases = match scope {
        Scope::TestsOnly => vec![tests, unoptimized],
        Scope::Everything => {
            require_component(root, "fmt", "rustfmt")?;
            require_component(root, "clippy", "clippy")?;
            // Clippy and rustdoc use the release profile too: all three then share one set of build scripts
            // and procedural macros, and the first two the metadata of every dependency.
            vec![
                Phase { name: "repository", work: Box::new(|| repository::check(root)) },
                cargo_phase(root, "rustfmt", &["fmt", "--all", "--check"]),
                cargo_phase(
                    root,
                    "clippy",
                    &["clippy", "--workspace", "--all-targets", "--release", "--", "-D", "warnings"],
                ),
                cargo_phase(root, "rustdoc", &["doc", "--workspace", "--no-deps", "--release"]),
                tests,
                unoptimized,
            ]
        }
    };
    phase::run(&phases, &mut io::stderr())
}

fn cargo_phase<'a>(root: &'a Path, name: &'static str, arguments: &'a [&'a str]) -> Phase<'a> {
    let work = move || match cargo(root).args(arguments).status() {
        Ok(status) => outcome(status),
        Err(error) => {
            eprintln!("error: cannot start cargo: {error}");
            Err(2)
        }
    };
    Phase { name, work: Box::new(work) }
}

/// The cargo that started this program, as if a user had started it.
///
/// Cargo describes the package it runs in variables that some build scripts (ring's) watch; handed on, they would
/// rebuild those packages and all above them at every change between `cargo xtask` and `cargo`.
fn cargo(root: &Path) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root).env("RUSTDOCFLAGS", "-D warnings");
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
