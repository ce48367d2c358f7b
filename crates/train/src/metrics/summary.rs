//! A run's result, for people: the table at its end.

use std::fmt::{self, Write};

use super::record::AllReduceRecord;
use super::report::{LinkSummary, RunReport};
use super::text;

/// The result as plain text of at most 80 columns (as long as folder names allow).
impl fmt::Display for RunReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.links.is_empty() {
            Table::traffic(&self.links).write(f)?;
            for link in self.links.iter().filter(|link| link.raw_messages > 0) {
                let (raw, all) = (text::count(link.raw_messages), text::count(link.messages));
                writeln!(
                    f,
                    "{}: {raw} of {all} messages went raw, {}",
                    name(link),
                    text::bytes(link.raw_bytes)
                )?;
            }
            for link in self.links.iter().filter(|link| link.memory_bytes > 0) {
                writeln!(f, "{}: {} remembered at either end", name(link), text::bytes(link.memory_bytes))?;
            }
            writeln!(f)?;
        }
        if !self.all_reduces.is_empty() {
            Table::all_reduces(&self.all_reduces).write(f)?;
            writeln!(f)?;
        }
        if self.links.iter().any(|link| link.bandwidth.is_some()) {
            Table::transfer_times(&self.links).write(f)?;
            writeln!(f)?;
        }
        self.outcomes().write(f)?;
        writeln!(f)?;
        writeln!(f, "{} steps, {} tokens", text::count(self.steps), text::count(self.tokens))?;
        let peaks = self.stages.iter().filter_map(|own| Some((own.stage, own.peak_memory?)));
        let peaks: Vec<String> =
            peaks.map(|(stage, peak)| format!("{} (stage {stage})", text::bytes(peak))).collect();
        if !peaks.is_empty() {
            writeln!(f, "peak memory: {}", peaks.join(", "))?;
        }
        write!(f, "files: {}", self.run_dir.display())?;
        if let Some(other) = &self.comparison {
            write!(f, "\ncompared with: {}", other.run_dir.display())?;
            write!(f, "\nloss curves: {}", other.plot.display())?;
        }
        Ok(())
    }
}

impl RunReport {
    fn outcomes(&self) -> Table {
        let mut table = Table::new(["run", "final loss", "held-out perplexity", "tokens/s", "time"]);
        let row = |name: &str, loss: f64, perplexity: Option<f64>, rate: f64, seconds: f64| {
            let perplexity = text::or_dash(perplexity, |p| format!("{p:.3}"));
            [
                name.to_owned(),
                format!("{loss:.4}"),
                perplexity,
                text::count(rate as u64),
                text::duration(seconds),
            ]
        };
        let rate = self.tokens_per_second;
        table.row(row("this one", self.final_loss, self.heldout_perplexity, rate, self.seconds));
        if let Some(other) = &self.comparison {
            let rate = other.tokens_per_second;
            table.row(row(&other.codec, other.final_loss, other.heldout_perplexity, rate, other.seconds));
            let percent = |ours: f64, theirs: f64| format!("{:+.2} %", (ours / theirs - 1.0) * 100.0);
            let perplexities = self.heldout_perplexity.zip(other.heldout_perplexity);
            table.row([
                "difference".to_owned(),
                format!("{:+.2} %", other.loss_difference_percent),
                perplexities.map_or_else(|| "-".to_owned(), |(ours, theirs)| percent(ours, theirs)),
                percent(self.tokens_per_second, other.tokens_per_second),
                percent(self.seconds, other.seconds),
            ]);
        }
        table
    }
}

