//! Global norm clipping.

/// The factor that brings a gradient of this norm down to `limit`; 1 when it is below, or when `limit` is 0.
pub fn clip_factor(norm: f64, limit: f64) -> f64 {
    if limit > 0.0 && norm > limit { limit / norm } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clipping_starts_at_the_limit() {
        assert_eq!(clip_factor(0.5, 1.0), 1.0);
        assert_eq!(clip_factor(4.0, 1.0), 0.25);
        assert_eq!(clip_factor(4.0, 0.0), 1.0);
    }
}
