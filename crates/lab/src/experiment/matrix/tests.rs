use std::fs;

use super::*;

const CONFIG: &str = r#"
    run = { dir = "run", seed = 5 }
    model = { family = "llama", layers = 2, hidden = 32, heads = 4, kv_heads = 2, ffn = 48, context = 32, tie_embeddings = false }
    data = { train = "train.txt" }
    train = { steps = 6, sequence = 32 }
    pipeline = { stages = 2, layers = ["embed 0", "1 head"], bandwidth = "8mbit" }
"#;

const EXPERIMENT: &str = r#"
    lab = { title = "T", config = "c.toml", dir = "out", reference = "f32", seeds = [1, 2], set = ["train.steps=9"] }
    link = [{ rate = "5mbit" }, { rate = "1gbit", latency = "20ms" }]
    setting = [{ name = "f32", set = ["pipeline.forward=f32"] }, { name = "TAH, g=32", set = ["pipeline.forward=tah:g=32"] }]
    variant = [{ name = "one", set = ["train.micro_batch=1"] }, { name = "two", set = ["train.micro_batch=2"] }]
"#;

/// An experiment beside its configuration.
fn rows(edit: impl Fn(String) -> String, overrides: &[&str]) -> Result<Vec<Row>, ExperimentError> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("c.toml"), CONFIG).unwrap();
    fs::write(folder.path().join("e.toml"), edit(EXPERIMENT.to_owned())).unwrap();
    let overrides: Vec<String> = overrides.iter().map(|set| (*set).to_owned()).collect();
    Experiment::load(&folder.path().join("e.toml"))?.rows(&overrides)
}

fn error(edit: impl Fn(String) -> String, overrides: &[&str]) -> String {
    thinwire_train::text::chain(&rows(edit, overrides).unwrap_err())
}

#[test]
fn settings_are_innermost_and_each_row_has_its_changes() {
    let rows = rows(|text| text, &["train.micro_batches=3"]).unwrap();
    let names: Vec<String> = rows.iter().map(|row| row.at.to_string()).collect();
    assert_eq!(names.len(), 16);
    assert_eq!(
        names[..5],
        [
            "5mbit / one / f32 / seed 1",
            "5mbit / one / TAH, g=32 / seed 1",
            "5mbit / one / f32 / seed 2",
            "5mbit / one / TAH, g=32 / seed 2",
            "5mbit / two / f32 / seed 1",
        ]
    );
    assert_eq!(names[15], "1gbit +20ms / two / TAH, g=32 / seed 2");
    let Row { config, command, .. } = &rows[15];
    assert_eq!((config.train.steps, config.train.micro_batch, config.train.micro_batches), (9, 2, 3));
    assert_eq!(config.pipeline.forward, "tah:g=32".parse().unwrap());
    assert_eq!((config.run.seed, config.pipeline.bandwidth), (2, None), "the link itself is slow");
    assert_eq!(config.pipeline.latency, Some("20ms".parse().unwrap()));
    assert!(config.run.dir.ends_with("out/rows/1gbit-20ms/two/tah-g-32/seed-2"), "{:?}", config.run.dir);
    assert!(config.data.cache.as_ref().unwrap().ends_with("out/tokens"));
    let command = command.join(" ");
    assert!(command.starts_with("thinwire train /") && command.ends_with(" --set run.seed=2"), "{command}");
    let fingerprints: std::collections::BTreeSet<_> = rows.iter().map(|row| &row.fingerprint).collect();
    assert_eq!(fingerprints.len(), 16);
}

#[test]
fn axes_may_be_absent() {
    let rows = rows(|text| text.replace("link =", "variant = [] #").replacen("variant = [{", "# [{", 1), &[])
        .unwrap();
    let names: Vec<String> = rows.iter().map(|row| row.at.to_string()).collect();
    assert_eq!(names, ["f32 / seed 1", "TAH, g=32 / seed 1", "f32 / seed 2", "TAH, g=32 / seed 2"]);
    assert_eq!(rows[0].config.pipeline.bandwidth, Some("8mbit".parse().unwrap()), "links are as configured");
}

