//! `[pipeline]` and `[[pipeline.boundary]]`

use std::fmt;
use std::time::Duration;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thinwire_codec::CodecSpec;

use super::error::{ConfigError, require};
use super::{Bandwidth, Latency, LayerMap, MemoryConfig, StageUnits};

/// How the model is split into stages, and what crosses the boundaries between them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PipelineConfig {
    /// Stages, one process each. Default 1.
    pub stages: usize,
    /// Order of forward and backward passes within a step. Default `"1f1b"`.
    pub schedule: PipelineSchedule,
    /// `"auto"` splits by measured cost; a list such as `["embed 0-1", "2-3 head"]` gives each stage's units.
    /// Default `"auto"`.
    pub layers: LayerPlan,
    /// Codec of the activations. Default `tah`: 4.41 bits an element.
    pub forward: CodecSpec,
    /// Codec of the gradients; not `aqsgd`. Default `fixed:bits=6,group=64`.
    pub backward: CodecSpec,
    /// Codec of the gradient of a tied matrix, between the stages with the embedding and the head; not
    /// `aqsgd`. Default `f32`.
    pub tied: CodecSpec,
    /// Threads that share a message in encoding, and as many in decoding it, at every boundary. Default 1, which leaves the
    /// cores to the model. Each process may have its own.
    pub codec_threads: usize,
    /// Rate each direction of each boundary is held to, as `"100mbit"`. Default: not throttled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<Bandwidth>,
    /// Time a message takes beyond its bytes' time on the link, one way, as `"20ms"`: the receiving stage sees it so much
    /// later. Messages on their way overlap. Default: none is added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
    /// Longest wait for a neighbour's next message, its computation included, in seconds. Default 120.
    pub deadline_seconds: f64,
    /// Longest wait for a neighbour to appear, in seconds. Default 60.
    pub connect_seconds: f64,
    /// What to do when an activation or gradient is NaN or infinite. Default `"stop"`.
    pub non_finite: NonFinitePolicy,
    /// Where `aqsgd` remembers the samples.
    pub memory: MemoryConfig,
    /// Boundaries with settings of their own.
    #[serde(rename = "boundary", skip_serializing_if = "Vec::is_empty")]
    pub boundaries: Vec<BoundaryConfig>,
}

/// Settings of one boundary; what is absent is as in `[pipeline]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BoundaryConfig {
    /// The boundary lies in front of this block (`model.layers`: in front of the head). Required.
    pub before: usize,
    /// Codec of the activations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forward: Option<CodecSpec>,
    /// Codec of the gradients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backward: Option<CodecSpec>,
    /// Rate each direction is held to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<Bandwidth>,
    /// Latency added to each direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
}

/// Order of forward and backward passes within a step. Both give the same result to the bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PipelineSchedule {
    /// One forward, one backward (Narayanan et al., 2021): a stage holds the activations of at most as many
    /// micro-batches as there are stages from it to the last.
    #[serde(rename = "1f1b")]
    OneForwardOneBackward,
    /// All forwards, then all backwards (Huang et al., 2019): holds the activations of every micro-batch.
    #[serde(rename = "gpipe")]
    GPipe,
}

/// What to do about a value that is NaN or infinite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NonFinitePolicy {
    /// End the run with an error that says where it was found.
    Stop,
    /// Leave the step out on every stage and go on.
    SkipStep,
}

/// `pipeline.layers`
#[derive(Debug, Clone, PartialEq)]
pub enum LayerPlan {
    /// Split by measured cost.
    Auto,
    /// Split as written.
    Manual(Vec<StageUnits>),
}

/// What holds at one boundary.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoundaryCodecs {
    /// Codec of the activations.
    pub forward: CodecSpec,
    /// Codec of the gradients.
    pub backward: CodecSpec,
    /// Rate each direction is held to.
    pub bandwidth: Option<Bandwidth>,
    /// Latency added to each direction.
    pub latency: Option<Latency>,
}

impl Default for PipelineConfig {
    fn default() -> Self {
        let spec = |text: &str| text.parse().expect("the default codecs parse");
        Self {
            stages: 1,
            schedule: PipelineSchedule::OneForwardOneBackward,
            layers: LayerPlan::Auto,
            forward: spec("tah"),
            backward: spec("fixed:bits=6,group=64"),
            tied: spec("f32"),
            codec_threads: 1,
            bandwidth: None,
            latency: None,
            deadline_seconds: 120.0,
            connect_seconds: 60.0,
            non_finite: NonFinitePolicy::Stop,
            memory: MemoryConfig::default(),
            boundaries: Vec::new(),
        }
    }
}

impl PipelineConfig {
    /// Longest wait for a neighbour's next message.
    pub fn deadline(&self) -> Duration {
        Duration::from_secs_f64(self.deadline_seconds)
    }

    /// Longest wait for a neighbour to appear.
    pub fn connect_deadline(&self) -> Duration {
        Duration::from_secs_f64(self.connect_seconds)
    }

