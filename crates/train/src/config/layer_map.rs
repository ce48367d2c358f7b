//! Which stage owns which part of the model.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::text;

/// The smallest part of a model that a stage can own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Token (and position) embedding.
    Embed,
    /// A transformer block, counted from 0.
    Block(usize),
    /// Final norm, output projection and loss.
    Head,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Embed => f.write_str("embed"),
            Self::Block(block) => write!(f, "block {block}"),
            Self::Head => f.write_str("head"),
        }
    }
}

/// The units of one stage: contiguous and in model order.
///
/// Its text is `embed`, a block `2` or blocks `2-5` (both ends included), `head`: what the stage has of
/// these, in this order, as in `embed 0-1` or `2-3 head`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageUnits {
    /// Owns the embedding.
    pub embed: bool,
    /// The blocks it owns; may be empty.
    pub blocks: Range<usize>,
    /// Owns the head.
    pub head: bool,
}

impl StageUnits {
    /// All of a model of `layers` blocks.
    pub fn whole(layers: usize) -> Self {
        Self { embed: true, blocks: 0..layers, head: true }
    }

    /// The units in model order.
    pub fn iter(&self) -> impl Iterator<Item = Unit> + use<> {
        let embed = self.embed.then_some(Unit::Embed).into_iter();
        let head = self.head.then_some(Unit::Head);
        embed.chain(self.blocks.clone().map(Unit::Block)).chain(head)
    }

    /// Number of units.
    pub fn len(&self) -> usize {
        usize::from(self.embed) + self.blocks.len() + usize::from(self.head)
    }

    /// Whether it owns nothing.
    pub fn is_empty(&self) -> bool {
        !self.embed && self.blocks.is_empty() && !self.head
    }
}

impl fmt::Display for StageUnits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let blocks = match self.blocks.len() {
            0 => None,
            1 => Some(self.blocks.start.to_string()),
            _ => Some(format!("{}-{}", self.blocks.start, self.blocks.end - 1)),
        };
        let parts = [self.embed.then(|| "embed".to_owned()), blocks, self.head.then(|| "head".to_owned())];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(" "))
    }
}

impl FromStr for StageUnits {
    type Err = LayerMapError;

    fn from_str(text: &str) -> Result<Self, LayerMapError> {
        let mut parts = text.split_whitespace().peekable();
        let embed = parts.next_if_eq(&"embed").is_some();
        let blocks = match parts.next_if(|part| *part != "head") {
            Some(blocks) => parse_blocks(blocks).ok_or(LayerMapError::Malformed)?,
            None => 0..0,
        };
        let head = parts.next_if_eq(&"head").is_some();
        if parts.next().is_some() {
            return Err(LayerMapError::Malformed);
        }
        Ok(Self { embed, blocks, head })
    }
}

/// `2` or `2-5`, the end included.
fn parse_blocks(text: &str) -> Option<Range<usize>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let first: usize = first.parse().ok()?;
    let last: usize = last.parse().ok()?;
    (first <= last).then(|| Some(first..last.checked_add(1)?))?
}

impl Serialize for StageUnits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        text::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for StageUnits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text::deserialize(deserializer)
    }
}

/// A partition of a model's units into stages, in model order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerMap {
    layers: usize,
    stages: Vec<StageUnits>,
}

