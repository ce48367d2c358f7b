//! The live display of a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};

use super::super::record::{AllReduceRecord, LinkRecord, StageRecord, StepRecord};
use super::super::text;
use super::Progress;
use super::screen::Draw;

/// Lines are cut to this many columns, so that none wraps in a terminal of 80.
const WIDTH: usize = 79;

const BAR: &str = "step {pos}/{len} [{bar:24}] {percent} %  {elapsed_precise}, {eta_precise} left{msg}";

/// Redraws a second.
const REFRESH_HZ: u8 = 10;

/// How often the clock moves on when nothing else does.
const TICK: Duration = Duration::from_millis(500);

/// One progress bar whose message is all the lines below it: the terminal gets them in one write, so nothing
/// flickers.
#[derive(Debug)]
pub(in super::super) struct Live {
    bar: ProgressBar,
}

impl Live {
    pub(super) fn stderr(progress: &Progress) -> Live {
        let live = Live::on(ProgressDrawTarget::stderr_with_hz(REFRESH_HZ), progress);
        live.bar.enable_steady_tick(TICK);
        live
    }

    fn on(target: ProgressDrawTarget, progress: &Progress) -> Live {
        let style = ProgressStyle::with_template(BAR).expect("BAR is a valid template").progress_chars("=> ");
        // Abandoned: the last state stays on the screen when a run ends with an error, too.
        let bar = ProgressBar::with_draw_target(Some(progress.total_steps), target)
            .with_style(style)
            .with_finish(ProgressFinish::Abandon);
        bar.set_position(progress.first_step);
        // Steps of an earlier process say nothing about this one's speed.
        bar.reset_eta();
        let live = Live { bar };
        live.show(progress);
        live
    }

    fn show(&self, progress: &Progress) {
        self.bar.set_position(progress.done());
        self.bar.set_message(lines(progress).iter().fold(String::new(), |text, line| text + "\n" + line));
    }
}

impl Draw for Live {
    fn update(&mut self, progress: &Progress) {
        self.show(progress);
    }

    fn note(&mut self, line: &str) {
        self.bar.println(line);
    }

    fn finish(&mut self, _: &Progress) {
        self.bar.abandon();
    }
}

/// The lines below the bar.
fn lines(progress: &Progress) -> Vec<String> {
    let mut lines = vec![progress.headline()];
    if let Some(step) = &progress.step {
        lines.extend(step.links.iter().map(|link| link_line(link, step)));
        lines.extend(step.all_reduces.iter().map(|all| all_reduce_line(all, step)));
        lines.extend(step.stages.iter().map(stage_line));
    }
    lines.iter().map(|line| text::fit(line, WIDTH)).collect()
}

/// Sender, receiver, direction, bytes so far, rate in the last step, bits an element, relative squared error.
fn link_line(link: &LinkRecord, step: &StepRecord) -> String {
    let name = format!("{} → {} {}", link.from, link.to, link.direction.name());
    let total = text::bytes(link.total_bytes);
    let rate = text::bit_rate(link.bytes as f64 * 8.0 / step.seconds);
    let bits = text::or_dash(link.bits_per_element, |bits| format!("{bits:.2}"));
    let error = text::or_dash(link.rel_sq_error, |error| format!("{error:.1e}"));
    format!("{name:<16} {total:>8} {rate:>11}  {bits:>5} bits/element  error {error}")
}

/// As a link's line, for the ranks of a stage.
fn all_reduce_line(all: &AllReduceRecord, step: &StepRecord) -> String {
    let name = format!("ranks {} {}", all.stage, all.direction.name());
    let total = text::bytes(all.total_bytes);
    let rate = text::bit_rate(all.bytes as f64 * 8.0 / step.seconds);
    let bits = text::or_dash(all.bits_per_element, |bits| format!("{bits:.2}"));
    format!("{name:<16} {total:>8} {rate:>11}  {bits:>5} bits/element")
}

/// Shares of the step's time; encoding, sending and decoding overlap with the rest.
fn stage_line(record: &StageRecord) -> String {
    let times = record.times;
    let share = |name: &str, seconds: f64| {
        let percent = if record.seconds > 0.0 { 100.0 * seconds / record.seconds } else { 0.0 };
        format!(" {name} {percent:>2.0}%")
    };
    [
        ("compute", times.compute),
        ("optimizer", times.optimizer),
        ("encode", times.encode),
        ("send", times.send),
        ("decode", times.decode),
        ("wait", times.wait),
    ]
    .iter()
    .fold(format!("stage {:<2}", record.stage), |line, (name, seconds)| line + &share(name, *seconds))
}

#[cfg(test)]
mod tests {
    use indicatif::{InMemoryTerm, TermLike};

    use super::super::super::event::StageTimes;
    use super::super::super::samples;
    use super::*;

    fn on_terminal(progress: &Progress) -> Vec<String> {
        let term = InMemoryTerm::new(24, 80);
        assert_eq!(term.width(), 80);
        let mut live = Live::on(ProgressDrawTarget::term_like(Box::new(term.clone())), progress);
        live.note("stage 0: listening on 127.0.0.1:7000");
        live.finish(progress);
        term.contents().lines().map(str::to_owned).collect()
    }

    #[test]
    fn shows_the_run_its_links_and_its_stages() {
        let step = Some(samples::step_record(120));
        let heldout = Some(samples::eval_record(100));
        let screen = on_terminal(&Progress { total_steps: 600, first_step: 0, step, heldout });
        assert_eq!(screen[0], "stage 0: listening on 127.0.0.1:7000");
        assert!(
            screen[1].starts_with("step 120/600 [====>                   ] 20 %  00:00:0"),
            "{}",
            screen[1]
        );
        assert_eq!(
            screen[2..],
            [
                "loss 4.1234   held-out perplexity 71.30   2,048 tokens/s",
                "0 → 1 forward     10.0 kB 80.0 kbit/s   3.97 bits/element  error 2.1e-3",
                "1 → 0 backward    12.0 kB 96.0 kbit/s   6.25 bits/element  error -",
                "ranks 0 forward     400 B 3.20 kbit/s   4.00 bits/element",
                "stage 0  compute 71% optimizer  3% encode  4% send  8% decode  3% wait 14%",
                "stage 1  compute 71% optimizer  3% encode  4% send  8% decode  3% wait 14%",
            ]
        );
    }

    #[test]
    fn nothing_wraps_at_80_columns() {
        let mut step = samples::step_record(1_234_567);
        step.loss = 123_456.0;
        step.tokens_per_second = 1e12;
        for link in &mut step.links {
            (link.from, link.to, link.bytes, link.total_bytes) = (126, 127, u64::MAX, u64::MAX);
            link.bits_per_element = Some(32.0);
        }
        for all in &mut step.all_reduces {
            (all.stage, all.bytes, all.total_bytes) = (127, u64::MAX, u64::MAX);
        }
        for stage in &mut step.stages {
            stage.stage = 127;
            stage.times =
                StageTimes { compute: 1e9, optimizer: 1e9, encode: 1e9, send: 1e9, decode: 1e9, wait: 1e9 };
        }
        let heldout = Some(samples::eval_record(100));
        let progress = Progress { total_steps: 1_234_567, first_step: 0, step: Some(step), heldout };
        let screen = on_terminal(&progress);
        assert_eq!(screen.len(), 8, "{screen:#?}");
        for line in &screen {
            assert!(line.chars().count() < 80, "{line}");
        }
    }
}