    /// What holds at the boundary in front of block `before`.
    pub fn boundary(&self, before: usize) -> BoundaryCodecs {
        let own = self.boundaries.iter().find(|boundary| boundary.before == before);
        BoundaryCodecs {
            forward: own.and_then(|own| own.forward).unwrap_or(self.forward),
            backward: own.and_then(|own| own.backward).unwrap_or(self.backward),
            bandwidth: own.and_then(|own| own.bandwidth).or(self.bandwidth),
            latency: own.and_then(|own| own.latency).or(self.latency),
        }
    }

    /// The layer map as written for a model of `layers` blocks; `None` for `"auto"`.
    ///
    /// # Errors
    /// It is not a partition of the model.
    pub fn manual_map(&self, layers: usize) -> Result<Option<LayerMap>, ConfigError> {
        match &self.layers {
            LayerPlan::Auto => Ok(None),
            LayerPlan::Manual(stages) => {
                LayerMap::new(layers, stages.clone()).map(Some).map_err(ConfigError::Layers)
            }
        }
    }

    pub(super) fn validate(&self, layers: usize) -> Result<(), ConfigError> {
        require(
            (1..=layers + 2).contains(&self.stages),
            "pipeline.stages",
            self.stages,
            format_args!("from 1 to {}, the model's embedding, blocks and head", layers + 2),
        )?;
        if let LayerPlan::Manual(stages) = &self.layers {
            require(
                stages.len() == self.stages,
                "pipeline.layers",
                format_args!("{} entries", stages.len()),
                format_args!("one for each of pipeline.stages = {}", self.stages),
            )?;
        }
        require(
            (1..=1024).contains(&self.codec_threads),
            "pipeline.codec_threads",
            self.codec_threads,
            "from 1 to 1024",
        )?;
        for (key, seconds) in [
            ("pipeline.deadline_seconds", self.deadline_seconds),
            ("pipeline.connect_seconds", self.connect_seconds),
        ] {
            require(seconds > 0.0 && seconds <= 1e6, key, seconds, "above 0 and at most 1000000 seconds")?;
        }
        require_memoryless("pipeline.backward", self.backward)?;
        require_memoryless("pipeline.tied", self.tied)?;
        self.validate_boundaries(layers)?;
        self.validate_latencies()
    }

    /// A latency that a neighbour is not waited for would be silence.
    fn validate_latencies(&self) -> Result<(), ConfigError> {
        let own = self.boundaries.iter().enumerate();
        let own = own.map(|(index, own)| (format!("pipeline.boundary[{index}].latency"), own.latency));
        for (key, latency) in own.chain([("pipeline.latency".to_owned(), self.latency)]) {
            let Some(latency) = latency else { continue };
            let expected = format_args!("below pipeline.deadline_seconds = {}", self.deadline_seconds);
            require(latency.duration() < self.deadline(), key, latency, expected)?;
        }
        Ok(())
    }

    fn validate_boundaries(&self, layers: usize) -> Result<(), ConfigError> {
        let cuts = self.manual_map(layers)?.map(|map| map.boundaries());
        for (index, boundary) in self.boundaries.iter().enumerate() {
            let key = format!("pipeline.boundary[{index}].before");
            let before = boundary.before;
            let cuts = cuts.as_deref();
            require(cuts.is_some(), &key, before, "a written pipeline.layers: \"auto\" may cut anywhere")?;
            require(
                cuts.is_some_and(|cuts| cuts.contains(&before)),
                &key,
                before,
                format_args!("a boundary of pipeline.layers: {:?}", cuts.unwrap_or_default()),
            )?;
            if let Some(backward) = boundary.backward {
                require_memoryless(&format!("pipeline.boundary[{index}].backward"), backward)?;
            }
            let earlier = &self.boundaries[..index];
            require(earlier.iter().all(|other| other.before != before), &key, before, "each boundary once")?;
        }
        Ok(())
    }
}

/// What AQ-SGD remembers of a sample is its activation: gradients do not settle, so differences between them are no smaller.
fn require_memoryless(key: &str, codec: CodecSpec) -> Result<(), ConfigError> {
    require(
        !matches!(codec, CodecSpec::Aqsgd(_)),
        key,
        codec,
        "a codec of single tensors, as aqsgd is for activations alone: fixed:bits=8 is what its authors use for gradients",
    )
}

impl Serialize for LayerPlan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str("auto"),
            Self::Manual(stages) => stages.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for LayerPlan {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PlanVisitor;

        impl<'de> Visitor<'de> for PlanVisitor {
            type Value = LayerPlan;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"auto\" or a list such as [\"embed 0-1\", \"2-3 head\"]")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<LayerPlan, E> {
                match text {
                    "auto" => Ok(LayerPlan::Auto),
                    _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
                }
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<LayerPlan, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(LayerPlan::Manual)
            }
        }

        deserializer.deserialize_any(PlanVisitor)
    }
}
