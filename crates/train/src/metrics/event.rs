//! What a stage tells about its run: one [`Event`] is one JSON object on one line.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::all_reduce::{AllReduceReport, SiteReport};
use super::float;

/// Something that happened in a stage process.
///
/// On the wire an event is a JSON object whose `event` field holds the variant's name in kebab case. Steps count
/// from 1: `step` is the number of optimizer steps done, so a run of 600 steps ends with step 600. Stages count
/// from 0. Times are seconds unless the name says otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The process is up and has built its part of the model.
    Started {
        /// The stage that speaks.
        stage: usize,
        /// Stages in the pipeline.
        stages: usize,
        /// The units the stage owns, as in the layer map: `embed 0-1`.
        layers: String,
        /// Parameters the stage owns.
        parameters: u64,
        /// Ranks that share every layer of it.
        ranks: usize,
        /// Threads its tensor library computes with.
        threads: usize,
    },
    /// The stage waits for its neighbour's connection.
    Listening {
        /// The stage that speaks.
        stage: usize,
        /// `host:port` it is bound to.
        address: String,
    },
    /// The handshake with a neighbour is done.
    Connected {
        /// The stage that speaks.
        stage: usize,
        /// The neighbour.
        peer: usize,
        /// `host:port` of the neighbour's end.
        address: String,
        /// Bits a second that the direction from `stage` to `peer` is held to; `None` where it is not throttled.
        bandwidth: Option<u64>,
    },
    /// An optimizer step is done.
    Step {
        /// The stage that speaks.
        stage: usize,
        /// The step just done.
        step: u64,
        /// Mean loss over the step's tokens, in nats a token; the same on every stage.
        #[serde(with = "float")]
        loss: f64,
        /// Tokens of the whole step, over all micro-batches; the same on every stage.
        tokens: u64,
        /// Learning rate of this step.
        #[serde(with = "float")]
        learning_rate: f64,
        /// Global gradient norm before clipping; the same on every stage.
        #[serde(with = "float")]
        gradient_norm: f64,
        /// Whether the update was left out because of a value that was not finite.
        skipped: bool,
        /// Wall-clock time of the step on this stage.
        seconds: f64,
        /// Where that time went.
        times: StageTimes,
        /// The stage's outgoing directions.
        links: Vec<LinkReport>,
        /// What the stage's ranks have sent each other since the process started; nothing for one rank.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        all_reduces: Vec<AllReduceReport>,
    },
    /// The held-out text was evaluated.
    Eval {
        /// The stage that speaks.
        stage: usize,
        /// Steps done before the evaluation.
        step: u64,
        /// Mean loss in nats a token; the same on every stage.
        #[serde(with = "float")]
        loss: f64,
        /// `exp(loss)`.
        #[serde(with = "float")]
        perplexity: f64,
        /// Tokens evaluated.
        tokens: u64,
        /// Wall-clock time of the evaluation.
        seconds: f64,
    },
    /// The stage's part of a checkpoint is on disk.
    Checkpoint {
        /// The stage that speaks.
        stage: usize,
        /// Steps the checkpoint holds.
        step: u64,
        /// The checkpoint's folder.
        path: String,
        /// Bytes this stage wrote.
        bytes: u64,
        /// Wall-clock time of writing.
        seconds: f64,
    },
    /// The stage continues from a checkpoint; the next step is `step + 1`.
    Resumed {
        /// The stage that speaks.
        stage: usize,
        /// Steps the checkpoint holds.
        step: u64,
    },
    /// What the stage's threads did, for the trace.
    Spans {
        /// The stage that speaks.
        stage: usize,
        /// Finished spans, in any order.
        spans: Vec<Span>,
    },
    /// Something the user should know that does not end the run.
    Warning {
        /// The stage that speaks.
        stage: usize,
        /// One sentence.
        text: String,
    },
    /// The run ended well.
    Finished {
        /// The stage that speaks.
        stage: usize,
        /// Steps done, those before a resume included.
        steps: u64,
        /// Loss of the last step.
        #[serde(with = "float")]
        final_loss: f64,
        /// Perplexity of the last evaluation, if there was one.
        #[serde(with = "float::option")]
        heldout_perplexity: Option<f64>,
        /// Tokens trained on by this process.
        tokens: u64,
        /// Wall-clock time of training in this process.
        seconds: f64,
        /// The most memory the process has had resident, in bytes; `None` where the system does not tell.
        #[serde(default)]
        peak_memory: Option<u64>,
        /// The stage's outgoing directions.
        links: Vec<LinkReport>,
        /// What the stage's ranks have sent each other; nothing for one rank.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        all_reduces: Vec<AllReduceReport>,
        /// What they have added up, by direction and site.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        sums: Vec<SiteReport>,
    },
    /// The run ended with an error.
    Failed {
        /// The stage that speaks.
        stage: usize,
        /// The error with its causes.
        error: String,
    },
}

