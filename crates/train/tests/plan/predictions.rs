//! Whole plans for machines that are not here, whose times follow from their operations a second.

use thinwire_train::config::Config;
use thinwire_train::metrics::Direction;
use thinwire_train::model::Architecture;
use thinwire_train::plan::{Machines, Plan, Planner, Processors, Proposal, Resource};

use crate::{allocator, alone};

/// 1.2 billion parameters in two stages, uncompressed; a message takes 0.17 s at 100 Mbit/s and next to nothing to encode.
const RECIPE: &str = r#"
    run = { dir = "run" }
    model = { family = "llama", layers = 16, hidden = 2048, heads = 32, kv_heads = 8, ffn = 8192, context = 256, vocab = 128256, tie_embeddings = false }
    data = { train = "train.txt" }
    train = { steps = 4, sequence = 256, micro_batch = 1, micro_batches = 8 }

    [pipeline]
    stages = 2
    layers = ["embed 0-7", "8-15 head"]
    forward = "f32"
    backward = "f32"
"#;

/// 8 TFLOP/s each, with this memory, and links of this rate.
fn machines(memory: &str, rate: &str) -> Machines {
    let machine =
        format!("[[machine]]\nname = 'm'\nflops = '20 TFLOP/s'\nefficiency = 0.4\nmemory = '{memory}'\n");
    Machines::parse(&format!("{machine}{machine}[[link]]\nrate = '{rate}'\n"), 2).unwrap()
}

fn plan(overrides: &[&str], machines: Machines) -> Plan {
    let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
    let config = Config::parse(RECIPE, &overrides).unwrap();
    let arch = Architecture::new(&config.model, config.model.vocab.unwrap());
    let rates = ["10mbit", "100mbit", "1gbit", "10gbit", "1000gbit"].map(|rate| rate.parse().unwrap());
    Planner::new(arch, 2, machines, Processors::default()).plan(&config, &rates, true).unwrap()
}

fn proposal<'a>(plan: &'a Plan, what: &str) -> Option<&'a Proposal> {
    plan.proposals.as_ref().unwrap().iter().find(|proposal| proposal.what == what)
}

#[test]
fn a_model_that_is_not_here_takes_no_memory() {
    let _alone = alone();
    let before = allocator::live();
    allocator::reset_peak();
    let plan = plan(&[], machines("80GB", "100 Mbit/s"));
    assert!(plan.stages.iter().all(|stage| !stage.measured && stage.total_memory > 5_000_000_000));
    assert!(allocator::peak() - before < 200 << 20, "{}", allocator::peak() - before);
}

#[test]
fn a_slow_link_is_the_bottleneck_and_the_step_is_its_bytes() {
    let _alone = alone();
    let plan = plan(&[], machines("80GB", "10 Mbit/s"));
    // 256 x 2048 values of 4 bytes, with records and segments, 8 times; activations and gradients overlap under 1F1B.
    let message = 8.0 * 4.0 * 256.0 * 2048.0 / 1e7;
    let bytes = plan.links[0].bytes as f64;
    assert!((bytes / (8.0 * 4.0 * 256.0 * 2048.0) - 1.0).abs() < 1e-3);
    assert!(
        plan.step_seconds > 8.0 * message && plan.step_seconds < 2.0 * 8.0 * message * 1.1,
        "{}",
        plan.step_seconds
    );
    assert!(matches!(plan.bottleneck.resource, Resource::Link(0, Direction::Forward | Direction::Backward)));
    assert!(plan.bottleneck.gain > 0.1 && plan.bottleneck.gain_of_all > 0.8, "{:?}", plan.bottleneck);
    assert!(plan.links.iter().all(|link| link.busy > 0.5 && link.busy <= 1.0));
    let codec = proposal(&plan, "codec").unwrap();
    assert!(codec.changes_training && codec.gain > 2.0, "{codec:?}");
}

#[test]
fn faster_links_are_never_slower_and_end_at_the_computation() {
    let _alone = alone();
    let plan = plan(
        &["pipeline.forward=tah", "pipeline.backward=fixed:bits=6,group=64"],
        machines("80GB", "1 Gbit/s"),
    );
    for pair in plan.rates.windows(2) {
        assert!(
            pair[0].f32 < pair[1].f32
                && pair[0].bf16 < pair[1].bf16
                && pair[0].configured <= pair[1].configured
        );
    }
    let slow = &plan.rates[0];
    assert!(slow.f32 < slow.bf16 && slow.bf16 < slow.configured && slow.speedup > 4.0, "{slow:?}");
    let fast = &plan.rates[4];
    assert!(matches!(fast.bottleneck.resource, Resource::Stage(_)), "{fast:?}");
    // No stage can be busier than always.
    let busiest = plan.stages.iter().map(|stage| 8.0 * (stage.forward + stage.backward) + stage.update);
    assert!(fast.f32 <= 2048.0 / busiest.fold(0.0, f64::max));
}

#[test]
fn what_does_not_fit_is_said_and_helped() {
    let _alone = alone();
    let gpipe = ["pipeline.schedule=gpipe", "train.micro_batches=64"];
    let whole = plan(&gpipe, machines("80GB", "1 Gbit/s"));
    assert!(whole.stages.iter().all(|stage| stage.lacks.is_none()));
    let largest = whole.stages.iter().map(|stage| stage.total_memory).max().unwrap();
    let short = format!("{}MB", largest / 1_000_000 - 300);
    let plan = plan(&gpipe, machines(&short, "1 Gbit/s"));
    let lacks: Vec<Option<u64>> = plan.stages.iter().map(|stage| stage.lacks).collect();
    assert!(lacks.iter().flatten().any(|lack| (299_000_000..=301_000_000).contains(lack)), "{lacks:?}");
    // 1F1B has two micro-batches in flight instead of 64.
    let schedule = proposal(&plan, "schedule").unwrap();
    assert!(schedule.fits && !schedule.changes_training);
    assert_eq!(schedule.set, ["pipeline.schedule=1f1b"]);
    assert!(schedule.largest_memory < largest);
}

#[test]
fn a_proposal_does_what_it_promises() {
    let _alone = alone();
    let uneven = r#"pipeline.layers=["embed 0-12", "13-15 head"]"#;
    let now = plan(&[uneven], machines("80GB", "100 Gbit/s"));
    let proposal = proposal(&now, "layers").unwrap();
    assert!(proposal.gain > 0.1, "{proposal:?}");
    let set: Vec<&str> = proposal.set.iter().map(String::as_str).collect();
    let then = plan(&set, machines("80GB", "100 Gbit/s"));
    let off = then.tokens_per_second / proposal.tokens_per_second - 1.0;
    // Codecs are measured anew; they take a hundredth of a step here.
    assert!(off.abs() < 0.02, "{} promised, {} planned", proposal.tokens_per_second, then.tokens_per_second);
    assert_eq!(self::proposal(&then, "layers"), None, "the best map has no better one");
}
