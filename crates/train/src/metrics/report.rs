//! A run's result, for machines: the object that `thinwire train --json` ends with.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::all_reduce::{AllReduceKey, AllReduceReport, SiteReport};
use super::event::{Direction, Event, LinkKey, LinkReport};
use super::float;
use super::record::AllReduceRecord;

/// What a finished run did, since its start or its last resume.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// Loss of the last step, in nats a token.
    #[serde(with = "float")]
    pub final_loss: f64,
    /// Perplexity of the last evaluation on held-out text, if there was one.
    #[serde(with = "float::option")]
    pub heldout_perplexity: Option<f64>,
    /// Tokens trained on, by second of training.
    #[serde(with = "float")]
    pub tokens_per_second: f64,
    /// Every link direction whose sender was heard.
    pub links: Vec<LinkSummary>,
    /// What the ranks of every stage that was heard sent each other, over the whole process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub all_reduces: Vec<AllReduceRecord>,
    /// The same by site.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sums: Vec<SiteReport>,
    /// Steps done, those before a resume included.
    pub steps: u64,
    /// Tokens trained on.
    pub tokens: u64,
    /// Wall-clock seconds of training.
    pub seconds: f64,
    /// Every stage that was heard to its end.
    #[serde(default)]
    pub stages: Vec<StageSummary>,
    /// The folder with the run's files.
    pub run_dir: PathBuf,
    /// The same run with other codecs, if one was asked for.
    pub comparison: Option<Comparison>,
}

/// What one stage took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageSummary {
    /// The stage.
    pub stage: usize,
    /// The most memory its process has had resident, in bytes; `null` where the system does not tell.
    pub peak_memory: Option<u64>,
}

/// What one direction of a link carried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkSummary {
    /// The sending stage.
    pub from: usize,
    /// The receiving stage.
    pub to: usize,
    /// Activations or gradients.
    pub direction: Direction,
    /// Bytes that left, frame headers included.
    pub bytes: u64,
    /// Bits the codec spent on an element.
    pub bits_per_element: Option<f64>,
    /// `sum (decoded - x)^2 / sum x^2` over the measured messages.
    #[serde(with = "float::option")]
    pub rel_sq_error: Option<f64>,
    /// Tensor elements carried.
    pub elements: u64,
    /// Messages that carried them.
    #[serde(default)]
    pub messages: u64,
    /// Those of tensors below the codec's `raw_below`, which were sent raw.
    #[serde(default)]
    pub raw_messages: u64,
    /// Bytes of those, frame headers not included.
    #[serde(default)]
    pub raw_bytes: u64,
    /// Bytes that either end of the boundary remembers of the samples.
    #[serde(default)]
    pub memory_bytes: u64,
    /// Bytes of the same elements as bf16.
    pub bf16_bytes: u64,
    /// Bytes of the same elements as f32.
    pub f32_bytes: u64,
    /// Bits a second the direction was held to; `None` where it was not throttled.
    pub bandwidth: Option<u64>,
}

impl LinkSummary {
    fn new(link: &LinkReport, bandwidth: Option<u64>) -> LinkSummary {
        // Headers, end-of-step messages and tied gradients would have been sent all the same.
        let around = link.wire_bytes.saturating_sub(link.payload_bytes);
        LinkSummary {
            from: link.from,
            to: link.to,
            direction: link.direction,
            bytes: link.wire_bytes,
            bits_per_element: link.bits_per_element(),
            rel_sq_error: link.rel_sq_error(),
            elements: link.elements,
            messages: link.messages,
            raw_messages: link.raw_messages,
            raw_bytes: link.raw_bytes,
            memory_bytes: link.memory_bytes,
            bf16_bytes: link.elements.saturating_mul(2).saturating_add(around),
            f32_bytes: link.elements.saturating_mul(4).saturating_add(around),
            bandwidth,
        }
    }

    /// Seconds that `bytes` take at the direction's bandwidth.
    pub fn transfer_seconds(&self, bytes: u64) -> Option<f64> {
        self.bandwidth.map(|bandwidth| bytes as f64 * 8.0 / bandwidth as f64)
    }
}

