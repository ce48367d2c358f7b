//! `thinwire export`, run as a user runs it.

#[path = "../common/mod.rs"]
mod common;
#[expect(dead_code, reason = "other tests need all of it")]
#[path = "../common/run.rs"]
mod run;

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use common::{failure, json, thinwire};
use run::{GPT2, Run};

#[test]
fn a_folder_is_replaced_on_demand_if_it_holds_a_model_alone() {
    let run = Run::train(&[]);
    let out = run.beside("out");
    let export = |arguments: &[&str]| {
        let mut command = thinwire(["export", "--model"]);
        command.arg(run.dir()).arg("--out").arg(&out).args(arguments);
        command
    };
    let report = json(&mut export(&[]));
    assert_eq!(
        (&report["model_type"], &report["dtype"], &report["step"]),
        (&"llama".into(), &"f32".into(), &4.into())
    );
    let files: Vec<&str> =
        report["files"].as_array().unwrap().iter().map(|file| file["name"].as_str().unwrap()).collect();
    assert_eq!(
        files,
        [
            "config.json",
            "generation_config.json",
            "model.safetensors",
            "tokenizer.json",
            "tokenizer_config.json"
        ]
    );

    let weights = fs::read(out.join("model.safetensors")).unwrap();
    let error = failure(&mut export(&["--dtype", "bf16"]), 1);
    assert!(error.contains("out: folder to write: expected none, or an empty one, found files"), "{error}");
    assert_eq!(fs::read(out.join("model.safetensors")).unwrap(), weights);
    let half = json(&mut export(&["--dtype", "bf16", "--overwrite", "--shard-size", "20KB"]));
    assert_eq!((&half["dtype"], &half["parameters"]), (&"bf16".into(), &report["parameters"]));
    assert!(!out.join("model.safetensors").exists() && out.join("model.safetensors.index.json").exists());

    fs::write(out.join("notes.txt"), "mine").unwrap();
    let error = failure(&mut export(&["--overwrite"]), 1);
    assert!(
        error.contains("expected nothing but the files of an exported model, found `notes.txt`"),
        "{error}"
    );
    assert_eq!(fs::read(out.join("notes.txt")).unwrap(), b"mine");
    let left: Vec<_> =
        fs::read_dir(run.beside("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with('.')), "{left:?}");
    let error = failure(&mut export(&["--shard-size", "0"]), 2);
    assert!(error.contains("expected a size above 0 such as 500MB or 5GB"), "{error}");
}

#[test]
fn adapters_are_exported_by_themselves_or_merged() {
    let run = Run::train(&GPT2);
    let error = failure(&mut export_of(&run.dir(), &run.beside("none"), &["--adapter"]), 1);
    assert!(error.contains("has no adapters: it was not trained with [lora]"), "{error}");

    let base = run.beside("base");
    json(&mut export_of(&run.dir(), &base, &[]));
    let recipe = r#"
        run = { dir = "lora" }
        model = { pretrained = "base" }
        lora = { rank = 2, targets = ["c_attn"] }
        data = { train = "train.txt" }
        train = { steps = 2, sequence = 32, micro_batch = 3, micro_batches = 2 }
        pipeline = { stages = 3, layers = ["embed", "0-1", "head"] }
    "#;
    fs::write(run.beside("lora.toml"), recipe).unwrap();
    assert!(thinwire(["train"]).arg(run.beside("lora.toml")).output().unwrap().status.success());

    // Of each of two blocks, 2 x (32 + 96) values.
    let lora = run.beside("lora");
    for path in [run.beside("lora.toml"), lora.join("thinwire.toml"), lora.clone()] {
        let report = json(thinwire(["inspect"]).arg(&path));
        assert_eq!((&report["trainable"], &report["stages"][0]["trainable"]), (&512.into(), &0.into()));
        let all = report["parameters"].as_u64().unwrap();
        assert!(all > 20_000, "{all}");
        let text = thinwire(["inspect"]).arg(&path).output().unwrap();
        let text = String::from_utf8(text.stdout).unwrap();
        assert!(text.contains("512"), "{text}");
    }

    let planned = json(thinwire(["inspect"]).arg(run.beside("lora.toml")));
    assert_eq!(planned["tied_gradient_bytes"], 0, "the tied matrix is frozen");

    let adapter = run.beside("adapter");
    let report = json(&mut export_of(&lora, &adapter, &["--adapter"]));
    assert_eq!((&report["parameters"], &report["adapter"]), (&512.into(), &true.into()));
    let config = fs::read(adapter.join("adapter_config.json")).unwrap();
    let config: serde_json::Value = serde_json::from_slice(&config).unwrap();
    assert_eq!(
        (&config["peft_type"], &config["r"], &config["lora_alpha"]),
        (&"LORA".into(), &2.into(), &4.into())
    );
    assert_eq!(config["base_model_name_or_path"], fs::canonicalize(&base).unwrap().to_str().unwrap());
    let weights = fs::read(adapter.join("adapter_model.safetensors")).unwrap();
    let weights = String::from_utf8_lossy(&weights);
    for name in ["0.attn.c_attn.lora_A", "1.attn.c_attn.lora_B"] {
        assert!(weights.contains(&format!("\"base_model.model.transformer.h.{name}.weight\"")), "{weights}");
    }

    let error = failure(&mut export_of(&lora, &adapter, &[]), 1);
    assert!(error.contains("folder to write: expected none, or an empty one, found files"), "{error}");
    let merged = json(&mut export_of(&lora, &adapter, &["--overwrite"]));
    assert_eq!((&merged["adapter"], adapter.join("adapter_config.json").exists()), (&false.into(), false));
}

fn export_of(model: &Path, out: &Path, arguments: &[&str]) -> Command {
    let mut command = thinwire(["export", "--model"]);
    command.arg(model).arg("--out").arg(out).args(arguments);
    command
}

#[test]
fn a_full_disk_leaves_nothing() {
    let run = Run::train(&[]);
    let disk = run.beside("disk");
    fs::create_dir(&disk).unwrap();
    let on_a_small_disk = |script: &str| {
        let mut command = Command::new("unshare");
        let script = format!("mount -t tmpfs -o size=64k tmpfs \"$0\" && {script}");
        command.args(["--mount", "sh", "-c", &script]).arg(&disk);
        command
    };
    let probe = on_a_small_disk("true").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !probe.is_ok_and(|status| status.success()) {
        // Past the test harness, which would keep it to itself.
        writeln!(io::stderr(), "NOT RUN: an export to a full disk; it needs root to mount a small one")
            .unwrap();
        return;
    }
    let mut command = on_a_small_disk("\"$@\"; code=$?; ls -A \"$0\" >&2; exit $code");
    let export = thinwire(["export", "--model"]);
    command.arg(export.get_program()).args(export.get_args());
    command.arg(run.dir()).arg("--out").arg(disk.join("out"));
    let error = failure(&mut command, 1);
    assert!(error.contains("error: cannot write ") && error.contains("model.safetensors"), "{error}");
    // The cause is the last line: `ls` found nothing.
    assert!(error.trim_end().ends_with("No space left on device (os error 28)"), "{error}");
}
