//! Small pipelines whose steps are computed by hand, and what must hold for all.

use proptest::prelude::*;

use super::*;
use crate::config::PipelineSchedule::{GPipe, OneForwardOneBackward};

/// `stages` alike, each on a machine of its own, with links alike in both directions.
fn pipeline(
    schedule: PipelineSchedule,
    [stages, micro_batches]: [usize; 2],
    stage: StageTiming,
    direction: DirectionTiming,
) -> Timing {
    Timing {
        schedule,
        micro_batches: micro_batches as u32,
        hosts: vec![Host::UNSHARED; stages],
        stages: (0..stages).map(|host| StageTiming { host, threads: 1, ..stage }).collect(),
        links: vec![[DirectionTiming { codec_threads: 1, ..direction }; 2]; stages - 1],
    }
}

fn passes(forward: f64, backward: f64) -> StageTiming {
    StageTiming { forward, backward, ..StageTiming::default() }
}

fn sending(send: f64) -> DirectionTiming {
    DirectionTiming { send, ..DirectionTiming::default() }
}

#[test]
fn one_micro_batch_goes_down_and_up() {
    let direction = DirectionTiming {
        encode: 0.25,
        send: 0.5,
        decode: 0.125,
        latency: 4.0,
        control: 0.0625,
        ..DirectionTiming::default()
    };
    let stage = StageTiming { norms: 8.0, decide: 16.0, update: 32.0, ..passes(1.0, 2.0) };
    for schedule in [GPipe, OneForwardOneBackward] {
        let simulated = simulate(&pipeline(schedule, [2, 1], stage, direction));
        let tensor = 0.25 + 0.5 + 4.0 + 0.125;
        let agreement = 8.0 + (0.0625 + 4.0) + 16.0 + (0.0625 + 4.0) + 32.0;
        // The last stage has ended its update by the time the next activation comes.
        assert_eq!(simulated.step, 1.0 + tensor + 1.0 + 2.0 + tensor + 2.0 + agreement);
        assert_eq!(simulated.stages, [43.0, 59.0]);
        let load = DirectionLoad { encode: 0.25, send: 0.5625, decode: 0.125, outgoing: 1, incoming: 1 };
        assert_eq!(simulated.links, [[load; 2]]);
    }
}

#[test]
fn without_links_the_bubble_is_that_of_the_papers() {
    // (micro-batches + stages - 1) (forward + backward), under both schedules.
    for schedule in [GPipe, OneForwardOneBackward] {
        let step = |stages, micro_batches| {
            simulate(&pipeline(schedule, [stages, micro_batches], passes(1.0, 2.0), sending(0.0))).step
        };
        assert_eq!(step(1, 3), 9.0);
        assert_eq!(step(2, 1), 6.0);
        assert_eq!(step(2, 3), 12.0);
        assert_eq!(step(4, 8), 33.0);
    }
}

#[test]
fn a_slow_link_carries_one_message_after_the_other() {
    let step = |schedule, micro_batches| {
        simulate(&pipeline(schedule, [2, micro_batches], passes(1.0, 1.0), sending(4.0)))
    };
    // GPipe: a forward, all activations, a forward, a backward, all gradients, a backward.
    assert_eq!(step(GPipe, 3).step, 1.0 + 3.0 * 4.0 + 1.0 + 1.0 + 3.0 * 4.0 + 1.0);
    // 1F1B, forwards on the link at 1-5, 5-9 and 13-17, as the third one follows the first backward (11-12);
    // backwards at 7-11, 11-15 and 19-23.
    assert_eq!(step(OneForwardOneBackward, 3).step, 24.0);
    assert_eq!(step(OneForwardOneBackward, 1).step, 12.0);
    // Tensors queue where the link is slow.
    let load = step(GPipe, 3).links[0];
    assert_eq!([load[0].outgoing, load[0].incoming], [3, 1]);
    assert_eq!([load[1].outgoing, load[1].incoming], [3, 1]);
}

