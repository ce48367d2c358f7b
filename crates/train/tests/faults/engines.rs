//! Stages step by step, their parameters within reach.

use std::ops::Range;
use std::thread;

use burn::tensor::Tensor;
use thinwire_link::{Link, memory};
use thinwire_train::config::Config;
use thinwire_train::pipeline::{Engine, PipelineError, StepReport};
use thinwire_train::run::{Links, Setup};

/// A change of some values of a parameter in front of one step, which the run must not survive or must skip: afterwards the
/// parameter is put back.
pub(crate) struct Poke {
    pub(crate) stage: usize,
    pub(crate) step: u64,
    pub(crate) parameter: &'static str,
    /// Which values, in the flat parameter.
    pub(crate) range: Range<usize>,
    pub(crate) value: f32,
}

/// What one stage did.
pub(crate) struct Driven {
    pub(crate) reports: Vec<StepReport>,
    /// The parameters after each step.
    pub(crate) parameters: Vec<Vec<f32>>,
    pub(crate) error: Option<PipelineError>,
}

/// Runs `steps` steps on all stages.
pub(crate) fn drive(config: &Config, steps: u64, poke: &Poke) -> Vec<Driven> {
    let mut setup = Setup::load(config.clone()).unwrap();
    let batches: Vec<_> = (0..steps).map(|step| setup.batches.step(step).unwrap()).collect();
    let engines = engines(&setup);
    thread::scope(|scope| {
        let handles: Vec<_> = engines
            .into_iter()
            .enumerate()
            .map(|(stage, mut engine)| {
                let batches = &batches;
                scope.spawn(move || {
                    let mut driven = Driven { reports: Vec::new(), parameters: Vec::new(), error: None };
                    for (step, batches) in (1..).zip(batches) {
                        let saved =
                            (poke.stage == stage && poke.step == step).then(|| poke.apply(&mut engine));
                        match engine.step(step, batches) {
                            Ok(report) => driven.reports.push(report),
                            Err(error) => {
                                driven.error = Some(engine.abort(error));
                                return driven;
                            }
                        }
                        if let Some(saved) = saved {
                            *poke.target(&mut engine) = saved;
                        }
                        driven.parameters.push(parameters(&engine));
                    }
                    engine.close();
                    driven
                })
            })
            .collect();
        handles.into_iter().map(|handle| handle.join().expect("no stage panics")).collect()
    })
}

impl Poke {
    /// Changes the values, and gives the parameter as it was.
    fn apply(&self, engine: &mut Engine) -> Tensor<1> {
        let target = self.target(engine);
        let saved = target.clone();
        let mut values = saved.to_data().try_to_vec::<f32>().unwrap();
        values[self.range.clone()].fill(self.value);
        *target = Tensor::from_floats(values.as_slice(), &saved.device());
        saved
    }

    fn target<'a>(&self, engine: &'a mut Engine) -> &'a mut Tensor<1> {
        let params = engine.state_mut().0.params_mut();
        &mut params.iter_mut().find(|parameter| parameter.name == self.parameter).unwrap().value
    }
}

fn engines(setup: &Setup) -> Vec<Engine> {
    let config = |from, to| setup.link_config(from, to, false).unwrap();
    let mut previous: Option<Link> = None;
    (0..setup.stages())
        .map(|stage| {
            let pair = (stage + 1 < setup.stages())
                .then(|| memory::pair(&config(stage, stage + 1), &config(stage + 1, stage)).unwrap());
            let (next, after) = pair.unzip();
            setup.engine(stage, Links { previous: std::mem::replace(&mut previous, after), next }).unwrap()
        })
        .collect()
}

fn parameters(engine: &Engine) -> Vec<f32> {
    let params = engine.state().0.params().iter();
    params.flat_map(|parameter| parameter.value.to_data().try_to_vec::<f32>().unwrap()).collect()
}
