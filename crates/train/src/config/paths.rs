//! Paths of the configuration, made absolute.

use std::path::{Component, Path, PathBuf};

/// `path` seen from `folder`, without the `.` and `..` on the way. `folder` has no symbolic links, so dropping a name
/// before `..` does not change where it leads.
pub fn join(folder: &Path, path: &Path) -> PathBuf {
    let mut joined = if path.is_absolute() { PathBuf::new() } else { folder.to_owned() };
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                joined.pop();
            }
            other => joined.push(other),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_before_two_dots_go() {
        for (path, expected) in [
            ("../runs/a", "/home/me/runs/a"),
            ("./text.txt", "/home/me/recipes/text.txt"),
            ("/data/../text.txt", "/text.txt"),
            ("../../../../etc", "/etc"),
            ("a/b/../../c", "/home/me/recipes/c"),
        ] {
            assert_eq!(join(Path::new("/home/me/recipes"), Path::new(path)), Path::new(expected), "{path}");
        }
    }
}
