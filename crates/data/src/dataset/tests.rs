use std::fs;

use super::*;
use crate::{Format, TokenizerSource};

const CHAT: &str = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>\n{% endfor %}\
                    {% if add_generation_prompt %}<assistant>{% endif %}";

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("chat.jinja"), CHAT).unwrap();
        Self(folder)
    }

    fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, contents).unwrap();
        path
    }

    fn settings(&self) -> DataSettings {
        DataSettings { template: Some(self.0.path().join("chat.jinja")), ..DataSettings::default() }
    }

    fn open(&self, paths: &[&Path], settings: &DataSettings) -> Result<Dataset, DataError> {
        open(paths, settings, Cache::IfLarge(self.0.path()), &mut |_| {})
    }
}

fn open(
    paths: &[&Path],
    settings: &DataSettings,
    cache: Cache<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Dataset, DataError> {
    let paths: Vec<PathBuf> = paths.iter().map(|path| path.to_path_buf()).collect();
    let tokenizer = Tokenizer::load(&TokenizerSource::Byte).unwrap();
    Dataset::open(&paths, settings, &tokenizer, 16, cache, progress)
}

/// The tokens as text; those trained on in capitals, a bar in front of each document.
fn shown(dataset: &Dataset) -> String {
    let entries = dataset.entries.read(0, dataset.entries.len() as usize).unwrap();
    let show = |&entry: &u32| {
        let letter = char::from_u32(crate::entry::id(entry)).unwrap();
        let letter = if crate::entry::is_trained(entry) { letter.to_ascii_uppercase() } else { letter };
        let bar = if crate::entry::is_start(entry) { "|" } else { "" };
        format!("{bar}{letter}").replace('\0', "0").replace('\n', "/")
    };
    entries.iter().map(show).collect()
}

#[test]
fn a_text_is_itself_and_several_are_kept_apart() {
    let folder = Folder::new();
    let (a, b) = (folder.write("a.txt", "abc"), folder.write("b.txt", "de"));
    let settings = folder.settings();
    assert_eq!(shown(&folder.open(&[&a], &settings).unwrap()), "|ABC");
    assert_eq!(shown(&folder.open(&[&a, &b], &settings).unwrap()), "|ABC0|DE0");
}

#[test]
fn records_are_documents_in_every_container() {
    let folder = Folder::new();
    let lines = folder.write("lines.jsonl", "{\"text\": \"abc\", \"id\": 1}\n{\"text\": \"de\"}\n");
    let array = folder.write("array.json", "[{\"text\": \"abc\"},\n{\"text\": \"de\"}]");
    let field = DataSettings { field: Some("body".to_owned()), ..folder.settings() };
    let other = folder.write("other.jsonl", "{\"body\": \"abc\"}\n{\"body\": \"de\"}\n");
    for (path, settings) in [(lines, folder.settings()), (array, folder.settings()), (other, field)] {
        let dataset = folder.open(&[&path], &settings).unwrap();
        assert_eq!(shown(&dataset), "|ABC0|DE0");
        assert_eq!(dataset.summary().to_string(), "2 documents, 7 tokens, 6 trained on");
    }
}

#[test]
fn only_answers_are_trained_on_in_every_style() {
    let folder = Folder::new();
    for (name, contents) in [
        (
            "m.jsonl",
            r#"{"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}"#,
        ),
        (
            "s.json",
            r#"[{"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]}]"#,
        ),
        ("a.jsonl", r#"{"instruction": "q", "input": "", "output": "a"}"#),
    ] {
        let path = folder.write(name, contents);
        let packed = folder.open(&[&path], &folder.settings()).unwrap();
        // No special token ends the turn here, so the line break does.
        assert_eq!(shown(&packed), "|<user>q</>/<assistant>A</>/0", "{name}");
        let padded = DataSettings { packing: Packing::Pad, ..folder.settings() };
        assert_eq!(shown(&folder.open(&[&path], &padded).unwrap()), "|<user>q</>/<assistant>A</>/", "{name}");
    }
}

#[test]
fn damaged_records_are_named_and_left_out_up_to_a_share() {
    let folder = Folder::new();
    let good = "{\"text\": \"abc\"}\n";
    let contents = format!("{}{{\"text\": 3}}\n\n{{}}\n{good}nonsense\n", good.repeat(7));
    let path = folder.write("d.jsonl", contents);
    let share = |damaged| folder.open(&[&path], &DataSettings { damaged, ..folder.settings() });
    let summary = share(0.3).unwrap().summary();
    assert_eq!((summary.documents, summary.damage.records, summary.damage.damaged), (8, 11, 3));
    let told = summary.to_string();
    for reason in [
        "8 documents, 32 tokens, 31 trained on; 3 of 11 records cannot be used (",
        "d.jsonl:8: the field `text` is not a text",
        "d.jsonl:10: the field `text` is missing",
        "d.jsonl:12: not valid JSON: ",
    ] {
        assert!(told.contains(reason), "{told}");
    }
    let error = share(0.2).unwrap_err().to_string();
    assert!(
        error.starts_with("3 of 11 records") && error.ends_with("more than data.damaged = 0.2"),
        "{error}"
    );
}

#[test]
fn what_cannot_be_data_is_refused() {
    let folder = Folder::new();
    let settings = folder.settings();
    let none = DataSettings { template: None, ..DataSettings::default() };
    let date = DataSettings { date: "yesterday".to_owned(), ..settings.clone() };
    let end = DataSettings { end_of_text: Some("<eos>".to_owned()), ..settings.clone() };
    let talk = r#"{"messages": [{"role": "assistant", "content": "a"}]}"#;
    for (name, contents, settings, expected) in [
        ("a.jsonl", "", &settings, "holds no record that can be read"),
        ("b.jsonl", "{\"body\": 1}", &settings, "set data.format"),
        ("c.txt", "x", &settings, "holds 1 tokens; at least 2 are needed"),
        ("d.jsonl", talk, &none, "a run names one in data.template"),
        ("e.jsonl", talk, &date, "data.date = yesterday"),
        ("f.jsonl", talk, &end, "no token `<eos>`"),
        ("g.jsonl", "{\"text\": \"\"}", &settings, "g.jsonl:1: the text is empty"),
    ] {
        let path = folder.write(name, contents);
        let error = folder.open(&[&path], settings).unwrap_err().to_string();
        assert!(error.contains(expected), "{name}: {error}");
    }
}

#[test]
fn data_on_disk_is_the_same_and_is_made_once() {
    let folder = Folder::new();
    let lines: Vec<String> =
        (0..500).map(|n| format!("{{\"text\": \"{}\"}}\n", "x".repeat(n % 37 + 1))).collect();
    let path = folder.write("l.jsonl", lines.concat());
    let cache = folder.0.path().join("cache");
    let mut heard = 0;
    let mut reopen = |settings: &DataSettings| {
        let before = heard;
        let mut hear = |_| heard += 1;
        let dataset = open(&[&path], settings, Cache::Always(&cache), &mut hear).unwrap();
        (dataset, heard > before)
    };
    let settings = folder.settings();
    let (on_disk, made) = reopen(&settings);
    assert!(made && matches!(on_disk.entries, Entries::File { .. }));
    let in_memory = folder.open(&[&path], &settings).unwrap();
    assert_eq!(shown(&on_disk), shown(&in_memory));
    assert_eq!((on_disk.content(), on_disk.settings()), (in_memory.content(), in_memory.settings()));
    assert!(!reopen(&settings).1, "the second time, it is there");
    let ends = DataSettings { end_of_text: Some("y".to_owned()), ..settings.clone() };
    assert!(reopen(&ends).1, "another setting, other tokens");
    fs::write(&path, "{\"text\": \"other\"}\n").unwrap();
    assert!(reopen(&settings).1, "another text, other tokens");
}

#[test]
fn settings_that_change_tokens_tell_data_sets_apart() {
    let folder = Folder::new();
    let path = folder.write(
        "m.jsonl",
        r#"{"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}"#,
    );
    let settings = folder.settings();
    let other = folder.write("other.jinja", CHAT.replace("</>", "<>"));
    let all = [
        settings.clone(),
        DataSettings { packing: Packing::Pad, ..settings.clone() },
        DataSettings { end_of_text: Some("e".to_owned()), ..settings.clone() },
        DataSettings { date: "2025-01-01".to_owned(), ..settings.clone() },
        DataSettings { template: Some(other), ..settings.clone() },
    ];
    let told: Vec<String> =
        all.iter().map(|s| folder.open(&[&path], s).unwrap().settings().to_owned()).collect();
    for (at, one) in told.iter().enumerate() {
        assert!(!told[..at].contains(one), "{one}");
    }
    let explicit = DataSettings { format: Format::Messages, damaged: 0.5, ..settings };
    assert_eq!(folder.open(&[&path], &explicit).unwrap().settings(), told[0]);
}
