//! What a run will be like: what units cost on a machine, how long a step takes, what it is held up by, what fits.

mod codec_cost;
mod cost;
mod flops;
mod machine;
mod measure;
mod partition;
mod quantity;
mod simulate;
mod traffic;

pub use codec_cost::{CodecCost, codec_cost};
pub use cost::{UnitCost, measure};
pub use flops::{Flops, flops};
pub use machine::{LinkSpeed, Machine, Machines, MachinesError, Speed};
pub use measure::{Measured, ModelTimes, UnitTimes, Workload, measure_stages};
pub use partition::{PlanError, partition};
pub use quantity::{BitRate, ParseQuantityError, Quantity};
pub use simulate::{DirectionLoad, DirectionTiming, Host, Simulated, StageTiming, Timing, simulate};
pub use traffic::{LinkTraffic, TrafficError, tied_gradient_bytes, traffic};
