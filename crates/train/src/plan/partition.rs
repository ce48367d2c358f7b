//! The split with the smallest slowest stage.

use crate::config::LayerMap;

/// Costs up to this one can be squared and added up without overflow.
const MAX_COST: f64 = 1e100;

/// Why units could not be split.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// There are fewer units than stages, or no stage at all.
    #[error("{units} units cannot be split into {stages} stages: expected from 1 to {units} stages")]
    Stages {
        /// Stages asked for.
        stages: usize,
        /// Units of the model.
        units: usize,
    },
    /// A model has at least an embedding and a head.
    #[error("expected the costs of at least 2 units, embedding and head, found {units}")]
    Units {
        /// Costs given.
        units: usize,
    },
    /// A cost is not a number, negative, or too large for sums of squares.
    #[error("cost of unit {unit}: expected a number from 0 to {MAX_COST:e}, found {cost}")]
    Cost {
        /// The unit, counted from the embedding.
        unit: usize,
        /// Its cost.
        cost: f64,
    },
}

/// Splits the units whose costs are given, in model order, into `stages` contiguous groups of at least one: the largest
/// group is as cheap as it can be; among such splits the sum of the groups' squared costs is the smallest, so the
/// others are as even as they can be; and among those later stages have more units, as earlier ones hold more
/// activations under 1F1B.
///
/// # Errors
/// There are more stages than units, or no stage; fewer than two units; a cost is not a number from 0 to 1e100.
pub fn partition(costs: &[f64], stages: usize) -> Result<LayerMap, PlanError> {
    let units = costs.len();
    if units < 2 {
        return Err(PlanError::Units { units });
    }
    if !(1..=units).contains(&stages) {
        return Err(PlanError::Stages { stages, units });
    }
    let sums = Prefix::new(costs)?;
    Ok(sums.most_even(stages, sums.smallest_limit(stages)))
}

/// Costs of the first 0, 1, .. units.
struct Prefix(Vec<f64>);

impl Prefix {
    fn new(costs: &[f64]) -> Result<Self, PlanError> {
        let mut sums = vec![0.0];
        let mut sum = 0.0;
        for (unit, &cost) in costs.iter().enumerate() {
            if !(0.0..=MAX_COST).contains(&cost) {
                return Err(PlanError::Cost { unit, cost });
            }
            sum += cost;
            sums.push(sum);
        }
        Ok(Self(sums))
    }

    fn units(&self) -> usize {
        self.0.len() - 1
    }

    /// Cost of the units from `start` up to `end`. Rounding keeps the order: a longer group is never cheaper.
    fn cost(&self, start: usize, end: usize) -> f64 {
        self.0[end] - self.0[start]
    }

    /// Whether `stages` groups of at most `limit` hold all units. Fewer groups than `stages` will do: any group of
    /// several units can be cut.
    fn fits(&self, stages: usize, limit: f64) -> bool {
        let mut start = 0;
        for _ in 0..stages {
            let ends = &self.0[start + 1..];
            start += ends.partition_point(|end| end - self.0[start] <= limit);
            if start == self.units() {
                return true;
            }
        }
        false
    }

    /// The smallest cost of the largest of `stages` groups: bisection over the bits of the non-negative floats, whose
    /// order is that of the numbers.
    fn smallest_limit(&self, stages: usize) -> f64 {
        let (mut low, mut high) = (0, self.cost(0, self.units()).to_bits());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.fits(stages, f64::from_bits(middle)) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        f64::from_bits(high)
    }

