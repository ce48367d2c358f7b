//! The tests of the vector kernels on 64-bit ARM, on a machine that is none: cross-compiled, under an emulator.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::phase::Outcome;

/// A list of instruction sets whose tests must run, such as `avx2,neon`.
pub(crate) const VARIABLE: &str = "THINWIRE_TEST_ISAS";

/// Where the tests of the instruction sets that [`VARIABLE`] names run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Required {
    /// The list for the tests on this machine, which fail if its processor lacks one.
    pub(crate) here: String,
    /// Whether NEON's are to run under the emulator. Where this machine is an ARM one, they run here.
    pub(crate) emulated: bool,
}

impl Required {
    pub(crate) fn from_env() -> Self {
        Self::of(&env::var(VARIABLE).unwrap_or_default(), env::consts::ARCH)
    }

    fn of(list: &str, machine: &str) -> Self {
        let (neon, others): (Vec<&str>, Vec<&str>) = list.split(',').partition(|name| *name == "neon");
        if machine == "aarch64" {
            Self { here: list.to_owned(), emulated: false }
        } else {
            Self { here: others.join(","), emulated: !neon.is_empty() }
        }
    }
}

pub(crate) const TEST: [&str; 8] =
    ["test", "--package", "thinwire-codec", "--package", "thinwire-int4", "--release", "--target", TARGET];

/// For the kernels that no other machine compiles.
pub(crate) const CLIPPY: [&str; 10] = [
    "clippy",
    "--package",
    "thinwire-codec",
    "--package",
    "thinwire-int4",
    "--target",
    TARGET,
    "--",
    "-D",
    "warnings",
];

/// What cargo has to know for [`TEST`].
pub(crate) const ENVIRONMENT: [(&str, &str); 3] = [
    ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", LINKER),
    ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", "qemu-aarch64 -L /usr/aarch64-linux-gnu"),
    (VARIABLE, "neon"),
];

const TARGET: &str = "aarch64-unknown-linux-gnu";
const LINKER: &str = "aarch64-linux-gnu-gcc";

/// # Errors
///
/// 2 if something is missing that [`TEST`] takes; all of it is named.
pub(crate) fn require_tools() -> Outcome {
    let tools = [
        (has_standard_library(), "Rust's standard library", "rustup target add aarch64-unknown-linux-gnu"),
        (answers(LINKER), "`aarch64-linux-gnu-gcc`", "apt-get install gcc-aarch64-linux-gnu"),
        (has_c_library(), "the C library", "apt-get install libc6-dev-arm64-cross"),
        (answers("qemu-aarch64"), "`qemu-aarch64`", "apt-get install qemu-user"),
    ];
    let mut outcome = Ok(());
    for (_, tool, remedy) in tools.into_iter().filter(|(is_there, ..)| !is_there) {
        eprintln!("error: {VARIABLE} names neon, but {tool} for 64-bit ARM is missing; `{remedy}` brings it");
        outcome = Err(2);
    }
    outcome
}

fn has_standard_library() -> bool {
    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    answer(&rustc, &["--print", "target-libdir", "--target", TARGET])
        .is_some_and(|path| Path::new(&path).is_dir())
}

/// The compiler answers with a path if it has the file, with the bare name if not.
fn has_c_library() -> bool {
    answer(LINKER, &["-print-file-name=Scrt1.o"]).is_some_and(|path| Path::new(&path).is_absolute())
}

fn answers(program: &str) -> bool {
    answer(program, &["--version"]).is_some()
}

/// What a program that succeeds prints, without the line's end.
fn answer(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neon_runs_under_the_emulator_where_the_machine_is_no_arm() {
        let required = |here: &str, emulated| Required { here: here.to_owned(), emulated };
        assert_eq!(Required::of("avx2,neon,avx512", "x86_64"), required("avx2,avx512", true));
        assert_eq!(Required::of("neon", "x86_64"), required("", true));
        assert_eq!(Required::of("avx2", "x86_64"), required("avx2", false));
        assert_eq!(Required::of("", "x86_64"), required("", false));
        assert_eq!(Required::of("portable,neon", "aarch64"), required("portable,neon", false));
    }
}
