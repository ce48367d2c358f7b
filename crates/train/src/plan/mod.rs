//! What a run will be like: what units cost on a machine, how long a step takes, what it is held up by, what fits.

mod available;
mod bottleneck;
mod codec_cost;
mod control;
mod flops;
mod machine;
mod measure;
mod median;
mod memory;
mod partition;
mod planner;
mod propose;
mod quantity;
mod report;
mod simulate;
mod stopwatch;
mod traffic;
mod transport_cost;

pub use available::memory as available_memory;
pub use bottleneck::{Bottleneck, Resource};
pub use codec_cost::{CodecCost, codec_cost};
pub use flops::{Flops, flops};
pub use machine::{LinkSpeed, Machine, Machines, MachinesError, Speed};
pub use measure::{Measured, ModelTimes, UnitTimes, Workload, measure_stages};
pub use memory::{BatchShape, StageMemory};
pub use partition::{PlanError, partition};
pub use planner::{Choice, Planner, PlannerError, Prediction, Processors};
pub use propose::Proposal;
pub use report::{LinkPlan, Plan, RateRow, StagePlan};
pub use simulate::{DirectionLoad, DirectionTiming, Host, Simulated, StageTiming, Timing, simulate};
pub use traffic::{LinkTraffic, TrafficError, tied_gradient_bytes, traffic};