impl Event {
    /// The stage that speaks.
    pub fn stage(&self) -> usize {
        match *self {
            Event::Started { stage, .. }
            | Event::Listening { stage, .. }
            | Event::Connected { stage, .. }
            | Event::Step { stage, .. }
            | Event::Eval { stage, .. }
            | Event::Checkpoint { stage, .. }
            | Event::Resumed { stage, .. }
            | Event::Spans { stage, .. }
            | Event::Warning { stage, .. }
            | Event::Finished { stage, .. }
            | Event::Failed { stage, .. } => stage,
        }
    }
}

/// Where a step's time went on one stage, in seconds.
///
/// `compute`, `optimizer` and `wait` are the computing thread's own and add up to about the step's time. `encode`,
/// `send` and `decode` belong to the link threads and overlap with them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct StageTimes {
    /// Forward and backward passes.
    pub compute: f64,
    /// Clipping and the optimizer's update.
    pub optimizer: f64,
    /// Encoding activations and gradients.
    pub encode: f64,
    /// Handing frames to the link, throttling included.
    pub send: f64,
    /// Checking and decoding received frames.
    pub decode: f64,
    /// The computing thread idle, for lack of an input or of room in a queue.
    pub wait: f64,
}

/// Which way a pass goes, and what is sent in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Towards the last layer: activations.
    Forward,
    /// Towards the first one: their gradients.
    Backward,
}

impl Direction {
    /// `forward` or `backward`.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Forward => "forward",
            Direction::Backward => "backward",
        }
    }
}

/// What one direction of a link has carried since the process started, counted by its sender.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LinkReport {
    /// The sending stage.
    pub from: usize,
    /// The receiving stage.
    pub to: usize,
    /// Activations or gradients.
    pub direction: Direction,
    /// Bytes that left, frame headers included.
    pub wire_bytes: u64,
    /// Bytes the codec made.
    pub payload_bytes: u64,
    /// Tensor elements encoded into those bytes.
    pub elements: u64,
    /// Messages that hold those elements.
    #[serde(default)]
    pub messages: u64,
    /// Those of tensors below the codec's `raw_below`, which were sent raw.
    #[serde(default)]
    pub raw_messages: u64,
    /// Bytes of those; part of `payload_bytes`.
    #[serde(default)]
    pub raw_bytes: u64,
    /// Bytes that the sender's end of the boundary remembers of the samples now; the receiver's as many.
    #[serde(default)]
    pub memory_bytes: u64,
    /// Sum of squared differences between decoded and original, over the measured messages.
    #[serde(with = "float")]
    pub sq_error: f64,
    /// Sum of squared original values, over the same messages.
    #[serde(with = "float")]
    pub sq_signal: f64,
}

impl LinkReport {
    /// Bits the codec spent on an element; `None` before anything was sent.
    pub fn bits_per_element(&self) -> Option<f64> {
        (self.elements > 0).then(|| self.payload_bytes as f64 * 8.0 / self.elements as f64)
    }

    /// Relative squared error `sum (decoded - x)^2 / sum x^2`; `None` before anything was measured.
    pub fn rel_sq_error(&self) -> Option<f64> {
        (self.sq_signal > 0.0).then(|| self.sq_error / self.sq_signal)
    }

