//! Ranks that share every layer of a model, and what they add up on the way (Shoeybi et al., 2019, section 3; Echo, section 3.2).
//!
//! A [`Part`](crate::model::Part) can be built as one rank's [`Shard`](crate::model::Shard). Its layers are split in pairs: the
//! first one of a pair by columns, so that each rank computes some of its results from all of its inputs; the second one by rows, so
//! that each rank computes a summand of all of its results. Between the two nobody needs anybody. Two operators of
//! [`TensorGroup`] join the ranks: [`enter`](TensorGroup::enter) in front of a pair adds up gradients on their way back,
//! [`reduce`](TensorGroup::reduce) behind it adds up activations. A block has two pairs, so four sums a micro-batch.

mod group;
mod rerun;
mod site;
mod state;
mod statistics;

pub use group::TensorGroup;
pub use rerun::Sums;
pub use site::Site;
pub use statistics::SiteStatistics;
