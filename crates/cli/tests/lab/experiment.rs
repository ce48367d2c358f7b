//! An experiment on a small model, in a folder of its own.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use super::common::thinwire;
pub(crate) use super::networks::can_have_networks;
use super::recipe::Recipe;

/// What every experiment here has.
const LAB: &str = r#"
    [lab]
    title = "small"
    config = "recipe.toml"
    dir = "lab"
    reference = "f32"
    set = ["pipeline.stages=2", 'pipeline.layers=["embed 0", "1 head"]']
"#;

/// Both ways uncompressed, and compressed.
pub(crate) const SETTINGS: &str = r#"
    [[setting]]
    name = "f32"
    set = ["pipeline.forward=f32", "pipeline.backward=f32", "pipeline.tied=f32"]
    [[setting]]
    name = "tah"
    set = ["pipeline.tied=tah:g=32"]
"#;

/// The experiment's folder.
pub(crate) struct Lab {
    pub(crate) recipe: Recipe,
}

impl Lab {
    /// An experiment of these axes.
    pub(crate) fn new(axes: &str) -> Self {
        let lab = Self { recipe: Recipe::new() };
        lab.write(&format!("{LAB}{axes}"));
        lab
    }

    /// Replaces the file.
    pub(crate) fn write(&self, text: &str) {
        fs::write(self.recipe.path("e.toml"), text).unwrap();
    }

    /// `thinwire lab --json`.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = thinwire(["lab", "--json"]);
        command.arg(self.recipe.path("e.toml")).args(arguments);
        command
    }

    /// Something in `lab.dir`.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.recipe.path("lab").join(name)
    }

    /// The report that was written.
    pub(crate) fn report(&self) -> Value {
        serde_json::from_slice(&fs::read(self.path("report.json")).unwrap()).unwrap()
    }
}
