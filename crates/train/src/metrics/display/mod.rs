//! What a run shows on standard error while it goes on.

mod live;
mod plain;

use std::io::{self, IsTerminal};

use super::event::Event;
use super::record::{EvalRecord, StepRecord};
use super::text;

use live::Live;
use plain::Plain;

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
#[derive(Debug, Default)]
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

/// Draws [`Progress`] in the chosen way. A display that cannot be written to, such as a closed terminal, does not
/// stop the run.
#[derive(Debug)]
pub(super) enum Display {
    Live(Live),
    Plain(Plain),
    Off,
}

impl Display {
    pub(super) fn new(mode: DisplayMode, progress: &Progress) -> Display {
        match mode {
            DisplayMode::Auto if io::stderr().is_terminal() => Display::Live(Live::stderr(progress)),
            DisplayMode::Auto | DisplayMode::Plain => Display::Plain(Plain::stderr()),
            DisplayMode::Off => Display::Off,
        }
    }

    /// Shows where the run stands after a step or an evaluation.
    pub(super) fn update(&mut self, progress: &Progress) {
        match self {
            Display::Live(live) => live.update(progress),
            Display::Plain(plain) => plain.update(progress),
            Display::Off => {}
        }
    }

    /// Tells in a line of its own what happened, if it is worth one.
    pub(super) fn note(&mut self, event: &Event) {
        let Some(text) = note(event) else { return };
        match self {
            Display::Live(live) => live.note(&text),
            Display::Plain(plain) => plain.note(&text),
            Display::Off => {}
        }
    }

    /// Leaves the last state on the screen.
    pub(super) fn finish(&mut self, progress: &Progress) {
        match self {
            Display::Live(live) => live.finish(),
            Display::Plain(plain) => plain.finish(progress),
            Display::Off => {}
        }
    }
}

fn note(event: &Event) -> Option<String> {
    Some(match event {
        Event::Started { stage, stages, layers, parameters, threads } => {
            let parameters = text::count(*parameters);
            format!("stage {stage} of {stages}: {layers}, {parameters} parameters, threads: {threads}")
        }
        Event::Listening { stage, address } => format!("stage {stage}: listening on {address}"),
        Event::Connected { stage, peer, address, bandwidth } => {
            let held = bandwidth.map(|bits| format!(", held to {}", text::bit_rate(bits as f64)));
            format!("stage {stage}: connected to stage {peer} at {address}{}", held.unwrap_or_default())
        }
        Event::Resumed { stage, step } => format!("stage {stage}: resumed after step {step}"),
        Event::Checkpoint { stage, step, path, bytes, seconds } => {
            let (bytes, seconds) = (text::bytes(*bytes), text::duration(*seconds));
            format!("stage {stage}: checkpoint of step {step}, {bytes} in {seconds}: {path}")
        }
        Event::Warning { stage, text } => format!("stage {stage}: warning: {text}"),
        Event::Failed { stage, error } => format!("stage {stage}: failed: {error}"),
        Event::Step { .. } | Event::Eval { .. } | Event::Spans { .. } | Event::Finished { .. } => {
            return None;
        }
    })
}
