//! Every dependency is declared once, in the root manifest, and explained in `docs/dependencies.md`.

use super::Finding;
use super::files::{Files, TextFile};

const MANIFEST: &str = "Cargo.toml";
const TABLE: &str = "docs/dependencies.md";

/// A workspace of its own, for another toolchain.
const FUZZ: &str = "fuzz/Cargo.toml";

pub(super) fn find(files: &Files) -> Vec<Finding> {
    let mut findings = Vec::new();
    let (mut declared, mut explained) = (Vec::new(), Vec::new());
    for file in files.texts() {
        if file.path == MANIFEST {
            declared = third_party(file);
        } else if file.path == TABLE {
            explained = rows(file);
        } else if file.path.ends_with("/Cargo.toml") && file.path != FUZZ {
            findings.extend(own_declarations(file));
        }
    }
    for (name, line) in &declared {
        if !explained.iter().any(|(other, _)| other == name) {
            findings.push(Finding::new(MANIFEST, *line, format!("`{name}` has no row in {TABLE}")));
        }
    }
    for (name, line) in &explained {
        if !declared.iter().any(|(other, _)| other == name) {
            findings.push(Finding::new(TABLE, *line, format!("`{name}` is no dependency of the workspace")));
        }
    }
    findings
}

/// Crates and their lines in `[workspace.dependencies]`, the workspace's own left out.
fn third_party(manifest: &TextFile) -> Vec<(&str, usize)> {
    let entries = entries(manifest).filter(|entry| entry.table == "workspace.dependencies");
    entries.filter(|entry| !entry.value.contains("path =")).map(|entry| (entry.key, entry.line)).collect()
}

/// Dependencies that a member does not take from the workspace.
fn own_declarations(manifest: &TextFile) -> Vec<Finding> {
    let dependencies = entries(manifest).filter(|entry| entry.table.ends_with("dependencies"));
    let own = dependencies
        .filter(|entry| !entry.key.ends_with(".workspace") && !entry.value.contains("workspace ="));
    own.map(|entry| {
        Finding::new(&manifest.path, entry.line, format!("`{}` is not `workspace = true`", entry.key))
    })
    .collect()
}

/// One `key = value` line of a manifest.
struct Entry<'a> {
    table: &'a str,
    key: &'a str,
    value: &'a str,
    line: usize,
}

/// The entries of a manifest whose dependencies take a line each, as everywhere here.
fn entries(manifest: &TextFile) -> impl Iterator<Item = Entry<'_>> {
    let mut table = "";
    manifest.lines().filter_map(move |(line, text)| {
        if let Some(header) = text.strip_prefix('[') {
            table = header.trim_end().trim_end_matches(']');
            return None;
        }
        let (key, value) = text.split_once('=')?;
        (!key.starts_with('#')).then(|| Entry { table, key: key.trim(), value, line })
    })
}

/// Crates and their lines in the first column of the table, as in `| rustls (with ring), half | ... |`.
fn rows(table: &TextFile) -> Vec<(&str, usize)> {
    let rows =
        table.lines().filter_map(|(line, text)| Some((line, text.strip_prefix('|')?.split('|').next()?)));
    rows.skip(2) // the heading and the rule below it
        .flat_map(|(line, cell)| cell.split(',').map(move |name| (name, line)))
        .map(|(name, line)| (name.split('(').next().unwrap_or(name).trim().trim_matches('`'), line))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "\
[workspace]
members = [\"crates/a\"]

[workspace.dependencies]
a = { path = \"crates/a\" }
# A comment = no entry.
half = \"2\"
rustls = { version = \"0.23\", features = [\"ring\"] }

[profile.release]
debug = true
";

    #[test]
    fn table_and_manifest_agree() {
        let table =
            "# Dependencies\n\n| crate | why |\n|---|---|\n| rustls (with ring), `half` | TLS; f16 |\n";
        assert_eq!(find(&Files::of([(MANIFEST, ROOT), (TABLE, table)])), []);
    }

    #[test]
    fn unexplained_and_forgotten() {
        let table = "| crate | why |\n|---|---|\n| half, serde | both |\n";
        let findings = find(&Files::of([(MANIFEST, ROOT), (TABLE, table)]));
        let expected = [
            Finding::new(MANIFEST, 8, "`rustls` has no row in docs/dependencies.md"),
            Finding::new(TABLE, 3, "`serde` is no dependency of the workspace"),
        ];
        assert_eq!(findings, expected);
    }

    #[test]
    fn members_inherit() {
        let member = "\
[package]
name = \"a\"

[dependencies]
half.workspace = true
rustls = { workspace = true, optional = true }

[dev-dependencies]
rand = \"0.10\"
";
        let expected = [Finding::new("crates/a/Cargo.toml", 9, "`rand` is not `workspace = true`")];
        assert_eq!(find(&Files::of([("crates/a/Cargo.toml", member)])), expected);
    }
}