    /// What was added since `earlier`, or everything if the sender started anew in between.
    pub(super) fn since(&self, earlier: Option<&LinkReport>) -> LinkReport {
        let Some(earlier) = earlier.filter(|earlier| earlier.wire_bytes <= self.wire_bytes) else {
            return *self;
        };
        LinkReport {
            wire_bytes: self.wire_bytes - earlier.wire_bytes,
            payload_bytes: self.payload_bytes.saturating_sub(earlier.payload_bytes),
            elements: self.elements.saturating_sub(earlier.elements),
            messages: self.messages.saturating_sub(earlier.messages),
            raw_messages: self.raw_messages.saturating_sub(earlier.raw_messages),
            raw_bytes: self.raw_bytes.saturating_sub(earlier.raw_bytes),
            sq_error: self.sq_error - earlier.sq_error,
            sq_signal: self.sq_signal - earlier.sq_signal,
            ..*self
        }
    }

    /// Identifies the direction among all of the pipeline, in display order.
    pub(super) fn key(&self) -> LinkKey {
        (self.from, self.to, self.direction)
    }
}

/// Sender, receiver and direction.
pub(super) type LinkKey = (usize, usize, Direction);

/// One thing a thread did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// What: `forward`, `encode`, ...
    pub name: Cow<'static, str>,
    /// The thread: `compute`, `send 0-1`, ...
    pub lane: Cow<'static, str>,
    /// Start, in microseconds since the Unix epoch.
    pub start_us: u64,
    /// Length, in microseconds.
    pub duration_us: u64,
    /// The step it belongs to.
    pub step: u64,
    /// The micro-batch it belongs to, where it belongs to one.
    pub micro_batch: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(loss: f64) -> Event {
        Event::Step {
            stage: 1,
            step: 3,
            loss,
            tokens: 2048,
            learning_rate: 3e-4,
            gradient_norm: f64::INFINITY,
            skipped: true,
            seconds: 0.5,
            times: StageTimes { compute: 0.4, wait: 0.1, ..StageTimes::default() },
            links: vec![LinkReport {
                from: 1,
                to: 0,
                direction: Direction::Backward,
                wire_bytes: 1100,
                payload_bytes: 1000,
                elements: 2000,
                messages: 7,
                raw_messages: 2,
                raw_bytes: 60,
                memory_bytes: 0,
                sq_error: 0.5,
                sq_signal: f64::NEG_INFINITY,
            }],
            all_reduces: vec![AllReduceReport {
                stage: 1,
                ranks: 2,
                direction: Direction::Forward,
                calls: 4,
                elements: 100,
                bytes: 110,
                f32_bytes: 800,
            }],
        }
    }

    fn round_trip(event: &Event) -> Event {
        let line = serde_json::to_string(event).unwrap();
        assert!(!line.contains('\n'), "{line}");
        serde_json::from_str(&line).unwrap()
    }

    #[test]
    fn every_event_is_one_line_and_reads_back() {
        let span = Span {
            name: "forward".into(),
            lane: "compute".into(),
            start_us: 1_700_000_000_000_000,
            duration_us: 5,
            step: 1,
            micro_batch: None,
        };
        let finished = |heldout_perplexity| Event::Finished {
            stage: 0,
            steps: 9,
            final_loss: 1.5,
            heldout_perplexity,
            tokens: 100,
            seconds: 2.0,
            peak_memory: Some(1 << 30),
            links: vec![],
            all_reduces: vec![],
            sums: vec![SiteReport {
                stage: 0,
                direction: Direction::Backward,
                site: "mlp".into(),
                block: Some(1),
                calls: 3,
                bytes: 9,
                bits_per_element: 4.5,
                partial_rms: f64::INFINITY,
                sum_rms: 0.5,
            }],
        };
        let address = || "127.0.0.1:7000".to_owned();
        let events = [
            Event::Started {
                stage: 0,
                stages: 2,
                layers: "embed 0-1".into(),
                parameters: 7,
                ranks: 2,
                threads: 1,
            },
            Event::Listening { stage: 0, address: address() },
            Event::Connected { stage: 0, peer: 1, address: address(), bandwidth: Some(100_000_000) },
            Event::Connected { stage: 1, peer: 0, address: address(), bandwidth: None },
            step(4.25),
            Event::Eval { stage: 0, step: 3, loss: 0.0, perplexity: 1.0, tokens: 5, seconds: 0.1 },
            Event::Checkpoint { stage: 0, step: 3, path: "a\nb\"c".into(), bytes: 5, seconds: 0.1 },
            Event::Resumed { stage: 0, step: 3 },
            Event::Spans { stage: 0, spans: vec![span.clone(), Span { micro_batch: Some(2), ..span }] },
            Event::Warning { stage: 0, text: "two\nlines".into() },
            finished(None),
            finished(Some(20.0)),
            Event::Failed { stage: 0, error: "gone".into() },
        ];
        for event in &events {
            assert_eq!(&round_trip(event), event);
        }
    }

    #[test]
    fn the_tag_is_kebab_case_and_fields_keep_their_names() {
        let line = serde_json::to_value(step(1.0)).unwrap();
        assert_eq!(line["event"], "step");
        assert_eq!(line["learning_rate"], 3e-4);
        assert_eq!(line["links"][0]["direction"], "backward");
    }

    #[test]
    fn reports_of_older_builds_count_no_messages() {
        let mut event = serde_json::to_value(step(1.0)).unwrap();
        let link = event["links"][0].as_object_mut().unwrap();
        for field in ["messages", "raw_messages", "raw_bytes"] {
            assert!(link.remove(field).is_some());
        }
        let Event::Step { links, .. } = serde_json::from_value(event).unwrap() else {
            panic!("another event came back")
        };
        assert_eq!((links[0].messages, links[0].raw_messages, links[0].raw_bytes), (0, 0, 0));
    }

    #[test]
    fn floats_that_are_not_finite_survive() {
        for loss in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let Event::Step { loss: back, links, gradient_norm, .. } = round_trip(&step(loss)) else {
                panic!("another event came back")
            };
            assert_eq!(back.is_nan(), loss.is_nan());
            assert!(loss.is_nan() || back == loss);
            assert_eq!(gradient_norm, f64::INFINITY);
            assert_eq!(links[0].sq_signal, f64::NEG_INFINITY);
        }
        assert!(serde_json::to_string(&step(f64::NAN)).unwrap().contains(r#""loss":"NaN""#));
        let unknown = serde_json::to_string(&step(f64::NAN)).unwrap().replace("NaN", "nought");
        assert!(serde_json::from_str::<Event>(&unknown).unwrap_err().to_string().contains("nought"));
    }

    /// Runs are compared bit for bit through these lines, and `serde_json` without `float_roundtrip` gets the last
    /// bit of one value in five wrong.
    #[test]
    fn finite_floats_keep_their_bits() {
        let mut bits = 0x3ff0_1234_5678_9abc_u64;
        for _ in 0..20_000 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let loss = f64::from_bits(bits >> 12 | 0x3ff0_0000_0000_0000) * 7.3;
            let Event::Step { loss: back, .. } = round_trip(&step(loss)) else {
                panic!("another event came back")
            };
            assert_eq!(back.to_bits(), loss.to_bits());
        }
    }

    #[test]
    fn link_figures_need_data() {
        let empty = LinkReport {
            from: 0,
            to: 1,
            direction: Direction::Forward,
            wire_bytes: 0,
            payload_bytes: 0,
            elements: 0,
            messages: 0,
            raw_messages: 0,
            raw_bytes: 0,
            memory_bytes: 0,
            sq_error: 0.0,
            sq_signal: 0.0,
        };
        assert_eq!((empty.bits_per_element(), empty.rel_sq_error()), (None, None));
        let link = LinkReport { payload_bytes: 500, elements: 1000, sq_error: 1.0, sq_signal: 4.0, ..empty };
        assert_eq!((link.bits_per_element(), link.rel_sq_error()), (Some(4.0), Some(0.25)));
    }
}
