//! Forward passes that are run a second time, for the graph they leave, and what they added up the first time.

use std::collections::VecDeque;

/// The sums of a part of a forward pass, in their order.
#[derive(Debug, Default)]
pub struct Sums(VecDeque<Vec<f32>>);

/// What a forward pass does besides adding up.
#[derive(Debug, Default)]
pub(super) enum Rerun {
    /// Nothing.
    #[default]
    Off,
    /// It keeps its sums.
    Recording(Sums),
    /// It takes sums that were kept, and adds nothing up.
    Replaying(Sums),
}

impl Rerun {
    /// The next sum, if it is known already.
    ///
    /// # Panics
    /// When the pass has more sums than the first time.
    pub(super) fn recall(&mut self) -> Option<Vec<f32>> {
        let Self::Replaying(Sums(sums)) = self else { return None };
        Some(sums.pop_front().expect("a pass has the same sums again"))
    }

    /// Keeps a sum that may be asked for again.
    pub(super) fn keep(&mut self, sum: &[f32]) {
        if let Self::Recording(Sums(sums)) = self {
            sums.push_back(sum.to_vec());
        }
    }

    /// What was recorded, or what is left.
    pub(super) fn into_sums(self) -> Sums {
        match self {
            Self::Off => Sums::default(),
            Self::Recording(sums) | Self::Replaying(sums) => sums,
        }
    }
}