/// How a run with other codecs, and all else equal, ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The other run's codec, as the user named it.
    pub codec: String,
    /// Its last loss.
    #[serde(with = "float")]
    pub final_loss: f64,
    /// Its held-out perplexity.
    #[serde(with = "float::option")]
    pub heldout_perplexity: Option<f64>,
    /// Its tokens a second.
    #[serde(with = "float")]
    pub tokens_per_second: f64,
    /// Its wall-clock seconds of training.
    pub seconds: f64,
    /// How far this run's loss is above (positive) or below the other's, in percent of the other's.
    #[serde(with = "float")]
    pub loss_difference_percent: f64,
    /// The folder with its files.
    pub run_dir: PathBuf,
    /// The picture of both loss curves.
    pub plot: PathBuf,
}

impl Comparison {
    /// Sets `run` against `other`, the same run with `codec`.
    pub fn new(run: &RunReport, other: &RunReport, codec: &str, plot: &Path) -> Comparison {
        Comparison {
            codec: codec.to_owned(),
            final_loss: other.final_loss,
            heldout_perplexity: other.heldout_perplexity,
            tokens_per_second: other.tokens_per_second,
            seconds: other.seconds,
            loss_difference_percent: (run.final_loss / other.final_loss - 1.0) * 100.0,
            run_dir: other.run_dir.clone(),
            plot: plot.to_owned(),
        }
    }
}

/// Gathers from the events what the report needs.
#[derive(Debug, Default)]
pub(super) struct Tally {
    bandwidths: BTreeMap<(usize, usize), u64>,
    links: BTreeMap<LinkKey, LinkReport>,
    all_reduces: BTreeMap<AllReduceKey, AllReduceReport>,
    sums: BTreeMap<usize, Vec<SiteReport>>,
    stages: BTreeMap<usize, StageSummary>,
    outcome: Option<Outcome>,
}

#[derive(Debug)]
struct Outcome {
    final_loss: f64,
    heldout_perplexity: Option<f64>,
    steps: u64,
    tokens: u64,
    seconds: f64,
}

impl Tally {
    /// Takes an event.
    pub(super) fn add(&mut self, event: &Event) {
        match *event {
            Event::Connected { stage, peer, bandwidth: Some(bandwidth), .. } => {
                self.bandwidths.insert((stage, peer), bandwidth);
            }
            Event::Finished {
                stage,
                steps,
                final_loss,
                heldout_perplexity,
                tokens,
                seconds,
                peak_memory,
                ref links,
                ref all_reduces,
                ref sums,
            } => {
                self.sums.insert(stage, sums.clone());
                self.stages.insert(stage, StageSummary { stage, peak_memory });
                self.links.extend(links.iter().map(|link| (link.key(), *link)));
                self.all_reduces.extend(all_reduces.iter().map(|report| (report.key(), *report)));
                // The stages agree on everything but the clock.
                let slowest = self.outcome.as_ref().map_or(seconds, |outcome| outcome.seconds.max(seconds));
                let earlier = self.outcome.as_ref().and_then(|outcome| outcome.heldout_perplexity);
                self.outcome = Some(Outcome {
                    final_loss,
                    heldout_perplexity: heldout_perplexity.or(earlier),
                    steps,
                    tokens,
                    seconds: slowest,
                });
            }
            _ => {}
        }
    }

    /// The report, once a stage has finished.
    pub(super) fn report(&self, run_dir: &Path) -> Option<RunReport> {
        let outcome = self.outcome.as_ref()?;
        let bandwidth = |link: &LinkReport| self.bandwidths.get(&(link.from, link.to)).copied();
        Some(RunReport {
            final_loss: outcome.final_loss,
            heldout_perplexity: outcome.heldout_perplexity,
            tokens_per_second: outcome.tokens as f64 / outcome.seconds,
            links: self.links.values().map(|link| LinkSummary::new(link, bandwidth(link))).collect(),
            all_reduces: self.all_reduces.values().map(|all| AllReduceRecord::between(None, all)).collect(),
            sums: self.sums.values().flatten().cloned().collect(),
            steps: outcome.steps,
            tokens: outcome.tokens,
            seconds: outcome.seconds,
            stages: self.stages.values().copied().collect(),
            run_dir: run_dir.to_owned(),
            comparison: None,
        })
    }
}