#[test]
fn encoding_and_decoding_overlap_with_sending_and_computation() {
    let direction = DirectionTiming { encode: 1.0, send: 2.0, decode: 3.0, ..DirectionTiming::default() };
    let simulated = simulate(&pipeline(GPipe, [2, 3], passes(0.0, 0.0), direction));
    // The sender's thread takes 3 for a message, and so does the receiver's, which begins when it has come.
    assert_eq!(simulated.step, 2.0 * (3.0 * 3.0 + 3.0));
}

#[test]
fn an_idle_link_has_saved_its_burst() {
    let with = |burst| DirectionTiming { burst, ..sending(4.0) };
    let step = |burst| simulate(&pipeline(OneForwardOneBackward, [2, 1], passes(1.0, 1.0), with(burst))).step;
    assert_eq!(step(1.0), step(0.0) - 2.0 * 1.0);
    assert_eq!(step(100.0), 4.0, "all of it is saved between two messages");
}

#[test]
fn threads_of_one_machine_share_its_cores() {
    let shared = |cores, slowdown| {
        let mut timing = pipeline(GPipe, [2, 4], passes(1.0, 1.0), sending(0.0));
        timing.hosts = vec![Host { cores, slowdown, wake: 0.0 }];
        timing.stages.iter_mut().for_each(|stage| stage.host = 0);
        simulate(&timing).step
    };
    let separate = simulate(&pipeline(GPipe, [2, 4], passes(1.0, 1.0), sending(0.0))).step;
    assert_eq!(separate, 10.0);
    assert_eq!(shared(2.0, 1.0), separate);
    assert_eq!(shared(1.0, 1.0), 16.0, "one core does all the work");
    // Both compute for 3 + 3 of the 10 units, in which they take twice as long.
    assert_eq!(shared(2.0, 2.0), 4.0 + 6.0 * 2.0);
}

#[test]
fn a_thread_that_was_asleep_waits_for_a_core_where_none_is_free() {
    let step = |micro_batches, cores, wake| {
        let mut timing = pipeline(GPipe, [2, micro_batches], passes(1.0, 1.0), DirectionTiming::default());
        timing.hosts = vec![Host { cores, slowdown: 1.0, wake }];
        timing.stages.iter_mut().for_each(|stage| stage.host = 0);
        simulate(&timing).step
    };
    assert_eq!(step(1, 1.0, 0.5), 4.0, "one micro-batch: the other stage is idle");
    assert_eq!(step(4, 3.0, 0.5), step(4, 3.0, 0.0), "two stages never fill three cores");
    assert_eq!(step(2, 1.0, 0.0), 8.0, "one core does all the work");
    // Long before the threads of the link and of the stage behind it have a core, the first stage has nothing left to do.
    assert!(step(2, 1.0, 2.0) > 8.0);
}

#[test]
fn a_step_begins_where_the_one_before_has_left_a_stage() {
    // The last stage is still at its update when the first activation comes.
    let mut timing = pipeline(GPipe, [2, 1], passes(1.0, 1.0), sending(0.0));
    timing.stages[1].update = 5.0;
    assert_eq!(simulate(&timing).step, 4.0 + 4.0);
}

fn times() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), 0.0..4.0f64]
}

fn any_stage() -> impl Strategy<Value = StageTiming> {
    [times(), times(), times(), times(), times()].prop_map(|[forward, backward, norms, decide, update]| {
        StageTiming { host: 0, threads: 1, forward, backward, norms, decide, update }
    })
}

fn any_direction() -> impl Strategy<Value = DirectionTiming> {
    [times(), times(), times(), times(), times()].prop_map(|[encode, decode, send, control, latency]| {
        DirectionTiming { encode, decode, codec_threads: 1, send, control, latency, burst: 0.0 }
    })
}

