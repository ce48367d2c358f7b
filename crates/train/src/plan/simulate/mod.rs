//! The step of a pipeline, simulated: what its threads do when, from how long each piece of work takes.
//!
//! Every stage has the threads that it has in a run. One computes, working through the schedule's [`actions`]; for each
//! neighbour one encodes and sends, message after message, and one decodes. A link's direction carries one message at a
//! time. At the end of a step a message goes up the chain and one comes back. Times follow from events alone: the same
//! [`Timing`] gives the same [`Simulated`], to the bit.
//!
//! The queues between the threads never hold anyone up, as a run makes them larger than any schedule fills them.
//!
//! [`actions`]: crate::pipeline::actions

mod events;
mod host;
mod program;
#[cfg(test)]
mod tests;

use serde::Serialize;

use crate::config::PipelineSchedule;
pub use host::Host;

use events::Events;

/// Steps that are simulated. The first begins on all stages at once, which no later one does.
const STEPS: usize = 3;

/// The step whose load is counted: when the last one ends on the first stage, this one has ended on all.
const COUNTED: usize = STEPS - 2;

/// How long everything in a step takes; times are seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Timing {
    /// The order of forwards and backwards.
    pub schedule: PipelineSchedule,
    /// Micro-batches of a step, at least one.
    pub micro_batches: u32,
    /// The machines.
    pub hosts: Vec<Host>,
    /// The stages in order, at least one.
    pub stages: Vec<StageTiming>,
    /// Link `k` joins stages `k` and `k + 1`: the direction of the activations, and that of the gradients.
    pub links: Vec<[DirectionTiming; 2]>,
}

/// What a stage's computing thread does, with the machine to itself.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StageTiming {
    /// Its machine, as an index into [`Timing::hosts`].
    pub host: usize,
    /// Threads that compute.
    pub threads: usize,
    /// A micro-batch's forward pass.
    pub forward: f64,
    /// Its backward pass.
    pub backward: f64,
    /// After the last pass, before the message up the chain: the gradient's norm.
    pub norms: f64,
    /// On the last stage, between the message up and the one down.
    pub decide: f64,
    /// After the message down: the optimizer.
    pub update: f64,
}

/// One direction of a link with the threads at its ends.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DirectionTiming {
    /// Encoding a micro-batch's tensor, by the sender's thread.
    pub encode: f64,
    /// Decoding it, by the receiver's.
    pub decode: f64,
    /// Threads that share either.
    pub codec_threads: usize,
    /// Its bytes at the link's rate.
    pub send: f64,
    /// The bytes of the message at the end of a step at the link's rate.
    pub control: f64,
    /// From the last byte's departure to its arrival.
    pub latency: f64,
    /// An idle direction saves up this much of its time, and sends the next bytes without delay.
    pub burst: f64,
}

/// What came out; times are seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulated {
    /// A step, from one end of the first stage's update to the next.
    pub step: f64,
    /// What each stage's computing thread was busy for in it.
    pub stages: Vec<f64>,
    /// The same for both directions of each link.
    pub links: Vec<[DirectionLoad; 2]>,
}

/// What a direction of a link and the threads at its ends did in a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DirectionLoad {
    /// Seconds of encoding.
    pub encode: f64,
    /// Seconds of carrying bytes.
    pub send: f64,
    /// Seconds of decoding.
    pub decode: f64,
    /// Most tensors that waited to be sent at a time, the one being sent included.
    pub outgoing: usize,
    /// Most tensors that waited, decoded, to be used at a time.
    pub incoming: usize,
}

/// Simulates steps until their length is that of any later one.
///
/// # Panics
/// Without a stage or micro-batch, or with another number of links or an unknown host: a `Timing` is made by code.
pub fn simulate(timing: &Timing) -> Simulated {
    assert!(timing.micro_batches > 0 && timing.links.len() + 1 == timing.stages.len(), "{timing:?}");
    Events::new(timing).run()
}
