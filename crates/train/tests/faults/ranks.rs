//! Ranks of a stage that fail, and values that are not finite on one of them.

use std::time::{Duration, Instant};

use burn::tensor::Tensor;
use thinwire_train::config::Config;
use thinwire_train::model::Part;
use thinwire_train::optim::AdamW;
use thinwire_train::pipeline::{Engine, PipelineError};
use thinwire_train::run::{Links, Setup};
use thinwire_train::text::chain;

use super::engines::{Poke, drive};
use super::stages;
use super::support::config;

const RANKS: &str = "tensor_parallel.ranks=2";

/// Far less than the deadline, 20 s: nobody waits for it.
const AT_ONCE: Duration = Duration::from_secs(8);

fn engine(config: &Config) -> (Setup, Engine) {
    let setup = Setup::load(config.clone()).unwrap();
    let engine = setup.engine(0, Links::default()).unwrap();
    (setup, engine)
}

/// Has rank 1 do `harm` to its share.
fn harm_rank_1(engine: &mut Engine, harm: fn(&mut Part)) -> Result<(), PipelineError> {
    let change = move |part: &mut Part, _: &mut AdamW| -> Result<(), PipelineError> {
        if part.params().shard().rank() == 1 {
            harm(part);
        }
        Ok(())
    };
    engine.change(change).and_then(|result| result)
}

/// One value where there were many: the next forward pass panics in the middle.
fn cut(part: &mut Part) {
    let name = "model.layers.1.mlp.down_proj.weight";
    let parameter = part.params_mut().iter_mut().find(|parameter| parameter.name == name).unwrap();
    parameter.value = Tensor::from_floats([1.0], &parameter.value.device());
}

#[test]
fn a_rank_that_panics_in_a_pass_ends_the_stage_with_its_reason() {
    let dir = tempfile::tempdir().unwrap();
    for more in ["train.gradient_checkpointing=false", "train.gradient_checkpointing=true"] {
        let (mut setup, mut engine) = engine(&config(dir.path(), &[RANKS, more]));
        let batches = setup.batches.step(0).unwrap();
        engine.step(1, &batches).unwrap();
        harm_rank_1(&mut engine, cut).unwrap();
        let begin = Instant::now();
        for _ in 0..2 {
            let error = engine.step(2, &batches).unwrap_err().to_string();
            assert!(error.starts_with("stage 0: rank 1 has ended: "), "{error}");
        }
        assert!(begin.elapsed() < AT_ONCE, "{:?}", begin.elapsed());
    }
}

#[test]
fn a_rank_that_ends_between_passes_is_missed_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let (mut setup, mut engine) = engine(&config(dir.path(), &[RANKS]));
    let expected = "stage 0: rank 1 has ended: broken by the test";
    let error = harm_rank_1(&mut engine, |_| panic!("broken by the test")).unwrap_err();
    assert_eq!(error.to_string(), expected);
    let batches = setup.batches.step(0).unwrap();
    let begin = Instant::now();
    assert_eq!(engine.step(1, &batches).unwrap_err().to_string(), expected);
    assert!(begin.elapsed() < AT_ONCE, "{:?}", begin.elapsed());
}

/// A weight of rank 0 that is NaN in step 2.
fn poke(stage: usize) -> Poke {
    Poke { stage, step: 2, parameter: "model.layers.1.mlp.down_proj.weight", range: 0..1, value: f32::NAN }
}

#[test]
fn a_value_that_is_not_finite_stops_all_stages_with_its_rank() {
    for (count, stage) in [(1, 0), (2, 1)] {
        let dir = tempfile::tempdir().unwrap();
        let driven = drive(&config(dir.path(), &stages(count, &[RANKS])), 3, &poke(stage));
        let error = chain(driven[stage].error.as_ref().unwrap());
        let expected = format!("stage {stage}: its ranks cannot add up: value ");
        assert!(error.starts_with(&expected), "{error}");
        assert!(error.contains(" of the tensor of rank 0 is NaN"), "{error}");
        for (other, driven) in driven.iter().enumerate() {
            assert_eq!(driven.reports.len(), 1);
            let told = chain(driven.error.as_ref().unwrap());
            assert!(other == stage || told.ends_with(&error), "stage {other} was told {told}");
        }
    }
}

#[test]
fn skip_step_joins_the_ranks_anew() {
    for (count, stage) in [(1, 0), (2, 0), (2, 1)] {
        let dir = tempfile::tempdir().unwrap();
        let set = [RANKS, "pipeline.non_finite=skip-step", "tensor_parallel.all_reduce=echo:group=16"];
        let config = config(dir.path(), &stages(count, &set));
        let name = ["model.layers.0.mlp.down_proj.weight", "model.layers.1.mlp.down_proj.weight"];
        let parameter = name[if count == 1 { 1 } else { stage }];
        for (at, driven) in drive(&config, 4, &Poke { parameter, ..poke(stage) }).into_iter().enumerate() {
            assert!(driven.error.is_none(), "{:?}", driven.error);
            let skipped: Vec<_> = driven.reports.iter().map(|report| report.skipped.is_some()).collect();
            assert_eq!(skipped, [false, true, false, false], "{count} stages, stage {at}");
            let cause = driven.reports[1].skipped.as_deref().unwrap();
            assert!(at != stage || cause.contains(" of the tensor of rank 0 is NaN"), "{cause}");
            assert!(driven.parameters[1] == driven.parameters[0], "the skipped step changes nothing");
            assert!(driven.parameters[2] != driven.parameters[1], "the next one does");
            assert!(driven.reports.iter().skip(2).all(|report| report.loss.is_finite()));
        }
    }
}
