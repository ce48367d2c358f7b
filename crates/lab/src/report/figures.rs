//! What one run's records come to.

use serde::Serialize;
use thinwire_train::fidelity::FidelityReport;
use thinwire_train::metrics::{Direction, RunReport, StageTimes, StepRecord};

use super::spread::Quartiles;

/// The figures of one row. Those of speed and traffic leave the warm-up steps out.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Every step's loss.
    pub losses: Vec<LossPoint>,
    /// Over the steps.
    pub tokens_per_second: Option<Quartiles>,
    /// Of the median step.
    pub step_seconds: Option<f64>,
    /// Activations.
    pub forward: Traffic,
    /// Gradients.
    pub backward: Traffic,
    /// The same between ranks, of all stages together: activations, and gradients.
    pub ranks: [Traffic; 2],
    /// Bytes that one end of every boundary remembers of the samples, all boundaries together; `None` where the codec
    /// remembers nothing.
    pub remembered: Option<u64>,
    /// Every stage's time and memory.
    pub stages: Vec<StageFigures>,
    /// Loss of the last step of a run that ended well.
    pub final_loss: Option<f64>,
    /// Perplexity of its last evaluation.
    pub heldout_perplexity: Option<f64>,
}

/// A step's loss.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LossPoint {
    /// The step, from 1.
    pub step: u64,
    /// Seconds of training at its end: the sum over the steps, without evaluations and checkpoints. `None` where
    /// gradients were compared between the steps.
    pub seconds: Option<f64>,
    /// In nats a token.
    pub loss: f64,
}

/// What all links together carried in one direction, or ranks sent each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Traffic {
    /// In the median step, headers included.
    pub bytes_per_step: Option<f64>,
    /// The codec's, over the whole run.
    pub bits_per_element: Option<f64>,
    /// The share of the median step's time for which the link that carries most is taken by its bytes, at the rate that
    /// it should have.
    pub busy: Option<f64>,
}

/// One stage.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StageFigures {
    /// The stage.
    pub stage: usize,
    /// Times as shares of the steps' time. `compute`, `optimizer` and `wait` are the computing thread's own; the others
    /// overlap with them.
    pub shares: StageTimes,
    /// In bytes, of a run that ended well.
    pub peak_memory: Option<u64>,
}

impl Figures {
    /// The figures of `steps`, of which the first `warmup` are left out where speed counts, and of the `report` of a run
    /// that ended well. Links carry `rate` bits of data a second, if that is known.
    pub fn of(steps: &[StepRecord], report: Option<&RunReport>, rate: Option<u64>, warmup: u64) -> Self {
        let warm: Vec<&StepRecord> = steps.iter().filter(|step| step.step > warmup).collect();
        let mut clock = 0.0;
        let losses = steps.iter().map(|step| {
            clock += step.seconds;
            LossPoint { step: step.step, seconds: Some(clock), loss: step.loss }
        });
        Self {
            losses: losses.collect(),
            tokens_per_second: Quartiles::of(warm.iter().map(|step| step.tokens as f64 / step.seconds)),
            step_seconds: Quartiles::of(warm.iter().map(|step| step.seconds)).map(|all| all.median),
            forward: Traffic::of(&warm, report, rate, Direction::Forward),
            backward: Traffic::of(&warm, report, rate, Direction::Backward),
            ranks: [Direction::Forward, Direction::Backward]
                .map(|direction| Traffic::of_ranks(&warm, report, direction)),
            remembered: report.and_then(remembered),
            stages: stages(&warm, report),
            final_loss: report.map(|report| report.final_loss),
            heldout_perplexity: report.and_then(|report| report.heldout_perplexity),
        }
    }

    /// Those of a run whose gradients were compared: losses alone, its time is not that of training.
    pub fn measured(report: &FidelityReport) -> Self {
        let losses = (1..).zip(&report.losses).map(|(step, &loss)| LossPoint { step, seconds: None, loss });
        Self { losses: losses.collect(), final_loss: report.losses.last().copied(), ..Self::default() }
    }

