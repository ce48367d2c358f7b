//! Splitting a model into stages by what its units cost on this machine, and what the links will then carry.

mod cost;
mod partition;
mod traffic;

pub use cost::{UnitCost, measure};
pub use partition::{PlanError, partition};
pub use traffic::{LinkTraffic, TrafficError, tied_gradient_bytes, traffic};
