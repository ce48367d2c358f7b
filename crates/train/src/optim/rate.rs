//! Learning-rate schedules: pure functions of the step.

use crate::config::{LearningRateSchedule, OptimizerConfig};

/// Linear warm-up, then a decay to `final_ratio * peak` at the last step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateSchedule {
    /// The rate at the end of the warm-up.
    pub peak: f64,
    /// Steps of warm-up; step 0 already has `peak / warmup`.
    pub warmup: u64,
    /// Steps of the whole run.
    pub steps: u64,
    /// The last rate as a share of `peak`.
    pub final_ratio: f64,
    /// The shape of the fall.
    pub decay: LearningRateSchedule,
}

impl RateSchedule {
    /// The schedule of a run of `steps` steps.
    pub fn new(config: &OptimizerConfig, steps: u64) -> Self {
        Self {
            peak: config.learning_rate,
            warmup: config.warmup_steps,
            steps,
            final_ratio: config.final_ratio,
            decay: config.schedule,
        }
    }

    /// The rate of step `step`, counted from 0.
    pub fn at(&self, step: u64) -> f64 {
        if step < self.warmup {
            return self.peak * (step + 1) as f64 / self.warmup as f64;
        }
        let span = self.steps.saturating_sub(self.warmup).saturating_sub(1).max(1);
        let progress = ((step - self.warmup) as f64 / span as f64).min(1.0);
        let height = match self.decay {
            LearningRateSchedule::Constant => return self.peak,
            LearningRateSchedule::Linear => 1.0 - progress,
            LearningRateSchedule::Cosine => 0.5 * (1.0 + (std::f64::consts::PI * progress).cos()),
        };
        self.peak * (self.final_ratio + (1.0 - self.final_ratio) * height)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shape_hits_its_ends() {
        for decay in [LearningRateSchedule::Linear, LearningRateSchedule::Cosine] {
            let schedule = RateSchedule { peak: 2.0, warmup: 4, steps: 11, final_ratio: 0.1, decay };
            assert_eq!(schedule.at(0), 0.5);
            assert_eq!(schedule.at(3), 2.0);
            assert_eq!(schedule.at(4), 2.0);
            assert!((schedule.at(7) - 1.1).abs() < 1e-12, "half way down");
            assert!((schedule.at(10) - 0.2).abs() < 1e-12);
            assert!((schedule.at(99) - 0.2).abs() < 1e-12);
        }
    }

    #[test]
    fn constant_stays_and_no_warmup_is_fine() {
        let schedule = RateSchedule {
            peak: 2.0,
            warmup: 0,
            steps: 1,
            final_ratio: 0.0,
            decay: LearningRateSchedule::Constant,
        };
        assert_eq!(schedule.at(0), 2.0);
        assert_eq!(schedule.at(5), 2.0);
    }
}
