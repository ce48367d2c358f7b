//! Networks of namespaces, from outside.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;

use thinwire_lab::network::{Network, NetworkError};

/// Whether this user, on this system, can have networks; if not, that is said past the test harness, which would keep it
/// to itself.
pub(crate) fn can_have_networks(what: &str) -> bool {
    match Network::chain(1, "1mbit".parse().unwrap()) {
        Ok(_) => true,
        Err(NetworkError::Unsupported | NetworkError::Namespace { .. } | NetworkError::Start { .. }) => {
            let mut stderr = io::stderr();
            writeln!(stderr, "NOT RUN: {what}; it needs Linux, root, `ip` and `tc`").unwrap();
            false
        }
        Err(error) => panic!("{error}"),
    }
}

/// The network namespace of a process, unless it has ended.
pub(crate) fn namespace(id: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{id}/ns/net")).ok()
}

/// Processes in one of these namespaces.
pub(crate) fn processes_in(namespaces: &BTreeSet<PathBuf>) -> Vec<u32> {
    let ids =
        fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    ids.filter(|id| namespace(*id).is_some_and(|own| namespaces.contains(&own))).collect()
}