/// A header and rows of cells; the first column is aligned to the left, the others to the right.
struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    fn new<const N: usize>(header: [&str; N]) -> Table {
        Table { rows: vec![Vec::from(header.map(str::to_owned))] }
    }

    fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(Vec::from(cells));
    }

    fn traffic(links: &[LinkSummary]) -> Table {
        let mut table = Table::new(["link", "sent", "as bf16", "as f32", "bits/element", "rel. sq. error"]);
        for link in links {
            table.row([
                name(link),
                text::bytes(link.bytes),
                text::bytes(link.bf16_bytes),
                text::bytes(link.f32_bytes),
                text::or_dash(link.bits_per_element, |bits| format!("{bits:.3}")),
                text::or_dash(link.rel_sq_error, |error| format!("{error:.2e}")),
            ]);
        }
        table
    }

    fn all_reduces(all: &[AllReduceRecord]) -> Table {
        let mut table = Table::new(["ranks of", "sums", "sent", "as bf16", "as f32", "bits/element"]);
        for all in all {
            table.row([
                format!("stage {} {}", all.stage, all.direction.name()),
                text::count(all.calls),
                text::bytes(all.bytes),
                text::bytes(all.f32_bytes / 2),
                text::bytes(all.f32_bytes),
                text::or_dash(all.bits_per_element, |bits| format!("{bits:.3}")),
            ]);
        }
        table
    }

    fn transfer_times(links: &[LinkSummary]) -> Table {
        let mut table = Table::new(["time on the link", "bandwidth", "sent", "as bf16", "as f32"]);
        for link in links {
            let time = |bytes| text::or_dash(link.transfer_seconds(bytes), text::duration);
            table.row([
                name(link),
                text::or_dash(link.bandwidth.map(|bits| bits as f64), text::bit_rate),
                time(link.bytes),
                time(link.bf16_bytes),
                time(link.f32_bytes),
            ]);
        }
        table
    }

    fn write(&self, out: &mut impl Write) -> fmt::Result {
        let columns = self.rows[0].len();
        let width =
            |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            write!(out, "{:<1$}", row[0], widths[0])?;
            for (cell, width) in row.iter().zip(&widths).skip(1) {
                write!(out, "  {cell:>width$}")?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}

fn name(link: &LinkSummary) -> String {
    format!("{} → {} {}", link.from, link.to, link.direction.name())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::event::Event;
    use super::super::report::{Comparison, Tally};
    use super::super::samples;
    use super::*;

    fn report(bandwidth: Option<u64>, dir: &str) -> RunReport {
        let mut tally = Tally::default();
        tally.add(&Event::Connected { stage: 0, peer: 1, address: "a:1".into(), bandwidth });
        tally.add(&samples::finished(0, 10));
        tally.add(&samples::finished(1, 10));
        tally.report(Path::new(dir)).unwrap()
    }

    #[test]
    fn figures_follow_from_the_events() {
        let report = report(Some(8000), "runs/a");
        assert_eq!((report.final_loss, report.heldout_perplexity), (4.0, Some(71.3)));
        assert_eq!((report.seconds, report.tokens_per_second), (20.0, 1024.0));
        let peaks: Vec<_> = report.stages.iter().map(|stage| (stage.stage, stage.peak_memory)).collect();
        assert_eq!(peaks, [(0, None), (1, Some(2_000_000))]);
        let [forward, backward] = &report.links[..] else { panic!("two links") };
        assert_eq!((forward.bytes, forward.bf16_bytes, forward.f32_bytes), (11_000, 41_000, 81_000));
        assert_eq!((forward.bits_per_element, forward.rel_sq_error), (Some(4.0), Some(0.002)));
        assert_eq!(
            (forward.transfer_seconds(forward.bytes), backward.transfer_seconds(1)),
            (Some(11.0), None)
        );
    }

    #[test]
    fn the_table_with_a_comparison() {
        let mut run = report(Some(8000), "runs/a");
        let mut other = report(Some(8000), "runs/b");
        (other.final_loss, other.seconds) = (3.2, 40.0);
        run.comparison = Some(Comparison::new(&run, &other, "raw:dtype=f32", Path::new("runs/a/loss.svg")));
        let expected = "\
link               sent  as bf16   as f32  bits/element  rel. sq. error
0 → 1 forward   11.0 kB  41.0 kB  81.0 kB         4.000         2.00e-3
1 → 0 backward  11.0 kB  41.0 kB  81.0 kB         4.000         2.00e-3

ranks of         sums     sent  as bf16   as f32  bits/element
stage 0 forward    80  4.00 kB  16.0 kB  32.0 kB         4.000

time on the link    bandwidth    sent  as bf16  as f32
0 → 1 forward     8.00 kbit/s  11.0 s   41.0 s  1m 21s
1 → 0 backward              -       -        -       -

run            final loss  held-out perplexity  tokens/s      time
this one           4.0000               71.300     1,024    20.0 s
raw:dtype=f32      3.2000               71.300     1,024    40.0 s
difference       +25.00 %              +0.00 %   +0.00 %  -50.00 %

10 steps, 20,480 tokens
peak memory: 2.00 MB (stage 1)
files: runs/a
compared with: runs/b
loss curves: runs/a/loss.svg";
        assert_eq!(run.to_string(), expected);
        assert!(run.to_string().lines().all(|line| line.chars().count() <= 80));
    }

    #[test]
    fn messages_below_the_threshold_are_told() {
        let mut report = report(None, "runs/a");
        assert!(!report.to_string().contains("went raw"));
        (report.links[1].messages, report.links[1].raw_messages, report.links[1].raw_bytes) = (40, 12, 3100);
        let text = report.to_string();
        assert!(text.contains("2.00e-3\n1 → 0 backward: 12 of 40 messages went raw, 3.10 kB\n\n"), "{text}");
    }

    #[test]
    fn what_is_remembered_is_told() {
        let mut report = report(None, "runs/a");
        assert!(!report.to_string().contains("remembered"));
        report.links[0].memory_bytes = 81_000;
        let text = report.to_string();
        assert!(text.contains("2.00e-3\n0 → 1 forward: 81.0 kB remembered at either end\n\n"), "{text}");
    }

    #[test]
    fn one_stage_has_no_links_to_tell_of() {
        let mut report = report(None, "runs/a");
        assert!(!report.to_string().contains("time on the link"));
        report.links.clear();
        assert!(report.to_string().starts_with("ranks of "));
        report.all_reduces.clear();
        assert!(report.to_string().starts_with("run "));
    }

    #[test]
    fn the_report_keeps_the_contract_of_json() {
        let json = serde_json::to_value(report(None, "runs/a")).unwrap();
        for key in ["final_loss", "heldout_perplexity", "tokens_per_second", "links"] {
            assert!(!json[key].is_null(), "{key}");
        }
        for key in ["from", "to", "direction", "bytes", "bits_per_element", "rel_sq_error"] {
            assert!(!json["links"][0][key].is_null(), "{key}");
        }
        assert_eq!(serde_json::from_value::<RunReport>(json).unwrap(), report(None, "runs/a"));
    }
}
