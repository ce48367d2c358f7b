//! Speed of training.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Two stages in a recipe beside which only its text lies.
fn recipe(dir: &Path) {
    fs::write(dir.join("text.txt"), "to be, or not to be: that is the question. ".repeat(40)).unwrap();
    let recipe = r#"
        run = { dir = "run" }
        model = { family = "llama", layers = 2, hidden = 16, heads = 2, kv_heads = 1, ffn = 32, context = 16, tie_embeddings = true }
        data = { train = "text.txt" }
        train = { steps = 2, sequence = 16, micro_batch = 2, micro_batches = 3 }
        pipeline = { stages = 2 }
    "#;
    fs::write(dir.join("recipe.toml"), recipe).unwrap();
}

fn bench(dir: &Path, options: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_thinwire"));
    command.args(["bench", "train", "recipe.toml"]).args(options).current_dir(dir);
    let output = command.env("RAYON_NUM_THREADS", "2").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

#[test]
fn the_result_is_one_line_and_nothing_else_is_left() {
    let dir = tempfile::tempdir().unwrap();
    recipe(dir.path());
    let output =
        bench(dir.path(), &["--json", "--steps", "3", "--warmup", "2", "--set", "train.micro_batch=1"]);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "the bench wrote something");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("one stage is measured, not the 2 of the configuration\n"), "{said}");
    assert_eq!(said.matches("tokens/s").count(), 5, "{said}");

    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let numbers = |key: &str| -> Vec<f64> {
        found[key].as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
    };
    assert_eq!(
        (&found["threads"], &found["micro_batch"], &found["steps"]),
        (&2.into(), &1.into(), &3.into())
    );
    assert_eq!((numbers("losses").len(), numbers("step_seconds").len()), (5, 3));
    let all = 3.0 * 48.0 / numbers("step_seconds").iter().sum::<f64>();
    assert!((found["tokens_per_second_of_all"].as_f64().unwrap() / all - 1.0).abs() < 1e-9);
    let operators = found["operators"].as_array().unwrap();
    let linear = operators.iter().find(|o| o["operator"] == "linear" && o["pass"] == "backward").unwrap();
    assert_eq!(linear["calls"], 3 * 3 * 15);
    let shares: f64 = operators.iter().map(|o| o["share"].as_f64().unwrap()).sum();
    let rest = found["rest"].as_f64().unwrap();
    assert!(rest >= 0.0 && (shares + rest - 1.0).abs() < 1e-9, "{shares} + {rest}");
    let phases: f64 =
        found["phases"].as_object().unwrap().values().map(|share| share.as_f64().unwrap()).sum();
    assert!((phases - 1.0).abs() < 1e-9, "{phases}");
    let memory = &found["peak_memory"];
    if cfg!(target_os = "linux") {
        assert!(memory.as_u64().unwrap() > 1 << 20, "{memory}");
    } else {
        assert!(memory.is_null());
    }
}

#[test]
fn people_get_a_table() {
    let dir = tempfile::tempdir().unwrap();
    recipe(dir.path());
    let text = String::from_utf8(bench(dir.path(), &["--steps", "1", "--warmup", "0"]).stdout).unwrap();
    assert!(text.contains("2 threads\n3 micro-batches of 2 x 16 tokens a step\n"), "{text}");
    for line in ["embedding", "linear", "AdamW", "gradient norm", "Burn's operations and the rest"] {
        assert!(text.lines().any(|found| found.starts_with(line)), "{line}: {text}");
    }
    let linear = text.lines().find(|line| line.starts_with("linear")).unwrap();
    assert_eq!(linear.split_whitespace().count(), 3, "forward and backward, no update: {linear}");
}
