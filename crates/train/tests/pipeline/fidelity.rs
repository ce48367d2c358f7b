//! What compression does to the gradient, against runs of stages with links.

use safetensors::SafeTensors;
use thinwire_train::fidelity::{FidelityReport, FidelitySettings, measure};
use thinwire_train::run::{Resume, Setup};

use crate::support::{config, last_checkpoint, losses, run};

const LAYERS: [&str; 3] = [
    r#"pipeline.layers=["embed 0-1 head"]"#,
    r#"pipeline.layers=["embed 0", "1 head"]"#,
    r#"pipeline.layers=["embed", "0", "1", "head"]"#,
];
const TAH: [&str; 3] =
    ["pipeline.forward=tah", "pipeline.backward=fixed:bits=6", "pipeline.tied=fixed:bits=8"];
const TIED: &str = "model.tie_embeddings=true";

fn fidelity(settings: &[&str], every: u64, batches: u64) -> FidelityReport {
    let dir = tempfile::tempdir().unwrap();
    let setup = Setup::load(config(dir.path(), settings)).unwrap();
    let mut told = 0;
    let report = measure(setup, FidelitySettings { every, batches }, &mut |_| told += 1).unwrap();
    assert_eq!(told, report.points.len());
    report
}

/// Settings of a run in split `split`.
fn split<'a>(split: usize, settings: &[&'a str]) -> Vec<&'a str> {
    let stages = ["pipeline.stages=1", "pipeline.stages=2", "pipeline.stages=4"][split];
    [&[stages, LAYERS[split]], settings].concat()
}

#[test]
fn the_measured_run_is_the_run() {
    for tied in [&[TIED] as &[_], &["train.gradient_checkpointing=true"]] {
        for at in 0..LAYERS.len() {
            let settings = split(at, &[&TAH, tied].concat());
            let dir = tempfile::tempdir().unwrap();
            let (story, _) = run(&config(dir.path(), &settings), Resume::Fresh);
            let report = fidelity(&settings, 2, 3);
            let measured: Vec<u64> = report.losses.iter().map(|loss| loss.to_bits()).collect();
            assert_eq!(measured, losses(&story[0]), "{settings:?}");
            assert_eq!(report.points.iter().map(|point| point.step).collect::<Vec<_>>(), [1, 2, 4]);
        }
    }
}

/// After the first step, AdamW's first moment is `1 - beta1` of the gradient: the checkpoints of two real runs hold
/// both.
#[test]
fn the_error_is_that_of_two_runs() {
    for tied in [&[TIED] as &[_], &[]] {
        let one_step = [tied, &["train.steps=1", "optimizer.clip_norm=0"]].concat();
        let moments = |codecs: &[&str]| {
            let dir = tempfile::tempdir().unwrap();
            let config = config(dir.path(), &split(1, &[&one_step, codecs].concat()));
            let (_, outcomes) = run(&config, Resume::Fresh);
            assert!(outcomes.iter().all(Result::is_ok));
            let mut values = Vec::new();
            for (name, file) in last_checkpoint(&config).iter().filter(|(name, _)| name.contains("optimizer"))
            {
                let file = SafeTensors::deserialize(file).unwrap();
                let mut tensors: Vec<_> = file.tensors();
                tensors.sort_by(|a, b| a.0.cmp(&b.0));
                // A tied matrix is in two files.
                let once =
                    |tensor: &str| tied.is_empty() || !(name.contains("head") && tensor.contains("lm_head"));
                for (_, tensor) in
                    tensors.iter().filter(|(tensor, _)| tensor.ends_with(".exp_avg") && once(tensor))
                {
                    let chunks = tensor.data().chunks_exact(4);
                    values.extend(chunks.map(|b| f64::from(f32::from_le_bytes(b.try_into().unwrap()))));
                }
            }
            values
        };
        let (exact, compressed) = (moments(&[]), moments(&TAH));
        let error: f64 = exact.iter().zip(&compressed).map(|(g, g_hat)| (g_hat - g).powi(2)).sum();
        let expected = error / exact.iter().map(|g| g * g).sum::<f64>();
        let point = fidelity(&split(1, &[&one_step, &TAH as &[_]].concat()), 1, 1).points[0];
        let off = point.step_error / expected - 1.0;
        assert!(expected > 1e-4 && off.abs() < 1e-4, "{} for {expected}", point.step_error);
        assert_eq!(point.mean_error, point.step_error, "the mean of one step is that step");
    }
}

#[test]
fn nothing_compressed_is_nothing_lost() {
    for settings in [split(0, &TAH), split(2, &[TIED])] {
        for point in fidelity(&settings, 1, 2).points {
            assert_eq!((point.step_error, point.mean_error), (0.0, 0.0), "{settings:?}");
        }
    }
}

#[test]
fn fewer_bits_lose_more() {
    let error = |bits: &str| {
        let settings = split(1, &["pipeline.forward=tah", bits, "train.steps=1"]);
        fidelity(&settings, 1, 1).points[0].step_error
    };
    let errors = ["pipeline.backward=fixed:bits=3", "pipeline.backward=fixed:bits=10"].map(error);
    assert!(errors[0] > 1.5 * errors[1], "{errors:?}");
}

/// Two steps of four micro-batches are one step of eight, each with half the weight, which codecs do not see.
#[test]
fn a_mean_over_steps_is_a_larger_step() {
    let point = |micro_batches: &str, batches| {
        let settings = split(1, &[&TAH as &[_], &["train.steps=1", micro_batches]].concat());
        fidelity(&settings, 1, batches).points[0]
    };
    let (mean, large) = (point("train.micro_batches=4", 2), point("train.micro_batches=8", 1));
    assert!((mean.mean_error / large.step_error - 1.0).abs() < 1e-4, "{mean:?}, {large:?}");
    assert!((mean.step_error / mean.mean_error - 1.0).abs() > 1e-3, "{mean:?}: two figures");
}
