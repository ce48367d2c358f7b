//! Runs that end well.

use std::fs;

use serde_json::Value;

use super::recipe::{Recipe, steps, succeed};

#[test]
fn any_number_of_stages_gives_the_same_and_tells_what_it_sent() {
    let mut reference = None;
    for stages in 1..=4 {
        let recipe = Recipe::new();
        let report = recipe.report(stages, &["pipeline.forward=f32", "pipeline.backward=f32"]);
        let links = report["links"].as_array().unwrap();
        assert_eq!(links.len(), 2 * (stages - 1));
        for link in links {
            let (from, to) = (link["from"].as_u64().unwrap(), link["to"].as_u64().unwrap());
            let direction = if from < to { "forward" } else { "backward" };
            assert!(from.abs_diff(to) == 1 && link["direction"] == direction, "{link}");
            // 18 micro-batches of 64 tokens and 32 channels; forward also 200 tokens in each of three evaluations.
            let elements = 18 * 64 * 32 + if from < to { 3 * 200 * 32 } else { 0 };
            assert_eq!(link["elements"], elements);
            assert!(link["bytes"].as_u64().unwrap() > 4 * elements, "{link}");
            assert!((32.0..32.1).contains(&link["bits_per_element"].as_f64().unwrap()), "{link}");
            assert_eq!(link["rel_sq_error"], 0.0);
        }
        assert!(report["tokens_per_second"].as_f64().unwrap() > 0.0);
        assert_eq!((&report["steps"], &report["tokens"]), (&6.into(), &(18 * 64).into()));

        let metrics = recipe.metrics();
        assert_eq!(steps(&metrics), [1, 2, 3, 4, 5, 6]);
        assert_eq!(metrics.last().unwrap().0, "eval");
        assert_eq!(report["final_loss"].to_string(), metrics[metrics.len() - 2].2);
        let loss: f64 = metrics.last().unwrap().2.parse().unwrap();
        assert_eq!(report["heldout_perplexity"].as_f64().unwrap(), loss.exp());
        assert_eq!(recipe.checkpoints(), [(2, true), (4, true), (6, true)]);
        assert_eq!(*reference.get_or_insert(metrics.clone()), metrics, "{stages} stages");
    }
}

#[test]
fn ranks_share_the_layers_of_every_stage_and_what_they_send_is_told() {
    let recipe = Recipe::new();
    let set = ["tensor_parallel.ranks=2", "tensor_parallel.all_reduce=echo:bits=4,group=32"];
    let report = recipe.report(2, &set);
    assert_eq!(steps(&recipe.metrics()), [1, 2, 3, 4, 5, 6]);
    let told = report["all_reduces"].as_array().unwrap();
    let names: Vec<_> = told.iter().map(|all| (all["stage"].as_u64(), all["direction"].as_str())).collect();
    let both = |stage| [(Some(stage), Some("forward")), (Some(stage), Some("backward"))];
    assert_eq!(names, [both(0), both(1)].concat());
    for all in told {
        assert_eq!((&all["ranks"], &all["bytes"]), (&2.into(), &all["total_bytes"]));
        assert!(all["bytes"].as_u64().unwrap() * 3 < all["f32_bytes"].as_u64().unwrap(), "{all}");
        let sites = report["sums"].as_array().unwrap().iter();
        let here =
            sites.filter(|site| (&site["stage"], &site["direction"]) == (&all["stage"], &all["direction"]));
        let sum = |field: &str| here.clone().map(|site| site[field].as_u64().unwrap()).sum::<u64>();
        assert_eq!(
            (sum("calls"), sum("bytes")),
            (all["calls"].as_u64().unwrap(), all["bytes"].as_u64().unwrap())
        );
    }
    let site = &report["sums"][0];
    assert_eq!(
        (&site["site"], &site["block"], &site["stage"]),
        (&"embedding".into(), &Value::Null, &0.into())
    );
    assert!(site["sum_rms"].as_f64().unwrap() > 0.0, "{site}");
    assert_eq!(recipe.checkpoints(), [(2, true), (4, true), (6, true)]);

    // It is evaluated, and goes on, with one rank.
    let mut resumed = recipe.train(1, &["train.steps=8"]);
    let report = succeed(resumed.arg("--resume"));
    assert_eq!((&report["steps"], &report["all_reduces"]), (&8.into(), &Value::Null));
}

#[test]
fn a_comparison_runs_twice_and_draws_both_curves() {
    let recipe = Recipe::new();
    let report = succeed(recipe.train(2, &[]).args(["--compare", "f32"]));
    let other = &report["comparison"];
    assert!(report["final_loss"].as_f64().unwrap() > 0.0);
    assert_eq!(other["final_loss"].to_string(), recipe.metrics_of("run/compare-raw-dtype-f32")[7].2);
    let plot = fs::read_to_string(recipe.path("run/compare.svg")).unwrap();
    assert!(plot.starts_with("<svg") && plot.contains("raw:dtype=f32") && plot.contains("tah:"), "{plot}");
}
