//! Splitting a model into stages by what its units cost on this machine.

mod cost;
mod partition;

pub use cost::{UnitCost, measure};
pub use partition::{PlanError, partition};