    /// Tokens a second in the median step.
    pub fn speed(&self) -> Option<f64> {
        self.tokens_per_second.map(|all| all.median)
    }
}

impl Traffic {
    fn of_ranks(steps: &[&StepRecord], report: Option<&RunReport>, direction: Direction) -> Self {
        let bytes = steps.iter().map(|step| {
            let all = step.all_reduces.iter().filter(|all| all.direction == direction);
            all.map(|all| all.bytes as f64).sum()
        });
        let sent = report.into_iter().flat_map(|report| &report.all_reduces);
        let sent = sent.filter(|all| all.direction == direction);
        let (bits, f32_bits) = sent.fold((0.0, 0.0), |(bits, f32_bits), all| {
            (bits + 8.0 * all.bytes as f64, f32_bits + 8.0 * all.f32_bytes as f64)
        });
        Self {
            bytes_per_step: Quartiles::of(bytes).map(|all| all.median).filter(|bytes| *bytes > 0.0),
            bits_per_element: (f32_bits > 0.0).then(|| 32.0 * bits / f32_bits),
            busy: None,
        }
    }

    fn of(
        steps: &[&StepRecord],
        report: Option<&RunReport>,
        rate: Option<u64>,
        direction: Direction,
    ) -> Self {
        let seconds = Quartiles::of(steps.iter().map(|step| step.seconds)).map(|all| all.median);
        // The median leaves out the steps that an evaluation came before, whose traffic counts with theirs.
        let median = |bytes: fn(&mut dyn Iterator<Item = f64>) -> f64| {
            let all = steps.iter().map(|step| {
                let links = step.links.iter().filter(|link| link.direction == direction);
                bytes(&mut links.map(|link| link.bytes as f64))
            });
            Quartiles::of(all).map(|all| all.median).filter(|bytes| *bytes > 0.0)
        };
        let most = median(|links| links.fold(0.0, f64::max));
        let (mut bits, mut elements) = (0.0, 0.0);
        for link in report.into_iter().flat_map(|report| &report.links) {
            if let Some(each) = link.bits_per_element.filter(|_| link.direction == direction) {
                bits += each * link.elements as f64;
                elements += link.elements as f64;
            }
        }
        Self {
            bytes_per_step: median(|links| links.sum()),
            bits_per_element: (elements > 0.0).then(|| bits / elements),
            busy: rate
                .zip(most)
                .zip(seconds)
                .map(|((rate, most), seconds)| most * 8.0 / rate as f64 / seconds),
        }
    }
}

fn remembered(report: &RunReport) -> Option<u64> {
    Some(report.links.iter().map(|link| link.memory_bytes).sum()).filter(|bytes| *bytes > 0)
}

fn stages(steps: &[&StepRecord], report: Option<&RunReport>) -> Vec<StageFigures> {
    let Some(last) = steps.last() else { return Vec::new() };
    let figures = last.stages.iter().map(|stage| {
        let stage = stage.stage;
        let own = steps.iter().flat_map(|step| step.stages.iter().filter(|other| other.stage == stage));
        let seconds: f64 = own.clone().map(|own| own.seconds).sum();
        let share =
            |time: fn(&StageTimes) -> f64| own.clone().map(|own| time(&own.times)).sum::<f64>() / seconds;
        let peaks = report.into_iter().flat_map(|report| &report.stages);
        StageFigures {
            stage,
            shares: StageTimes {
                compute: share(|times| times.compute),
                optimizer: share(|times| times.optimizer),
                encode: share(|times| times.encode),
                send: share(|times| times.send),
                decode: share(|times| times.decode),
                wait: share(|times| times.wait),
            },
            peak_memory: peaks.into_iter().find(|peak| peak.stage == stage).and_then(|peak| peak.peak_memory),
        }
    });
    figures.collect()
}