#[test]
fn a_filter_keeps_what_has_it_in_its_name() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("c.toml"), CONFIG).unwrap();
    let experiment = Experiment::parse_in(EXPERIMENT, folder.path()).unwrap();
    assert_eq!(experiment.rows_like("two / f32 / seed 1", &[]).unwrap().len(), 2);
    let error = experiment.rows_like("3mbit", &[]).unwrap_err().to_string();
    assert_eq!(error, "no row has `3mbit` in its name; the first row is 5mbit / one / f32 / seed 1");
}

#[test]
fn what_cannot_be_run_is_refused_before_anything_runs() {
    let replace = |from: &'static str, to: &'static str| move |text: String| text.replacen(from, to, 1);
    let cases: [(&str, &str, &str); 20] = [
        ("title", "tittle", "lab.tittle: unknown key; did you mean lab.title?"),
        ("latency", "delay", "link.delay: unknown key; "),
        ("rate = \"5mbit\"", "rate = \"5mb\"", "`5mb`: expected a bandwidth"),
        ("\"20ms\"", "\"20\"", "`20`: expected a latency"),
        ("rate = \"5mbit\"", "rate = \"199kbit\"", "link.rate = 199kbit: expected 200kbit or more"),
        ("\"two\"", "\"two\\n\"", "variant.name = \"two\\n\": expected at most 60 characters, in a line"),
        ("train.micro_batch=2", "run.seed=2", "has run.seed=2: expected neither run.dir nor run.seed"),
        (
            "reference = \"f32\"",
            "reference = \"f16\"",
            "lab.reference = f16: expected the name of a [[setting]]: f32, ",
        ),
        ("seeds = [1, 2]", "compare = [\"x\"]", "lab.compare = x: expected the name"),
        ("seeds = [1, 2]", "seeds = []", "lab.seeds = []: expected at least one seed"),
        ("seeds = [1, 2]", "seeds = [1, 1]", "lab.seeds = `1`: expected each once"),
        ("seeds = [1, 2]", "tolerance = 0.0", "lab.tolerance = 0: expected a share above 0"),
        ("\"two\"", "\"ONE \"", "variant.name = `ONE `: expected each once"),
        ("\"two\"", "\"..\"", "variant.name = `..`: expected a name with letters or digits"),
        ("seeds = [1, 2]", "warmup = 9", "train.steps = 9 and lab.warmup = 9: expected more steps"),
        ("tah:g=32\"", "tah:g=33\"", "the row 5mbit / one / TAH, g=32 / seed 1"),
        (
            "lab = {",
            "fidelity = { every = 2, batches = 3 }\nlab = {",
            "link = 2 entries: expected none with [fidelity]",
        ),
        (
            "lab = {",
            "fidelity = { every = 0, batches = 3 }\nlab = {",
            "fidelity.every = 0: expected 1 or more",
        ),
        ("lab = {", "fidelity = { every = 2, batch = 3 }\nlab = {", "fidelity.batch: unknown key"),
        ("c.toml", "d.toml", "cannot read the configuration"),
    ];
    for (from, to, expected) in cases {
        let error = error(replace(from, to), &[]);
        assert!(error.starts_with("in the experiment ") || error.contains("the row"), "{error}");
        assert!(error.contains(expected), "{from} -> {to}: {error}");
    }
}

#[test]
fn a_setting_that_the_configuration_does_not_take_names_the_row() {
    for (set, expected) in [
        ("train.stepz=3", "train.stepz: unknown key"),
        ("pipeline.stages=1", "pipeline.layers = 2 entries"),
        ("train.steps=0", "train.steps = 0"),
        ("pipeline.deadline_seconds=0.01", "pipeline.latency = 20ms: expected below"),
    ] {
        let error = error(|text| text, &[set]);
        assert!(error.starts_with("the configuration of the row ") && error.contains(expected), "{error}");
    }
    let one = ["pipeline.stages=1", "pipeline.layers=auto"];
    let without_links = |text: String| {
        text.replace("link =", "fidelity = { every = 2, batches = 3 }\nvariant = [] #").replacen(
            "variant = [{",
            "# [{",
            1,
        )
    };
    let shared = error(without_links, &["tensor_parallel.ranks=2"]);
    assert!(shared.contains("has tensor_parallel.ranks = 2: expected 1 with [fidelity]"), "{shared}");
    assert!(
        error(|text| text, &one).contains("has pipeline.stages = 1: expected 2 or more"),
        "no links to be slow"
    );
}