/// Why stages do not partition the model. Stages are counted from 0.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LayerMapError {
    /// A stage's text is not in the form of [`StageUnits`].
    #[error("expected `embed`, blocks such as `2` or `2-5`, `head`, in this order")]
    Malformed,
    /// A stage owns nothing.
    #[error("stage {stage} owns nothing")]
    Empty {
        /// The stage.
        stage: usize,
    },
    /// A stage owns a block that the model does not have.
    #[error("stage {stage} owns block {block}, but the model's {layers} blocks end at {}", layers - 1)]
    Unknown {
        /// The stage.
        stage: usize,
        /// The block.
        block: usize,
        /// Blocks in the model.
        layers: usize,
    },
    /// Two stages own one unit.
    #[error("{unit} is on both stage {first} and stage {second}")]
    Doubled {
        /// The unit.
        unit: Unit,
        /// The stage that has it first.
        first: usize,
        /// The stage that has it again.
        second: usize,
    },
    /// No stage owns a unit.
    #[error("{unit} is on no stage")]
    Missing {
        /// The unit.
        unit: Unit,
    },
    /// A unit is on an earlier stage than the unit in front of it.
    #[error("{unit} is on stage {stage}, but {previous}, which comes first, is on stage {previous_stage}")]
    Misplaced {
        /// The unit.
        unit: Unit,
        /// Its stage.
        stage: usize,
        /// The unit in front of it.
        previous: Unit,
        /// That unit's stage.
        previous_stage: usize,
    },
}

impl LayerMap {
    /// Checks that `stages` own every unit of a model of `layers` blocks once, in order.
    ///
    /// # Errors
    /// The first stage or unit for which that does not hold.
    pub fn new(layers: usize, mut stages: Vec<StageUnits>) -> Result<Self, LayerMapError> {
        let mut owners: Vec<Option<usize>> = vec![None; layers + 2];
        for (stage, units) in stages.iter().enumerate() {
            if units.is_empty() {
                return Err(LayerMapError::Empty { stage });
            }
            if units.blocks.end > layers && !units.blocks.is_empty() {
                return Err(LayerMapError::Unknown { stage, block: units.blocks.end - 1, layers });
            }
            for unit in units.iter() {
                if let Some(first) = owners[position(unit, layers)].replace(stage) {
                    return Err(LayerMapError::Doubled { unit, first, second: stage });
                }
            }
        }
        let mut previous: Option<(Unit, usize)> = None;
        for (at, owner) in owners.into_iter().enumerate() {
            let unit = unit_at(at, layers);
            let stage = owner.ok_or(LayerMapError::Missing { unit })?;
            if let Some((previous, previous_stage)) = previous.filter(|(_, previous)| stage < *previous) {
                return Err(LayerMapError::Misplaced { unit, stage, previous, previous_stage });
            }
            previous = Some((unit, stage));
        }
        let mut block = 0;
        for units in &mut stages {
            units.blocks = block..block + units.blocks.len(); // an empty range gets its place too
            block = units.blocks.end;
        }
        Ok(Self { layers, stages })
    }

    /// The map that gives `counts[k]` units to stage `k`.
    ///
    /// # Errors
    /// The counts do not add up to `layers + 2`, or one is 0.
    pub fn from_counts(layers: usize, counts: &[usize]) -> Result<Self, LayerMapError> {
        let mut start = 0;
        let stages = counts.iter().map(|count| {
            let end = start + count;
            let units = StageUnits {
                embed: (start..end).contains(&0),
                blocks: start.max(1) - 1..end.clamp(1, layers + 1) - 1,
                head: (start..end).contains(&(layers + 1)),
            };
            start = end;
            units
        });
        Self::new(layers, stages.collect())
    }

    /// Blocks in the model.
    pub fn layers(&self) -> usize {
        self.layers
    }

    /// Each stage's units.
    pub fn stages(&self) -> &[StageUnits] {
        &self.stages
    }

    /// Where the model is cut: boundary `k`, between stages `k` and `k + 1`, lies in front of the block given
    /// (`layers` means in front of the head).
    pub fn boundaries(&self) -> Vec<usize> {
        self.stages[1..].iter().map(|units| units.blocks.start).collect()
    }
}

impl fmt::Display for LayerMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stages: Vec<String> = self.stages.iter().map(ToString::to_string).collect();
        f.write_str(&stages.join(" | "))
    }
}

/// A unit's place in model order.
fn position(unit: Unit, layers: usize) -> usize {
    match unit {
        Unit::Embed => 0,
        Unit::Block(block) => block + 1,
        Unit::Head => layers + 1,
    }
}

