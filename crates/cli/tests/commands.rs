//! `docs/commands.md` has every command and every option, and no other.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

const COMMANDS: [&[&str]; 16] = [
    &["train"],
    &["stage"],
    &["eval"],
    &["generate"],
    &["fetch"],
    &["export"],
    &["codec", "encode"],
    &["codec", "decode"],
    &["codec", "roundtrip"],
    &["bench", "codec"],
    &["bench", "train"],
    &["bench", "allreduce"],
    &["lab"],
    &["plan"],
    &["inspect"],
    &["key"],
];

/// What `--help` prints.
fn help(command: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_thinwire")).args(command).arg("--help").output();
    String::from_utf8(output.unwrap().stdout).unwrap()
}

/// The long options at the front of lines, as help texts and tables have them.
fn options(text: &str, front: &str) -> BTreeSet<String> {
    let names = text.lines().filter_map(|line| line.trim_start().strip_prefix(front)?.strip_prefix("--"));
    names.map(|line| line.split([' ', '`', '<']).next().unwrap().to_owned()).collect()
}

#[test]
fn the_page_is_complete() {
    let page =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/commands.md")).unwrap();
    for name in [
        "train", "stage", "eval", "generate", "fetch", "export", "codec", "bench", "lab", "plan", "inspect",
        "key",
    ] {
        let section = page.split("\n## ").find(|section| section.starts_with(&format!("thinwire {name}\n")));
        let documented = options(section.unwrap(), "| `");
        let commands = COMMANDS.iter().filter(|command| command[0] == name);
        let mut offered: BTreeSet<String> =
            commands.flat_map(|command| options(&help(command), "")).collect();
        offered.remove("json"); // every command has it
        assert_eq!(documented, offered, "{name}");
    }
    let listed = help(&[]);
    let listed = listed.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let listed: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(
        listed,
        [
            "train", "stage", "eval", "generate", "fetch", "export", "codec", "bench", "lab", "plan",
            "inspect", "key", "help"
        ]
    );
}
