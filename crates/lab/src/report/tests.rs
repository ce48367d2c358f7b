//! The report of hand-made rows.

use std::path::PathBuf;

use thinwire_train::config::LayerPlan;
use thinwire_train::metrics::{
    AllReduceRecord, Direction, LinkRecord, LinkSummary, RunReport, StageRecord, StageSummary, StageTimes,
    StepRecord,
};

use super::table::Table;
use super::*;

const EXPERIMENT: &str = r#"
    lab = { title = "A <b>title</b> & more", config = "c", dir = "d", reference = "f32", compare = ["aq"], seeds = [1, 2], warmup = 1 }
    link = [{ rate = "5mbit" }, { rate = "10mbit" }]
    setting = [{ name = "f32" }, { name = "aq" }, { name = "tah <i>\"4\"" }]
"#;
const TAH: &str = "tah <i>\"4\"";

/// What the two ranks of stage 0 sent each other.
fn between_ranks(bytes: u64) -> Vec<AllReduceRecord> {
    vec![AllReduceRecord {
        stage: 0,
        ranks: 2,
        direction: Direction::Forward,
        calls: 1,
        elements: bytes,
        bytes,
        total_bytes: bytes,
        f32_bytes: 8 * bytes,
        bits_per_element: Some(4.0),
    }]
}

/// A step of two stages in `seconds`; half of stage 0's time is computation.
fn step(step: u64, loss: f64, seconds: f64) -> StepRecord {
    let link = |from, to, direction, bytes| LinkRecord {
        from,
        to,
        direction,
        bytes,
        total_bytes: bytes * step,
        bits_per_element: Some(4.0),
        rel_sq_error: None,
        messages: 1,
        raw_messages: 0,
        raw_bytes: 0,
    };
    let times = |compute: f64| StageTimes {
        compute,
        wait: seconds - compute,
        send: 0.25 * seconds,
        ..StageTimes::default()
    };
    StepRecord {
        step,
        loss,
        perplexity: loss.exp(),
        learning_rate: 1e-3,
        gradient_norm: 1.0,
        skipped: false,
        tokens: 1000,
        seconds,
        tokens_per_second: 1000.0 / seconds,
        links: vec![link(0, 1, Direction::Forward, 100 * step), link(1, 0, Direction::Backward, 300)],
        all_reduces: between_ranks(10 * step),
        stages: [0.5, 0.75]
            .into_iter()
            .enumerate()
            .map(|(stage, share)| StageRecord { stage, seconds, times: times(share * seconds) })
            .collect(),
    }
}

fn run_report(final_loss: f64) -> RunReport {
    let link = |from, to, direction, bits, elements| LinkSummary {
        from,
        to,
        direction,
        bytes: 0,
        bits_per_element: Some(bits),
        rel_sq_error: None,
        elements,
        messages: 1,
        raw_messages: 0,
        raw_bytes: 0,
        memory_bytes: 5 * elements,
        bf16_bytes: 0,
        f32_bytes: 0,
        bandwidth: None,
    };
    RunReport {
        final_loss,
        heldout_perplexity: Some(10.0 * final_loss),
        tokens_per_second: 0.0,
        links: vec![link(0, 1, Direction::Forward, 4.0, 300), link(1, 2, Direction::Forward, 8.0, 100)],
        all_reduces: between_ranks(60),
        sums: Vec::new(),
        steps: 4,
        tokens: 4000,
        seconds: 4.0,
        stages: vec![StageSummary { stage: 1, peak_memory: Some(7) }],
        run_dir: PathBuf::new(),
        comparison: None,
    }
}

fn row(
    rate: &str,
    setting: &str,
    seed: u64,
    losses: &[f64],
    seconds: f64,
    failed: Option<&str>,
) -> (Finished, Figures) {
    // The warm-up step is slow.
    let time = |step: u64| if step == 1 { 100.0 } else { seconds };
    let steps: Vec<_> = (1..).zip(losses).map(|(number, loss)| step(number, *loss, time(number))).collect();
    let report = failed.is_none().then(|| run_report(*losses.last().unwrap()));
    let figures = Figures::of(&steps, report.as_ref(), Some(4_000), 1);
    let measured = |measured| vec![LinkRate { from: 0, to: 1, measured, expected: 4_780_000 }];
    let finished = Finished {
        at: Coordinates {
            rate: Some(rate.parse().unwrap()),
            latency: None,
            variant: None,
            setting: setting.into(),
            seed,
        },
        fingerprint: String::new(),
        command: vec!["thinwire".into(), "<x>".into()],
        layers: LayerPlan::Auto,
        seconds: 1.0,
        links_before: measured(4_700_000),
        links_after: measured(4_800_000),
        outcome: match (failed, report) {
            (None, Some(report)) => Outcome::Done(Box::new(report)),
            (error, _) => Outcome::Failed(error.unwrap_or_default().into()),
        },
    };
    (finished, figures)
}