    /// The split into `stages` groups of at most `limit` with the smallest sum of squares, by dynamic
    /// programming over the groups and the end of the last one.
    fn most_even(&self, stages: usize, limit: f64) -> LayerMap {
        let units = self.units();
        let mut least = vec![f64::INFINITY; units + 1]; // sum of squares of the groups so far, for each end
        least[0] = 0.0;
        let mut starts = Vec::with_capacity(stages); // of the last group, for each end
        for _ in 0..stages {
            let mut next = vec![f64::INFINITY; units + 1];
            let mut start_of = vec![0; units + 1];
            for end in 1..=units {
                for start in (0..end).rev().take_while(|&start| self.cost(start, end) <= limit) {
                    let squares = least[start] + self.cost(start, end).powi(2);
                    if squares <= next[end] {
                        (next[end], start_of[end]) = (squares, start);
                    }
                }
            }
            least = next;
            starts.push(start_of);
        }
        let mut counts = vec![0; stages];
        let mut end = units;
        for (count, start_of) in counts.iter_mut().zip(&starts).rev() {
            *count = end - start_of[end];
            end = start_of[end];
        }
        LayerMap::from_counts(units - 2, &counts).expect("groups of at least one unit, of all units together")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::config::StageUnits;

    fn counts(map: &LayerMap) -> Vec<usize> {
        map.stages().iter().map(StageUnits::len).collect()
    }

    /// Cost of the largest group and sum of squares.
    fn quality(costs: &[f64], counts: &[usize]) -> (f64, f64) {
        let mut rest = costs;
        counts.iter().fold((0.0, 0.0), |(largest, squares), &count| {
            let (group, behind) = rest.split_at(count);
            rest = behind;
            let cost: f64 = group.iter().sum();
            (f64::max(largest, cost), squares + cost * cost)
        })
    }

    /// All ways to write `units` as `stages` counts of at least 1, the last group's largest first, then the one before
    /// it, and so on.
    fn splits(units: usize, stages: usize) -> Vec<Vec<usize>> {
        if stages == 1 {
            return vec![vec![units]];
        }
        let last = (1..=units + 1 - stages).rev();
        last.flat_map(|last| {
            let mut fronts = splits(units - last, stages - 1);
            for front in &mut fronts {
                front.push(last);
            }
            fronts
        })
        .collect()
    }

    fn brute_force(costs: &[f64], stages: usize) -> Vec<usize> {
        let mut splits = splits(costs.len(), stages);
        splits.sort_by(|a, b| {
            let ((a, a_squares), (b, b_squares)) = (quality(costs, a), quality(costs, b));
            a.total_cmp(&b).then(a_squares.total_cmp(&b_squares))
        });
        splits.swap_remove(0)
    }

    proptest! {
        /// Small whole numbers make many ties, and their sums are exact.
        #[test]
        fn the_best_of_all_splits_is_found(
            costs in prop::collection::vec(0u8..5, 2..10),
            stages in 1usize..10,
        ) {
            let costs: Vec<f64> = costs.into_iter().map(f64::from).collect();
            let stages = stages.min(costs.len());
            let map = partition(&costs, stages).unwrap();
            prop_assert_eq!(counts(&map), brute_force(&costs, stages));
        }

        /// Sums in another order differ by a rounding or two of the total.
        #[test]
        fn no_split_is_better_for_any_costs(
            costs in prop::collection::vec(0.0f64..1.0, 2..10),
            stages in 1usize..10,
        ) {
            let stages = stages.min(costs.len());
            let map = partition(&costs, stages).unwrap();
            let best = quality(&costs, &brute_force(&costs, stages)).0;
            let rounding = 4.0 * costs.len() as f64 * f64::EPSILON * costs.iter().sum::<f64>();
            prop_assert!(quality(&costs, &counts(&map)).0 <= best + rounding);
        }
    }

    #[test]
    fn a_heavy_head_stands_alone() {
        let map = partition(&[1.0, 2.0, 2.0, 2.0, 2.0, 9.0], 2).unwrap();
        assert_eq!(map.to_string(), "embed 0-3 | head");
    }

    #[test]
    fn equal_units_are_split_evenly_and_earlier_stages_get_fewer() {
        assert_eq!(counts(&partition(&[1.0; 8], 4).unwrap()), [2, 2, 2, 2]);
        assert_eq!(counts(&partition(&[1.0; 5], 2).unwrap()), [2, 3]);
        assert_eq!(counts(&partition(&[0.0; 4], 3).unwrap()), [1, 1, 2]);
    }

    #[test]
    fn a_large_model_is_split_quickly() {
        let map = partition(&[1.0; 1026], 64).unwrap();
        assert_eq!(counts(&map).iter().max(), Some(&17));
    }

    #[test]
    fn what_cannot_be_split_is_refused() {
        assert_eq!(partition(&[1.0; 3], 4), Err(PlanError::Stages { stages: 4, units: 3 }));
        assert_eq!(partition(&[1.0; 3], 0), Err(PlanError::Stages { stages: 0, units: 3 }));
        assert_eq!(partition(&[1.0], 1), Err(PlanError::Units { units: 1 }));
        for cost in [-1.0, f64::INFINITY, f64::MAX] {
            assert_eq!(partition(&[1.0, cost, 1.0], 2), Err(PlanError::Cost { unit: 1, cost }));
        }
        let error = partition(&[1.0, f64::NAN], 2).unwrap_err();
        assert_eq!(error.to_string(), "cost of unit 1: expected a number from 0 to 1e100, found NaN");
    }
}
