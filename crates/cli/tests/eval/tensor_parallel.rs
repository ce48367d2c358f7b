//! Models shared by ranks.

use serde_json::{Value, json};

use super::common::{failure, json};
use super::run::{GPT2, Run};
use super::{TOKENS, eval};

const ECHO: &str = "echo:bits=4,group=64,quantizer=zero-aware,compensate=true";

fn perplexity(report: &Value) -> f64 {
    report["perplexity"].as_f64().unwrap()
}

#[test]
fn a_runs_checkpoint_is_shared_with_its_own_boundaries() {
    for overrides in [&[][..], &GPT2] {
        let run = Run::train(overrides);
        let report = |arguments: &[&str]| json(eval(&run, &run.dir(), &TOKENS).args(arguments));
        let alone = report(&[]);
        assert_eq!(alone.get("all_reduce"), None);
        assert_eq!(report(&["--tensor-parallel", "1"])["perplexity"], alone["perplexity"]);
        let exact = report(&["--tensor-parallel", "2"]);
        // The boundaries' codecs round what is equal to f32's accuracy; a few values end up in other codes.
        assert!((perplexity(&exact) / perplexity(&alone) - 1.0).abs() < 1e-3, "{exact}, alone {alone}");
        let uncompressed = |report: &Value| report["uncompressed"]["perplexity"].as_f64().unwrap();
        assert!((uncompressed(&exact) / uncompressed(&alone) - 1.0).abs() < 1e-5, "{exact}, alone {alone}");
        assert_eq!(exact["boundaries"], json!([1, 2]));

        let echo = report(&["--tensor-parallel", "2", "--all-reduce", ECHO]);
        assert_eq!(uncompressed(&echo), uncompressed(&exact), "bit for bit");
        assert_ne!(perplexity(&echo), perplexity(&exact));
        let sums = &echo["all_reduce"];
        assert_eq!((&sums["ranks"], &sums["all_reduce"]), (&json!(2), &json!(format!("{ECHO},early=4"))));
        // Six micro-batches; the embedding and two layers a block.
        assert_eq!(sums["calls"], 6 * (1 + 2 * 2));
        let sites = sums["sites"].as_array().unwrap();
        assert_eq!(sites.len(), 5);
        assert_eq!((&sites[0]["site"], sites[0].get("rel_sq_error").is_some()), (&json!("embedding"), true));
        assert_eq!((&sites[4]["site"], &sites[4]["block"]), (&json!("mlp"), &json!(1)));
        let bytes: u64 = sites.iter().map(|site| site["bytes"].as_u64().unwrap()).sum();
        assert_eq!(sums["bytes"], bytes);
        for site in &sites[1..] {
            let error = site["rel_sq_error"].as_f64().unwrap();
            assert!((1e-4..0.1).contains(&error), "{site}");
            // 4 bits, and 32 a group of 64; messages begin with some bytes.
            assert!((4.5..7.0).contains(&site["bits_per_element"].as_f64().unwrap()), "{site}");
            assert!(site["partial_rms"].as_f64().unwrap() > 0.0, "{site}");
        }
    }
}

#[test]
fn a_run_with_ranks_is_evaluated_as_it_reports() {
    let run = Run::train(&["tensor_parallel.ranks=2", &format!("tensor_parallel.all_reduce={ECHO}")]);
    let report = json(&mut eval(&run, &run.dir(), &TOKENS));
    assert_eq!(report["perplexity"], run.report["heldout_perplexity"], "bit for bit");
    assert_eq!(report["all_reduce"]["ranks"], 2);
    let alone = json(eval(&run, &run.dir(), &TOKENS).args(["--tensor-parallel", "1"]));
    assert_eq!(alone.get("all_reduce"), None);
    assert_ne!(alone["perplexity"], report["perplexity"]);
}

#[test]
fn what_cannot_be_shared_or_added_up_is_told() {
    let run = Run::train(&[]);
    let error = failure(&mut eval(&run, &run.dir(), &["--tensor-parallel", "3"]), 1);
    let expected = "3 ranks cannot share 4 heads with 2 key and value heads evenly: expected 1 or 2";
    assert!(error.contains(expected), "{error}");
    let error = failure(&mut eval(&run, &run.dir(), &["--all-reduce", "bf16"]), 1);
    assert!(error.contains("expected --tensor-parallel 2 or more"), "{error}");
    for (arguments, expected) in [
        (&["--tensor-parallel", "0"][..], "expected a whole number from 1 on"),
        (&["--tensor-parallel", "2", "--all-reduce", "echo:bits=9"], "bits"),
        (&["--tensor-parallel", "2", "--all-reduce", "ekho"], "echo"),
    ] {
        let error = failure(&mut eval(&run, &run.dir(), arguments), 2);
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
}