fn report() -> Report {
    let experiment = Experiment::parse_in(EXPERIMENT, &PathBuf::new()).unwrap();
    let mut rows = Vec::new();
    for (rate, slow) in [("5mbit", 8.0), ("10mbit", 4.0)] {
        rows.push(row(rate, "f32", 1, &[4.0, 3.0, 2.0], slow, None));
        rows.push(row(rate, "aq", 1, &[4.0, 3.0, 2.0], slow / 2.0, None));
        rows.push(row(rate, TAH, 1, &[4.0, 3.3, 1.9], slow / 4.0, None));
        rows.push(row(rate, "f32", 2, &[4.0, 3.0, 2.0], slow, None));
        rows.push(row(rate, "aq", 2, &[4.0, f64::NAN], slow / 2.0, Some("stage 1: NaN, \"bad\" <news>")));
        rows.push(row(rate, TAH, 2, &[4.0, 3.0, 2.2], slow / 6.0, None));
    }
    Report::new(&experiment, rows, "1.2.3", "thinwire lab <e>.toml")
}

fn close(value: f64, expected: f64) {
    assert!((value - expected).abs() < 1e-12 * expected.abs(), "{value}, not {expected}");
}

#[test]
fn a_row_says_what_its_records_come_to() {
    let report = report();
    let row = &report.rows[2];
    let figures = &row.figures;
    assert_eq!(figures.speed(), Some(500.0), "2 s a step, without the warm-up");
    assert_eq!(
        figures.losses.iter().map(|point| point.seconds).collect::<Vec<_>>(),
        [Some(100.0), Some(102.0), Some(104.0)]
    );
    assert_eq!((figures.forward.bytes_per_step, figures.backward.bytes_per_step), (Some(250.0), Some(300.0)));
    assert_eq!((figures.forward.bits_per_element, figures.backward.bits_per_element), (Some(5.0), None));
    assert_eq!((figures.forward.busy, figures.backward.busy), (Some(0.25), Some(0.3)));
    let [forward, backward] = figures.ranks;
    assert_eq!((forward.bytes_per_step, forward.bits_per_element), (Some(25.0), Some(4.0)));
    assert_eq!((backward.bytes_per_step, backward.bits_per_element), (None, None));
    let [first, second] = &figures.stages[..] else { panic!("two stages") };
    assert_eq!((first.shares.compute, first.shares.wait, first.shares.send), (0.5, 0.5, 0.25));
    assert_eq!((second.shares.compute, first.peak_memory, second.peak_memory), (0.75, None, Some(7)));
    assert_eq!(figures.remembered, Some(5 * (300 + 100)));
    assert_eq!(row.measured_rate(), Some(4_750_000.0));
}

#[test]
fn ranks_have_a_table_where_there_are_any() {
    let titles = |report: &Report| Table::all(report).iter().map(|table| table.title).collect::<Vec<_>>();
    let mut report = report();
    assert!(titles(&report).contains(&"Between ranks"));
    for row in &mut report.rows {
        row.figures.ranks = Default::default();
    }
    assert!(!titles(&report).contains(&"Between ranks"));
}

#[test]
fn rows_are_set_against_the_same_link_and_seed() {
    let report = report();
    let factors =
        |row: &ReportRow| row.speedups.iter().map(|one| (one.over.clone(), one.factor)).collect::<Vec<_>>();
    assert_eq!(factors(&report.rows[2]), [("f32".to_owned(), 4.0), ("aq".to_owned(), 2.0)]);
    assert_eq!(factors(&report.rows[4]), [], "a row that failed has no speed");
    assert_eq!(report.rows[5].speedups.len(), 1, "none over a row that failed");
    close(report.rows[5].speedups[0].factor, 6.0);
    let difference = report.rows[2].loss_difference.unwrap();
    close(difference.largest, 0.1);
    close(difference.last, -0.05);
    close(difference.perplexity.unwrap(), -0.05);
    assert_eq!(report.rows[4].loss_difference.unwrap().largest, f64::INFINITY, "NaN is further than any");
}