/// Stages on machines of their own: there all waits are for what an order that is fixed puts first.
fn any_timing() -> impl Strategy<Value = Timing> {
    let stages = prop::collection::vec((any_stage(), [any_direction(), any_direction()]), 1..5);
    (any::<bool>(), 1u32..6, stages).prop_map(|(gpipe, micro_batches, stages)| {
        let (mut stages, mut links): (Vec<_>, Vec<_>) = stages.into_iter().unzip();
        links.pop();
        stages.iter_mut().enumerate().for_each(|(host, stage)| stage.host = host);
        let schedule = if gpipe { GPipe } else { OneForwardOneBackward };
        Timing { schedule, micro_batches, hosts: vec![Host::UNSHARED; stages.len()], stages, links }
    })
}

/// Every time of a `Timing`.
fn all_times(timing: &mut Timing) -> Vec<&mut f64> {
    let stages = timing.stages.iter_mut().flat_map(|stage| {
        let StageTiming { forward, backward, norms, decide, update, .. } = stage;
        [forward, backward, norms, decide, update]
    });
    let directions = timing.links.iter_mut().flatten().flat_map(|direction| {
        let DirectionTiming { encode, decode, send, control, latency, .. } = direction;
        [encode, decode, send, control, latency]
    });
    stages.chain(directions).collect()
}

/// Sums in another order differ by roundings.
const ROUNDING: f64 = 1e-12;

proptest! {
    #[test]
    fn nothing_is_slower_for_a_faster_part(timing in any_timing(), which: prop::sample::Index, factor in 0.0..1.0f64) {
        let mut faster = timing.clone();
        let times = all_times(&mut faster);
        let which = which.index(times.len());
        *times.into_iter().nth(which).expect("an index of it") *= factor;
        prop_assert!(simulate(&faster).step <= simulate(&timing).step * (1.0 + ROUNDING) + ROUNDING);
    }

    #[test]
    fn the_step_is_as_long_as_its_parts(timing in any_timing(), power in -20i32..20) {
        let mut scaled = timing.clone();
        for time in all_times(&mut scaled) {
            *time *= 2f64.powi(power);
        }
        prop_assert_eq!(simulate(&scaled).step, simulate(&timing).step * 2f64.powi(power));
    }

    #[test]
    fn the_step_lies_between_its_bounds(timing in any_timing()) {
        let simulated = simulate(&timing);
        let m = f64::from(timing.micro_batches);
        let compute = timing.stages.iter().map(|stage| m * (stage.forward + stage.backward) + stage.norms + stage.update);
        let mut bound = compute.clone().fold(0.0, f64::max);
        let mut sum: f64 = compute.sum();
        sum += timing.stages.last().unwrap().decide;
        for direction in timing.links.iter().flatten() {
            let DirectionTiming { encode, decode, send, control, latency, .. } = direction;
            bound = bound.max(m * (encode + send)).max(m * decode);
            sum += m * (encode + send + decode + latency) + control + latency;
        }
        prop_assert!(simulated.step >= bound * (1.0 - ROUNDING) - ROUNDING, "{} < {bound}", simulated.step);
        prop_assert!(simulated.step <= sum * (1.0 + ROUNDING) + ROUNDING, "{} > {sum}", simulated.step);
    }

    #[test]
    fn every_piece_of_work_is_done_once(timing in any_timing()) {
        let simulated = simulate(&timing);
        let m = f64::from(timing.micro_batches);
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * (1.0 + b);
        for (at, (stage, busy)) in timing.stages.iter().zip(&simulated.stages).enumerate() {
            let decide = if at + 1 == timing.stages.len() { stage.decide } else { 0.0 };
            let work = m * (stage.forward + stage.backward) + stage.norms + decide + stage.update;
            prop_assert!(near(*busy, work), "stage {at}: {busy} of {work}");
        }
        for (direction, load) in timing.links.iter().flatten().zip(simulated.links.iter().flatten()) {
            prop_assert!(near(load.encode, m * direction.encode));
            prop_assert!(near(load.decode, m * direction.decode));
            prop_assert!(near(load.send, m * direction.send + direction.control));
        }
    }
}
