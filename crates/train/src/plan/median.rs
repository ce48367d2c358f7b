//! The middle of measured values.

/// The middle value; of an even number, the upper one of the two.
///
/// # Panics
/// Without a value.
pub(super) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_no_outlier() {
        assert_eq!(median([5.0, 1.0, 900.0]), 5.0);
        assert_eq!(median([3.0]), 3.0);
        assert_eq!(median([2.0, 1.0]), 2.0);
    }
}
