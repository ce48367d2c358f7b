//! Experiments over links that are really slow.

use serde_json::Value;

use super::experiment::{Lab, SETTINGS, can_have_networks};
use super::recipe::succeed;

#[test]
fn rows_run_over_links_of_the_rates_asked_for() {
    if !can_have_networks("an experiment with two rates") {
        return;
    }
    let links = "[[link]]\nrate = \"1mbit\"\n[[link]]\nrate = \"20mbit\"\nlatency = \"5ms\"\n";
    let lab = Lab::new(&format!("{links}{SETTINGS}"));
    let report = succeed(&mut lab.command(&["--set", "train.steps=4"]));
    let rows = report["rows"].as_array().unwrap();
    let names: Vec<_> = rows.iter().map(|row| [&row["rate"], &row["latency"], &row["setting"]]).collect();
    let null = &Value::Null;
    let [slow, fast, late] = [&Value::from("1mbit"), &Value::from("20mbit"), &Value::from("5ms")];
    let [f32, tah] = [&Value::from("f32"), &Value::from("tah")];
    assert_eq!(names, [[slow, null, f32], [slow, null, tah], [fast, late, f32], [fast, late, tah]]);
    for row in rows {
        let bits = if row["rate"] == *slow { 1e6 } else { 20e6 };
        for when in ["links_before", "links_after"] {
            let links = row[when].as_array().unwrap();
            assert_eq!(links.len(), 2, "both directions");
            for link in links {
                let share = link["measured"].as_f64().unwrap() / bits;
                assert!((share / (1448.0 / 1514.0) - 1.0).abs() < 0.05, "{share} of {bits} bit/s");
            }
        }
        // No step is faster than its bytes pass the link, less what the bucket lets through at once.
        let bytes = row["forward"]["bytes_per_step"].as_f64().unwrap();
        let least = (bytes - f64::from(8 << 10)) * 8.0 / bits;
        assert!(row["step_seconds"].as_f64().unwrap() > least, "{row}");
    }
    assert_eq!(rows[0]["losses"][3]["loss"], rows[2]["losses"][3]["loss"], "the link changes no bit");
    let factor = |row: &Value| row["speedups"][0]["factor"].as_f64().unwrap();
    assert!(factor(&rows[1]) > 1.0, "the slow link carries 8 times the bytes: {}", factor(&rows[1]));
    for plot in ["throughput", "speedup-over-f32", "loss-steps", "loss-time-20mbit-5ms", "time-1mbit"] {
        let there = lab.path(&format!("plots/{plot}.svg")).exists();
        // One picture of throughput needs several rates of one latency.
        assert_eq!(there, !plot.starts_with("throughput") && !plot.starts_with("speedup"), "{plot}");
    }
}

#[test]
fn links_that_are_not_as_asked_for_make_no_row() {
    if !can_have_networks("an experiment with a tolerance that no link meets") {
        return;
    }
    let lab = Lab::new("    tolerance = 1e-9\n[[link]]\nrate = \"5mbit\"\n[[setting]]\nname = \"f32\"\n");
    let output = lab.command(&[]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let report = lab.report();
    let error = report["rows"][0]["error"].as_str().unwrap();
    assert!(
        error.contains("the link from stage 0 to stage 1 carries ") && error.contains("rate of 5mbit"),
        "{error}"
    );
    assert!(!lab.path("rows/5mbit/f32/seed-1/metrics.jsonl").exists(), "nothing was trained");
}
