//! What a run shows on standard error while it goes on.

mod live;
mod plain;
mod screen;

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};

use super::event::Event;
use super::record::{EvalRecord, LinkRecord, StepRecord};
use super::text;

use live::Live;
use plain::Plain;
use screen::Screen;

/// How progress is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DisplayMode {
    /// A live display on a terminal, plain lines elsewhere.
    #[default]
    Auto,
    /// Plain lines.
    Plain,
    /// Nothing.
    Off,
}

/// Where a run stands.
#[derive(Debug, Clone, Default)]
pub(super) struct Progress {
    /// Steps of the whole run.
    pub(super) total_steps: u64,
    /// Steps done before this process began.
    pub(super) first_step: u64,
    /// The last step.
    pub(super) step: Option<StepRecord>,
    /// The last evaluation.
    pub(super) heldout: Option<EvalRecord>,
}

impl Progress {
    /// Takes one more step. A link whose error was not measured in it keeps the last one.
    pub(super) fn advance(&mut self, mut step: StepRecord) {
        let earlier = self.step.take().map_or_else(Vec::new, |step| step.links);
        for link in &mut step.links {
            let same = |other: &&LinkRecord| {
                (other.from, other.to, other.direction) == (link.from, link.to, link.direction)
            };
            let last = earlier.iter().find(same).and_then(|other| other.rel_sq_error);
            link.rel_sq_error = link.rel_sq_error.or(last);
        }
        self.step = Some(step);
    }

    /// Steps done.
    pub(super) fn done(&self) -> u64 {
        self.step.as_ref().map_or(self.first_step, |step| step.step)
    }

    /// `loss 4.1234   held-out perplexity 71.30   2,431 tokens/s`
    fn headline(&self) -> String {
        let Some(step) = &self.step else { return "waiting for the first step".to_owned() };
        let heldout = self.heldout.as_ref().map(|eval| eval.perplexity);
        let heldout = text::or_dash(heldout, |perplexity| format!("{perplexity:.2}"));
        let rate = text::count(step.tokens_per_second as u64);
        format!("loss {:.4}   held-out perplexity {heldout}   {rate} tokens/s", step.loss)
    }
}

/// Draws [`Progress`] in the chosen way. A display that cannot be written to, such as a closed terminal or a pipe that
/// nobody reads, neither stops the run nor holds it up.
#[derive(Debug)]
pub(super) struct Display {
    /// None for a display that is off.
    screen: Option<Screen>,
    /// Stages whose events come.
    observed: usize,
    /// Checkpoints that not all of them have, by step.
    checkpoints: BTreeMap<u64, Parts>,
}

impl Display {
    /// A display of what `observed` stages do.
    pub(super) fn new(mode: DisplayMode, observed: usize, progress: &Progress) -> Display {
        let screen = match mode {
            DisplayMode::Auto if io::stderr().is_terminal() => {
                let progress = progress.clone();
                Some(Screen::new(move || Live::stderr(&progress)))
            }
            DisplayMode::Auto | DisplayMode::Plain => Some(Screen::new(Plain::stderr)),
            DisplayMode::Off => None,
        };
        Display { screen, observed, checkpoints: BTreeMap::new() }
    }

    /// Shows where the run stands after a step or an evaluation.
    pub(super) fn update(&self, progress: &Progress) {
        if let Some(screen) = &self.screen {
            screen.update(progress);
        }
    }

    /// Tells in a line of its own what happened, if it is worth one.
    pub(super) fn note(&mut self, event: &Event) {
        let Some(text) = note(event).or_else(|| self.checkpoint(event)) else { return };
        if let Some(screen) = &self.screen {
            screen.note(text);
        }
    }

    /// Leaves the last state on the screen.
    pub(super) fn finish(&self, progress: &Progress) {
        if let Some(screen) = &self.screen {
            screen.finish(progress);
        }
    }

    /// One line for a checkpoint, once all observed stages have it.
    fn checkpoint(&mut self, event: &Event) -> Option<String> {
        let Event::Checkpoint { step, path, bytes, seconds, .. } = event else { return None };
        let parts = self.checkpoints.entry(*step).or_default();
        parts.stages += 1;
        parts.bytes += bytes;
        parts.seconds = parts.seconds.max(*seconds);
        if parts.stages < self.observed {
            return None;
        }
        let Parts { bytes, seconds, .. } = self.checkpoints.remove(step)?;
        let (bytes, seconds) = (text::bytes(bytes), text::duration(seconds));
        Some(format!("checkpoint of step {step}, {bytes} in {seconds}: {path}"))
    }
}

/// The stages that have told of their part of a checkpoint.
#[derive(Debug, Default)]
struct Parts {
    stages: usize,
    bytes: u64,
    seconds: f64,
}

fn note(event: &Event) -> Option<String> {
    Some(match event {
        Event::Started { stage, stages, layers, parameters, ranks, threads } => {
            let parameters = text::count(*parameters);
            let ranks = if *ranks > 1 { format!("ranks: {ranks}, ") } else { String::new() };
            format!("stage {stage} of {stages}: {layers}, {parameters} parameters, {ranks}threads: {threads}")
        }
        Event::Listening { stage, address } => format!("stage {stage}: listening on {address}"),
        Event::Connected { stage, peer, address, bandwidth } => {
            let held = bandwidth.map(|bits| format!(", held to {}", text::bit_rate(bits as f64)));
            format!("stage {stage}: connected to stage {peer} at {address}{}", held.unwrap_or_default())
        }
        Event::Resumed { stage, step } => format!("stage {stage}: resumed after step {step}"),
        Event::Warning { stage, text } => format!("stage {stage}: warning: {text}"),
        Event::Failed { stage, error } => format!("stage {stage}: failed: {error}"),
        Event::Step { .. }
        | Event::Eval { .. }
        | Event::Checkpoint { .. }
        | Event::Spans { .. }
        | Event::Finished { .. } => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    #[test]
    fn an_error_stays_until_it_is_measured_again() {
        let mut progress = Progress::default();
        let errors = |progress: &Progress| -> Vec<_> {
            progress.step.iter().flat_map(|step| step.links.iter().map(|link| link.rel_sq_error)).collect()
        };
        let mut step = samples::step_record(1);
        progress.advance(step.clone());
        assert_eq!(errors(&progress), [Some(2.1e-3), None]);
        step.links[0].rel_sq_error = None;
        progress.advance(step.clone());
        progress.advance(step.clone());
        assert_eq!(errors(&progress), [Some(2.1e-3), None]);
        step.links[0].rel_sq_error = Some(0.5);
        progress.advance(step);
        assert_eq!(errors(&progress), [Some(0.5), None]);
    }

    #[test]
    fn a_checkpoint_has_one_line_once_all_stages_have_it() {
        let mut display = Display::new(DisplayMode::Off, 2, &Progress::default());
        let mut tell = |stage, step, bytes, seconds| {
            display.checkpoint(&Event::Checkpoint { stage, step, path: "run/here".into(), bytes, seconds })
        };
        assert_eq!(tell(0, 8, 1000, 2.0), None);
        assert_eq!(
            tell(1, 8, 3000, 1.0).as_deref(),
            Some("checkpoint of step 8, 4.00 kB in 2.00 s: run/here")
        );
        assert_eq!(tell(1, 16, 3000, 1.0), None);
    }
}