#[test]
fn groups_are_means_over_the_seeds_that_ended_well() {
    let report = report();
    assert_eq!(report.groups.len(), 6);
    let tah = &report.groups[2];
    assert_eq!((tah.rows, tah.failed), (2, 0));
    close(tah.speedup("f32").unwrap().mean, 5.0);
    close(tah.speedup("f32").unwrap().deviation.unwrap(), 2f64.sqrt());
    close(tah.final_loss.unwrap().mean, 2.05);
    close(tah.largest_loss_difference.unwrap(), 0.1);
    let aq = &report.groups[1];
    assert_eq!((aq.rows, aq.failed, aq.tokens_per_second.unwrap().deviation), (1, 1, None));
}

#[test]
fn the_json_has_numbers_or_null() {
    let json = serde_json::to_value(report()).unwrap();
    let row = &json["rows"][4];
    assert_eq!((&row["rate"], &row["setting"], &row["seed"]), (&"5mbit".into(), &"aq".into(), &2.into()));
    assert!(row["losses"][1]["loss"].is_null() && row["final_loss"].is_null());
    assert_eq!(json["rows"][2]["speedups"][0]["factor"], 4.0);
}

#[test]
fn the_csv_has_a_cell_for_each_column() {
    let csv = report().to_csv();
    let lines: Vec<&str> = csv.split_terminator("\r\n").collect();
    assert_eq!(lines.len(), 13);
    let cells = |line: &str| {
        let (mut cells, mut quoted) = (1, false);
        for c in line.chars() {
            quoted ^= c == '"';
            cells += usize::from(c == ',' && !quoted);
        }
        cells
    };
    assert!(lines.iter().all(|line| cells(line) == cells(lines[0])), "{csv}");
    assert!(
        lines[3].starts_with("5000000,,,\"tah <i>\"\"4\"\"\",1,,3,500,500,500,2,1.9,19,"),
        "{}",
        lines[3]
    );
    assert!(lines[5].contains(",\"stage 1: NaN, \"\"bad\"\" <news>\","), "{}", lines[5]);
}

/// The names of elements that are open at the end, or closed without being open.
fn unbalanced(page: &str) -> Vec<String> {
    let (mut open, mut wrong) = (Vec::new(), Vec::new());
    for tag in page.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').expect("a tag that ends");
        let name = tag.split([' ', '\n', '/']).find(|part| !part.is_empty()).unwrap_or_default();
        match tag {
            _ if name.starts_with('!') || name == "meta" || tag.ends_with('/') => {}
            _ if tag.starts_with('/') => {
                if open.pop() != Some(name) {
                    wrong.push(format!("/{name}"));
                }
            }
            _ => open.push(name),
        }
    }
    wrong.extend(open.into_iter().map(str::to_owned));
    wrong
}

#[test]
fn the_page_escapes_names_and_closes_its_tags() {
    let report = report();
    let plots = plot::all(&report).unwrap();
    let page = report.to_html(&plots);
    assert_eq!(unbalanced(&page), [""; 0]);
    assert_eq!(unbalanced("<p><b></p>"), ["/p", "p"], "this test can fail");
    for raw in ["<b>title", "<i>", "<news>", "<x>", "<e>", "<script", "http-equiv"] {
        assert!(!page.contains(raw), "{raw}");
    }
    for text in [
        "A &lt;b&gt;title&lt;/b&gt; &amp; more",
        "tah &lt;i&gt;&quot;4&quot;",
        "5.00x ± 1.41x",
        "Thinwire 1.2.3",
        "thinwire lab &lt;e&gt;",
    ] {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn there_is_a_picture_of_each_kind() {
    let plots = plot::all(&report()).unwrap();
    let names: Vec<&str> = plots.iter().map(|plot| &*plot.name).collect();
    let expected = [
        "throughput",
        "speedup-over-f32",
        "speedup-over-aq",
        "loss-steps",
        "loss-time-5mbit",
        "loss-time-10mbit",
        "time-5mbit",
        "time-10mbit",
    ];
    assert_eq!(names, expected, "losses do not depend on the link");
    for plot in &plots {
        assert!(plot.svg.trim_start().starts_with("<svg") && !plot.svg.contains("NaN"), "{}", plot.name);
        assert_eq!(unbalanced(&plot.svg), [""; 0], "{}", plot.name);
    }
    assert_eq!(plots[0].svg.matches("<circle").count(), 6, "three settings at two rates");
}

#[test]
fn the_report_is_written_and_removed_whole() {
    let folder = tempfile::tempdir().unwrap();
    let page = report().write(folder.path()).unwrap();
    let names = || {
        let mut names: Vec<_> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    assert_eq!(names(), ["plots", "report.html", "report.json", "rows.csv"]);
    assert!(page.ends_with("report.html") && folder.path().join("plots/throughput.svg").exists());
    Report::remove(folder.path()).unwrap();
    Report::remove(folder.path()).unwrap();
    assert_eq!(names(), [""; 0]);
}
