/// What a codec did to a tensor: sums that can be merged over messages.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ErrorStats {
    /// Values compared.
    pub elements: u64,
    /// `sum (decoded - x)^2`.
    pub sq_error: f64,
    /// `sum x^2`.
    pub sq_signal: f64,
    /// `max |decoded - x|`.
    pub max_abs_error: f64,
}

impl ErrorStats {
    /// Adds the sums of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.elements += other.elements;
        self.sq_error += other.sq_error;
        self.sq_signal += other.sq_signal;
        self.max_abs_error = self.max_abs_error.max(other.max_abs_error);
    }

    /// `|decoded - x|^2 / |x|^2`; 0 where nothing was lost, infinite where an all-zero tensor came back changed.
    pub fn rel_sq_error(&self) -> f64 {
        if self.sq_error == 0.0 { 0.0 } else { self.sq_error / self.sq_signal }
    }

    pub(crate) fn of(pairs: impl Iterator<Item = (f32, f32)>) -> Self {
        let mut stats = Self::default();
        for (x, decoded) in pairs {
            let (x, decoded) = (f64::from(x), f64::from(decoded));
            let error = decoded - x;
            stats.elements += 1;
            stats.sq_error += error * error;
            stats.sq_signal += x * x;
            stats.max_abs_error = stats.max_abs_error.max(error.abs());
        }
        stats
    }
}
