//! The workspace's own tasks. `cargo xtask test` is the one test command; it needs only a Rust toolchain and git,
//! and `cargo xtask assets` fetches the real models and the text that some tests use.

mod aarch64;
mod assets;
mod phase;
mod repository;
mod test;
mod transformers;

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use phase::Outcome;
use test::Scope;

const USAGE: &str = "\
usage: cargo xtask test [--quick]
       cargo xtask assets

  test           repository checks, rustfmt, clippy, rustdoc, then every test in the release profile
  test --quick   the tests alone
  assets         fetch the real models and the text some tests use into target/assets; needs Python, npm and their indexes";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let task: fn(&Path) -> Outcome = match arguments[..] {
        ["test"] => |root| test::run(root, Scope::Everything),
        ["test", "--quick"] => |root| test::run(root, Scope::TestsOnly),
        ["assets"] => assets::fetch,
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    let Some(root) = workspace_root() else {
        eprintln!("error: not started by cargo; run `cargo xtask test`");
        return ExitCode::from(2);
    };
    match task(&root) {
        Ok(()) => ExitCode::SUCCESS,
        Err(code) => ExitCode::from(code),
    }
}

/// The folder above this package. Asked at run time: a build folder can outlive the checkout that filled it.
fn workspace_root() -> Option<PathBuf> {
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR")?);
    package.parent().map(PathBuf::from)
}
