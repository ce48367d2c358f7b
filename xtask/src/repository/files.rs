//! The files a commit of this checkout holds or would hold.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

/// Every file git knows or would add, with the contents of those that are text.
#[derive(Default)]
pub(super) struct Files {
    paths: BTreeSet<String>,
    texts: Vec<TextFile>,
}

/// A UTF-8 file.
pub(super) struct TextFile {
    /// Relative to the root, with `/`.
    pub(super) path: String,
    pub(super) text: String,
}

impl Files {
    /// # Errors
    ///
    /// A sentence for the user: git is missing or refuses, or a file cannot be read.
    pub(super) fn read(root: &Path) -> Result<Self, String> {
        Self::read_listed(root, list(root)?)
    }

    fn read_listed(root: &Path, paths: Vec<String>) -> Result<Self, String> {
        let mut files = Self::default();
        for path in paths {
            match fs::read(root.join(&path)) {
                Ok(bytes) => files.insert(path, bytes),
                // Deleted, and not committed yet.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(format!("cannot read {path}: {error}")),
            }
        }
        Ok(files)
    }

    fn insert(&mut self, path: String, bytes: Vec<u8>) {
        self.paths.insert(path.clone());
        if let Ok(text) = String::from_utf8(bytes) {
            self.texts.push(TextFile { path, text });
        }
    }

    pub(super) fn len(&self) -> usize {
        self.paths.len()
    }

    pub(super) fn texts(&self) -> impl Iterator<Item = &TextFile> {
        self.texts.iter()
    }

    /// Text files whose name ends in `.extension`.
    pub(super) fn with_extension(&self, extension: &str) -> impl Iterator<Item = &TextFile> {
        self.texts().filter(move |file| file.has_extension(extension))
    }

    /// Whether `path` is a file, or a folder with a file in it; the empty path is the root.
    pub(super) fn exists(&self, path: &str) -> bool {
        let folder = format!("{path}/");
        path.is_empty()
            || self.paths.contains(path)
            || self.paths.iter().any(|file| file.starts_with(&folder))
    }

    #[cfg(test)]
    pub(super) fn of<const N: usize>(files: [(&str, &str); N]) -> Self {
        let mut result = Self::default();
        for (path, text) in files {
            result.insert(path.to_owned(), text.as_bytes().to_vec());
        }
        result
    }
}

impl TextFile {
    pub(super) fn has_extension(&self, extension: &str) -> bool {
        Path::new(&self.path).extension().is_some_and(|found| found == extension)
    }

    /// Lines with their numbers, from 1.
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }
}

fn list(root: &Path) -> Result<Vec<String>, String> {
    let output = Command::new("git")
        // In a container the checkout may belong to another user, which git takes for an attack.
        .args(["-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("cannot start git, which lists the files to check: {error}"))?;
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr);
        return Err(format!("git cannot list the files of {}: {}", root.display(), reason.trim()));
    }
    let listed = String::from_utf8(output.stdout).map_err(|_| "a file name is not UTF-8".to_owned())?;
    Ok(listed.split_terminator('\0').map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorts_out_text_and_folders() {
        let mut files = Files::of([("docs/a.md", "a"), ("src/b.rs", "b")]);
        files.insert("data/c.bin".to_owned(), vec![0xff, 0xfe]);

        assert_eq!(files.len(), 3);
        assert_eq!(files.texts().count(), 2);
        assert_eq!(files.with_extension("md").count(), 1);
        assert!(files.exists("data/c.bin") && files.exists("docs") && files.exists(""));
        assert!(!files.exists("doc") && !files.exists("docs/b.md"));
    }

    #[test]
    fn a_deleted_file_is_left_out() {
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        let listed = ["Cargo.toml", "deleted.rs"].map(str::to_owned).to_vec();
        let files = Files::read_listed(package, listed).unwrap();
        assert_eq!(files.len(), 1);
        assert!(files.texts().all(|file| file.text.contains("name = \"xtask\"")));
    }

    #[test]
    fn a_folder_that_is_no_checkout_is_an_error() {
        assert!(Files::read(Path::new("/")).is_err());
    }
}
