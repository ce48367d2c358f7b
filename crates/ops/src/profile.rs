//! Where a training step's time goes: calls and time of every operator, pass by pass.
//!
//! There is one record for the whole process. It is off until [`start`]; an operator then costs one relaxed load more.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// What is told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// [`embedding`](crate::embedding()).
    Embedding,
    /// [`linear`](crate::linear()).
    Linear,
    /// [`attention`](crate::attention()).
    Attention,
    /// [`rms_norm`](crate::rms_norm) and [`layer_norm`](crate::layer_norm).
    Norm,
    /// [`swiglu`](crate::swiglu) and [`gelu_tanh`](crate::gelu_tanh).
    Activation,
    /// [`rotary`](crate::rotary()).
    Rotary,
    /// [`cross_entropy`](crate::cross_entropy()).
    CrossEntropy,
    /// [`adamw`](crate::adamw()).
    AdamW,
    /// [`square_norm`](crate::square_norm).
    SquareNorm,
}

impl Operator {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Embedding,
        Self::Linear,
        Self::Attention,
        Self::Norm,
        Self::Activation,
        Self::Rotary,
        Self::CrossEntropy,
        Self::AdamW,
        Self::SquareNorm,
    ];

    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Embedding => "embedding",
            Self::Linear => "linear",
            Self::Attention => "attention",
            Self::Norm => "norm",
            Self::Activation => "activation",
            Self::Rotary => "rotary",
            Self::CrossEntropy => "cross-entropy",
            Self::AdamW => "AdamW",
            Self::SquareNorm => "gradient norm",
        }
    }
}

/// When an operator runs. Forward passes that are computed again for a backward pass count as forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// From inputs to results.
    Forward,
    /// From a result's gradient to those of the inputs.
    Backward,
    /// From gradients to parameters.
    Update,
}

impl Pass {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Forward, Self::Backward, Self::Update];

    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Backward => "backward",
            Self::Update => "update",
        }
    }
}

/// What one operator has spent in one pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spent {
    /// Which operator.
    pub operator: Operator,
    /// In which pass.
    pub pass: Pass,
    /// How often it ran.
    pub calls: u64,
    /// Wall-clock time of all calls; calls that ran side by side count each.
    pub time: Duration,
}

struct Tally {
    calls: AtomicU64,
    nanoseconds: AtomicU64,
}

static ON: AtomicBool = AtomicBool::new(false);

static TALLIES: [[Tally; Pass::ALL.len()]; Operator::ALL.len()] =
    [const { [const { Tally::new() }; Pass::ALL.len()] }; Operator::ALL.len()];

impl Tally {
    const fn new() -> Self {
        Self { calls: AtomicU64::new(0), nanoseconds: AtomicU64::new(0) }
    }
}

/// Forgets what was recorded, and records from now on.
pub fn start() {
    ON.store(false, Relaxed);
    drain();
    ON.store(true, Relaxed);
}

/// Ends the recording. What was recorded, without what never ran.
pub fn take() -> Vec<Spent> {
    ON.store(false, Relaxed);
    drain()
}

fn drain() -> Vec<Spent> {
    let cells = Operator::ALL.into_iter().flat_map(|operator| Pass::ALL.map(|pass| (operator, pass)));
    let spent = cells.map(|(operator, pass)| {
        let Tally { calls, nanoseconds } = tally(operator, pass);
        let time = Duration::from_nanos(nanoseconds.swap(0, Relaxed));
        Spent { operator, pass, calls: calls.swap(0, Relaxed), time }
    });
    spent.filter(|spent| spent.calls > 0).collect()
}

fn tally(operator: Operator, pass: Pass) -> &'static Tally {
    &TALLIES[operator as usize][pass as usize]
}

/// Times the calling scope as a call of `operator`, if the record is on.
#[must_use = "a timer that is dropped at once times nothing"]
pub(crate) fn time(operator: Operator, pass: Pass) -> Timer {
    Timer(ON.load(Relaxed).then(|| (tally(operator, pass), Instant::now())))
}

/// Adds what it has timed when it is dropped.
pub(crate) struct Timer(Option<(&'static Tally, Instant)>);

impl Drop for Timer {
    fn drop(&mut self) {
        if let Some((tally, begin)) = &self.0 {
            tally.calls.fetch_add(1, Relaxed);
            tally.nanoseconds.fetch_add(begin.elapsed().as_nanos() as u64, Relaxed);
        }
    }
}
