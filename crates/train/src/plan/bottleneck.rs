//! What holds a step up: the part that, made twice as fast, shortens it most.

use std::fmt;

use serde::Serialize;

use super::simulate::{DirectionTiming, StageTiming, Timing, simulate};
use crate::metrics::Direction;

/// A part of a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resource {
    /// What a stage computes.
    Stage(usize),
    /// One direction of the link behind a stage.
    Link(usize, Direction),
    /// Encoding and decoding of that direction.
    Codec(usize, Direction),
}

/// The resource that matters most.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bottleneck {
    /// Which.
    pub resource: Resource,
    /// What tokens a second grow by, as a share, if it alone is twice as fast.
    pub gain: f64,
    /// The same if all of its kind are.
    pub gain_of_all: f64,
}

impl Bottleneck {
    /// That of a pipeline: the first of those that gain most.
    pub fn of(timing: &Timing) -> Self {
        let now = simulate(timing).step;
        let gain = |faster: Timing| if now > 0.0 { now / simulate(&faster).step - 1.0 } else { 0.0 };
        let resources = resources(timing);
        let mut best = (resources[0], gain(faster(timing, &resources[..1])));
        for resource in &resources[1..] {
            let found = gain(faster(timing, &[*resource]));
            if found > best.1 {
                best = (*resource, found);
            }
        }
        let kind: Vec<Resource> = resources.into_iter().filter(|other| best.0.is_like(other)).collect();
        Self { resource: best.0, gain: best.1, gain_of_all: gain(faster(timing, &kind)) }
    }
}

impl Resource {
    fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

fn resources(timing: &Timing) -> Vec<Resource> {
    let directions =
        (0..timing.links.len()).flat_map(|link| [(link, Direction::Forward), (link, Direction::Backward)]);
    let stages = (0..timing.stages.len()).map(Resource::Stage);
    let links = directions.clone().map(|(link, direction)| Resource::Link(link, direction));
    let codecs = directions.map(|(link, direction)| Resource::Codec(link, direction));
    stages.chain(links).chain(codecs).collect()
}

/// The same pipeline with some of its parts twice as fast.
fn faster(timing: &Timing, resources: &[Resource]) -> Timing {
    let mut timing = timing.clone();
    let side = |direction| usize::from(direction == Direction::Backward);
    for resource in resources {
        match *resource {
            Resource::Stage(stage) => {
                let StageTiming { forward, backward, norms, decide, update, .. } = &mut timing.stages[stage];
                halve([forward, backward, norms, decide, update]);
            }
            Resource::Link(link, direction) => {
                let DirectionTiming { send, control, .. } = &mut timing.links[link][side(direction)];
                halve([send, control]);
            }
            Resource::Codec(link, direction) => {
                let DirectionTiming { encode, decode, .. } = &mut timing.links[link][side(direction)];
                halve([encode, decode]);
            }
        }
    }
    timing
}

fn halve<const N: usize>(times: [&mut f64; N]) {
    for time in times {
        *time /= 2.0;
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stage(stage) => write!(f, "stage {stage}"),
            Self::Link(link, direction) => write!(f, "the link {}", path(*link, *direction)),
            Self::Codec(link, direction) => write!(f, "the codec {}", path(*link, *direction)),
        }
    }
}

/// `1-2 forward`, `2-1 backward`: from the sender to the receiver.
fn path(link: usize, direction: Direction) -> String {
    match direction {
        Direction::Forward => format!("{link}-{} forward", link + 1),
        Direction::Backward => format!("{}-{link} backward", link + 1),
    }
}

impl fmt::Display for Bottleneck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { resource, gain, gain_of_all } = self;
        let (twice, all) = match resource {
            Resource::Stage(_) => ("its speed", "all stages"),
            Resource::Link(..) => ("its rate", "all links"),
            Resource::Codec(..) => ("its speed", "all codecs"),
        };
        let percent = |gain: f64| format!("{:+.0} %", 100.0 * gain);
        write!(f, "{resource}: twice {twice} gives {} tokens/s", percent(*gain))?;
        if *gain_of_all > gain + 0.005 {
            write!(f, ", that of {all} {}", percent(*gain_of_all))
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::PipelineSchedule;
    use crate::plan::Host;

    fn pipeline(forward: [f64; 2], send: [f64; 2], encode: f64) -> Timing {
        let stage = |host| StageTiming { host, threads: 1, forward: forward[host], ..StageTiming::default() };
        let direction = |at: usize| DirectionTiming { send: send[at], encode, ..DirectionTiming::default() };
        Timing {
            schedule: PipelineSchedule::GPipe,
            micro_batches: 4,
            hosts: vec![Host::UNSHARED; 2],
            stages: vec![stage(0), stage(1)],
            links: vec![[direction(0), direction(1)]],
        }
    }

    #[test]
    fn the_slowest_part_is_named() {
        let of = |timing| Bottleneck::of(&timing);
        // The second stage's four forwards follow the first one's first: 1 + 4 x 9 = 37, and 1 + 4 x 4.5 = 19.
        let slow_stage = of(pipeline([1.0, 9.0], [0.0, 0.0], 0.0));
        assert_eq!((slow_stage.resource, slow_stage.gain), (Resource::Stage(1), 37.0 / 19.0 - 1.0));
        assert_eq!(
            slow_stage.to_string(),
            "stage 1: twice its speed gives +95 % tokens/s, that of all stages +100 %"
        );
        // 1 + 4 x 8 + 1 = 34, and 1 + 4 x 4 + 1 = 18.
        let slow_link = of(pipeline([1.0, 1.0], [8.0, 0.0], 0.0));
        assert_eq!(
            (slow_link.resource, slow_link.gain),
            (Resource::Link(0, Direction::Forward), 34.0 / 18.0 - 1.0)
        );
        assert_eq!(slow_link.to_string(), "the link 0-1 forward: twice its rate gives +89 % tokens/s");
        let slow_return = of(pipeline([1.0, 1.0], [0.0, 8.0], 0.0));
        assert_eq!(slow_return.resource, Resource::Link(0, Direction::Backward));
        assert!(slow_return.to_string().starts_with("the link 1-0 backward: "));
        let slow_codec = of(pipeline([1.0, 1.0], [0.0, 0.0], 8.0));
        assert_eq!(slow_codec.resource, Resource::Codec(0, Direction::Forward));
        assert!(slow_codec.gain_of_all > slow_codec.gain);
    }
}
