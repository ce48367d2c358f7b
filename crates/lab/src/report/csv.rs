//! The rows as CSV (RFC 4180): one line a row, one column a figure.

use super::{Report, ReportRow};

impl Report {
    pub(super) fn to_csv(&self) -> String {
        let speedups: Vec<String> = self.references().map(|over| format!("speedup over {over}")).collect();
        let stages = self.rows.iter().map(|row| row.figures.stages.len()).max().unwrap_or(0);
        let parts = ["compute", "optimizer", "wait", "encode", "send", "decode", "peak memory"];
        let stages = (0..stages).flat_map(|stage| parts.map(|part| format!("stage {stage} {part}")));
        let header: Vec<String> =
            COLUMNS.iter().map(|name| (*name).to_owned()).chain(speedups).chain(stages).collect();
        let rows = self.rows.iter().map(|row| self.cells(row));
        let lines = std::iter::once(header).chain(rows).map(|cells| {
            let cells: Vec<String> = cells.iter().map(|cell| quoted(cell)).collect();
            cells.join(",") + "\r\n"
        });
        lines.collect()
    }

    fn cells(&self, row: &ReportRow) -> Vec<String> {
        let (at, figures) = (&row.at, &row.figures);
        let speed = figures.tokens_per_second;
        let difference = row.loss_difference;
        let mut cells = vec![
            number(at.rate.map(|rate| rate.rate().bits_per_second() as f64)),
            number(at.latency.map(|latency| latency.duration().as_secs_f64())),
            at.variant.clone().unwrap_or_default(),
            at.setting.clone(),
            at.seed.to_string(),
            row.error.clone().unwrap_or_default(),
            figures.losses.len().to_string(),
            number(speed.map(|speed| speed.median)),
            number(speed.map(|speed| speed.low)),
            number(speed.map(|speed| speed.high)),
            number(figures.step_seconds),
            number(figures.final_loss),
            number(figures.heldout_perplexity),
            number(difference.map(|difference| difference.largest)),
            number(difference.map(|difference| difference.last)),
            number(figures.forward.bytes_per_step),
            number(figures.forward.bits_per_element),
            number(figures.forward.busy),
            number(figures.backward.bytes_per_step),
            number(figures.backward.bits_per_element),
            number(figures.backward.busy),
            number(row.measured_rate()),
            number(figures.remembered.map(|bytes| bytes as f64)),
            number(row.fidelity.iter().map(|point| point.step_error).reduce(f64::max)),
            number(row.fidelity.iter().map(|point| point.mean_error).reduce(f64::max)),
        ];
        let ranks = figures.ranks.iter();
        cells.extend(ranks.flat_map(|one| [number(one.bytes_per_step), number(one.bits_per_element)]));
        let factor = |over: &String| row.speedups.iter().find(|one| one.over == *over).map(|one| one.factor);
        cells.extend(self.references().map(|over| number(factor(over))));
        for stage in &figures.stages {
            let t = stage.shares;
            cells.extend(
                [t.compute, t.optimizer, t.wait, t.encode, t.send, t.decode].map(|share| number(Some(share))),
            );
            cells.push(number(stage.peak_memory.map(|bytes| bytes as f64)));
        }
        cells
    }
}

const COLUMNS: [&str; 29] = [
    "rate",
    "latency",
    "variant",
    "setting",
    "seed",
    "error",
    "steps",
    "tokens/s",
    "tokens/s first quartile",
    "tokens/s third quartile",
    "step seconds",
    "final loss",
    "held-out perplexity",
    "largest loss difference",
    "last loss difference",
    "forward bytes a step",
    "forward bits/element",
    "forward link busy",
    "backward bytes a step",
    "backward bits/element",
    "backward link busy",
    "measured rate",
    "bytes remembered",
    "largest gradient error of a step",
    "largest gradient error of a mean",
    "forward bytes a step between ranks",
    "forward bits/element between ranks",
    "backward bytes a step between ranks",
    "backward bits/element between ranks",
];

fn number(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn quoted(cell: &str) -> String {
    if cell.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}