/// The unit at a place in model order.
fn unit_at(position: usize, layers: usize) -> Unit {
    match position {
        0 => Unit::Embed,
        _ if position == layers + 1 => Unit::Head,
        _ => Unit::Block(position - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(layers: usize, stages: &[&str]) -> Result<LayerMap, LayerMapError> {
        let stages = stages.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
        LayerMap::new(layers, stages)
    }

    #[test]
    fn every_split_is_a_partition_and_round_trips_as_text() {
        const LAYERS: usize = 4;
        for cuts in 0u32..1 << (LAYERS + 1) {
            let mut counts = vec![1];
            for unit in 0..=LAYERS {
                if cuts >> unit & 1 == 1 {
                    counts.push(1);
                } else {
                    *counts.last_mut().unwrap() += 1;
                }
            }
            let split = LayerMap::from_counts(LAYERS, &counts).unwrap();
            assert_eq!(split.stages().iter().map(StageUnits::len).collect::<Vec<_>>(), counts);
            let texts: Vec<String> = split.stages().iter().map(ToString::to_string).collect();
            assert_eq!(map(LAYERS, &texts.iter().map(String::as_str).collect::<Vec<_>>()), Ok(split));
        }
    }

    #[test]
    fn counts_that_do_not_fit_are_refused() {
        assert_eq!(LayerMap::from_counts(2, &[2, 1]), Err(LayerMapError::Missing { unit: Unit::Head }));
        assert_eq!(LayerMap::from_counts(2, &[4, 1]), Err(LayerMapError::Empty { stage: 1 }));
        assert_eq!(LayerMap::from_counts(2, &[2, 0, 2]), Err(LayerMapError::Empty { stage: 1 }));
        assert_eq!(LayerMap::from_counts(2, &[]), Err(LayerMapError::Missing { unit: Unit::Embed }));
    }

    #[test]
    fn boundaries_name_the_block_behind_them() {
        assert!(map(4, &["embed 0-3 head"]).unwrap().boundaries().is_empty());
        assert_eq!(map(4, &["embed 0-1", "2-3 head"]).unwrap().boundaries(), [2]);
        assert_eq!(map(4, &["embed", "0", "1-3", "head"]).unwrap().boundaries(), [0, 1, 4]);
    }

    #[test]
    fn what_is_no_partition_is_refused_with_the_reason() {
        for (stages, error) in [
            (&["embed 0", "2-3 head"][..], "block 1 is on no stage"),
            (&["0-1", "2-3 head"], "embed is on no stage"),
            (&["embed 0-1", "2-3"], "head is on no stage"),
            (&[], "embed is on no stage"),
            (&["embed 0-2", "2-3 head"], "block 2 is on both stage 0 and stage 1"),
            (&["embed 0-3 head", "head"], "head is on both stage 0 and stage 1"),
            (&["embed 0-1", "2-4 head"], "stage 1 owns block 4, but the model's 4 blocks end at 3"),
            (
                &["embed 0-18446744073709551614", "head"],
                "stage 0 owns block 18446744073709551614, but the model's 4 blocks end at 3",
            ),
            (&["embed 0-1", "", "2-3 head"], "stage 1 owns nothing"),
            (
                &["embed 2-3", "0-1 head"],
                "block 2 is on stage 0, but block 1, which comes first, is on stage 1",
            ),
            (
                &["0-1", "embed", "2-3 head"],
                "block 0 is on stage 0, but embed, which comes first, is on stage 1",
            ),
        ] {
            assert_eq!(map(4, stages).unwrap_err().to_string(), error, "{stages:?}");
        }
    }

    #[test]
    fn malformed_stages_are_refused() {
        for text in [
            "head 0",
            "0 embed",
            "0-1 2-3",
            "3-2",
            "0-",
            "-1",
            "a",
            "0..3",
            "embed embed",
            "embed 0 head head",
            "0-18446744073709551615",
        ] {
            assert_eq!(text.parse::<StageUnits>(), Err(LayerMapError::Malformed), "{text}");
        }
    }
}
