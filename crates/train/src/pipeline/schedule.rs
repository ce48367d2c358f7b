//! In which order a stage works through the micro-batches of a step.

use crate::config::PipelineSchedule;

/// One piece of a stage's step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The forward pass of this micro-batch.
    Forward(u32),
    /// The backward pass of this micro-batch.
    Backward(u32),
}

/// The actions of stage `stage` of `stages` in a step of `micro_batches`.
///
/// `GPipe` (Huang et al., 2019) runs every forward before the first backward. 1F1B (Narayanan et al., 2019) starts the
/// backward of a micro-batch as soon as it can, so stage `k` holds at most `stages - k` of them. Under both, forwards
/// and backwards each run in micro-batch order, which keeps the sums of gradients the same to the bit.
pub fn actions(schedule: PipelineSchedule, stage: usize, stages: usize, micro_batches: u32) -> Vec<Action> {
    let ahead = match schedule {
        PipelineSchedule::GPipe => micro_batches,
        PipelineSchedule::OneForwardOneBackward => {
            u32::try_from(stages - stage).map_or(micro_batches, |depth| depth.min(micro_batches))
        }
    };
    let mut actions: Vec<Action> = (0..ahead).map(Action::Forward).collect();
    for done in 0..micro_batches {
        actions.push(Action::Backward(done));
        if done + ahead < micro_batches {
            actions.push(Action::Forward(done + ahead));
        }
    }
    actions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(schedule: PipelineSchedule, stage: usize, stages: usize, micro_batches: u32) -> String {
        let name = |action| match action {
            Action::Forward(m) => format!("F{m}"),
            Action::Backward(m) => format!("B{m}"),
        };
        actions(schedule, stage, stages, micro_batches).into_iter().map(name).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn gpipe_runs_all_forwards_first() {
        assert_eq!(order(PipelineSchedule::GPipe, 0, 2, 3), "F0 F1 F2 B0 B1 B2");
    }

    #[test]
    fn one_forward_one_backward_holds_as_many_as_stages_follow() {
        let one = PipelineSchedule::OneForwardOneBackward;
        assert_eq!(order(one, 0, 2, 4), "F0 F1 B0 F2 B1 F3 B2 B3");
        assert_eq!(order(one, 1, 2, 4), "F0 B0 F1 B1 F2 B2 F3 B3");
        assert_eq!(order(one, 0, 4, 2), "F0 F1 B0 B1");
    }

    #[test]
    fn every_micro_batch_goes_forward_then_backward_once_in_order() {
        for schedule in [PipelineSchedule::GPipe, PipelineSchedule::OneForwardOneBackward] {
            for (stage, stages, micro_batches) in [(0, 1, 1), (0, 1, 5), (1, 4, 3), (3, 4, 9), (0, 8, 2)] {
                let all = actions(schedule, stage, stages, micro_batches);
                let forwards: Vec<_> = all.iter().filter(|a| matches!(a, Action::Forward(_))).collect();
                let backwards: Vec<_> = all.iter().filter(|a| matches!(a, Action::Backward(_))).collect();
                assert!((0..micro_batches).map(Action::Forward).eq(forwards.into_iter().copied()));
                assert!((0..micro_batches).map(Action::Backward).eq(backwards.into_iter().copied()));
                for m in 0..micro_batches {
                    let at = |action| all.iter().position(|&a| a == action).unwrap();
                    assert!(at(Action::Forward(m)) < at(Action::Backward(m)));
                }
            }
        }
    }
}
