//! Damaged and forged checkpoints: a clear error, and nothing restored.

use std::fs::{self, File};
use std::path::Path;

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors, serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use thinwire_train::checkpoint::{Manifest, Results, RunFacts, available, step_folder};
use thinwire_train::config::Family;

use super::support::{Stage, WHOLE, architecture, bits, chain, checkpoint, names, trained, units};

/// The error of restoring step 2 into a fresh model, which must stay as it was.
fn refusal(dir: &Path, facts: &RunFacts) -> String {
    let fresh = trained(&architecture(Family::Llama), WHOLE, 1);
    let before = bits(&fresh);
    let mut fresh: [Stage; 1] = fresh.try_into().ok().unwrap();
    let error = fresh[0].restore(dir, 2, facts).expect_err("a broken checkpoint was restored");
    assert_eq!(before, bits(&fresh), "partly restored: {}", chain(&error));
    chain(&error)
}

fn steps(dir: &Path) -> Vec<u64> {
    available(dir, &units(WHOLE)[0]).unwrap()
}

/// Changes the manifest as JSON.
fn edit_manifest(dir: &Path, edit: impl FnOnce(&mut Value)) {
    let path = step_folder(dir, 2).join("manifest.json");
    let mut manifest: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    edit(&mut manifest);
    fs::write(&path, serde_json::to_vec(&manifest).unwrap()).unwrap();
}

/// Puts another file in place, and its size and hash into the manifest.
fn forge(dir: &Path, index: usize, bytes: &[u8], tensors: usize) {
    edit_manifest(dir, |manifest| {
        let entry = &mut manifest["files"][index];
        fs::write(step_folder(dir, 2).join(entry["name"].as_str().unwrap()), bytes).unwrap();
        let digest =
            Sha256::digest(bytes).iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
        entry["bytes"] = json!(bytes.len());
        entry["sha256"] = json!(digest);
        entry["tensors"] = json!(tensors);
    });
}

#[test]
fn a_truncated_file_is_neither_listed_nor_restored() {
    let (dir, _, facts) = checkpoint();
    let folder = step_folder(dir.path(), 2);
    for name in names(&folder) {
        let path = folder.join(&name);
        let whole = fs::read(&path).unwrap();
        for len in [0, 7, 8, whole.len() / 2, whole.len() - 1] {
            fs::write(&path, &whole[..len]).unwrap();
            assert_eq!(steps(dir.path()), [0; 0], "{name} cut to {len}");
            assert!(refusal(dir.path(), &facts).contains(&name));
        }
        fs::remove_file(&path).unwrap();
        assert_eq!(steps(dir.path()), [0; 0], "{name} removed");
        assert!(refusal(dir.path(), &facts).contains(&name));
        fs::write(&path, &whole).unwrap();
    }
    assert_eq!(steps(dir.path()), [2]);
}

#[test]
fn a_flipped_bit_is_found_wherever_it_is() {
    let (dir, _, facts) = checkpoint();
    let folder = step_folder(dir.path(), 2);
    for name in names(&folder).iter().filter(|name| name.ends_with(".safetensors")) {
        let path = folder.join(name);
        let whole = fs::read(&path).unwrap();
        for at in (0..whole.len()).step_by(whole.len() / 6) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            fs::write(&path, &bytes).unwrap();
            let error = refusal(dir.path(), &facts);
            assert!(error.contains(name) && error.contains("SHA-256: expected "), "{error}");
        }
        fs::write(&path, &whole).unwrap();
    }
}

#[test]
fn a_manifest_cut_anywhere_is_no_manifest() {
    let (dir, _, facts) = checkpoint();
    let path = step_folder(dir.path(), 2).join("manifest.json");
    let whole = fs::read(&path).unwrap();
    for len in 0..whole.len() {
        fs::write(&path, &whole[..len]).unwrap();
        assert!(Manifest::read(dir.path(), 2).is_err(), "cut to {len}");
    }
    assert_eq!(steps(dir.path()), [0; 0]);
    assert!(refusal(dir.path(), &facts).contains("manifest.json is damaged"));
}

#[test]
fn a_forged_manifest_is_refused_with_what_was_found() {
    type Edit = fn(&mut Value);
    let cases: &[(Edit, &str)] = &[
        (|m| m["format"] = json!(2), "format version: expected 1, found 2"),
        (|m| *m = json!({ "format": 7, "shards": [] }), "format version: expected 1, found 7"),
        (|m| m["step"] = json!(3), "step: expected 2, found 3"),
        (
            |m| m["files"][0]["name"] = json!("../../../etc/passwd"),
            "expected embed.safetensors, found ../../../etc",
        ),
        (|m| m["files"][0]["name"] = json!("/etc/passwd"), "expected embed.safetensors, found /etc/passwd"),
        (
            |m| m["files"][1] = m["files"][0].clone(),
            "expected embed.optimizer.safetensors, found embed.safetensors",
        ),
        (|m| m["files"] = json!([]), "number of files: expected 10, found 0"),
        (
            |m| m["run"]["architecture"]["layers"] = json!(u64::MAX),
            "number of files: expected 18446744073709551615, found 10",
        ),
        (
            |m| m["files"][2]["bytes"] = json!(u64::MAX),
            "size in bytes: expected 18446744073709551615, found ",
        ),
        (|m| m["files"][2]["bytes"] = json!(-1), "manifest.json is damaged: invalid value"),
        (|m| m["files"][2]["tensors"] = json!(8), "number of tensors: expected 8, found 9"),
        (|m| m["files"][2]["sha256"] = json!("abc"), "SHA-256: expected abc, found "),
    ];
    for (edit, expected) in cases {
        let (dir, _, facts) = checkpoint();
        edit_manifest(dir.path(), edit);
        let error = refusal(dir.path(), &facts);
        assert!(error.contains(expected), "{error} does not say {expected}");
    }
}

#[test]
fn a_huge_file_is_not_read() {
    let (dir, _, facts) = checkpoint();
    let huge = 1u64 << 42;
    edit_manifest(dir.path(), |m| m["files"][0]["bytes"] = json!(huge));
    File::create(step_folder(dir.path(), 2).join("embed.safetensors")).unwrap().set_len(huge).unwrap();
    let error = refusal(dir.path(), &facts);
    assert!(error.contains("embed.safetensors: size in bytes: expected at most "), "{error}");
}

#[test]
fn a_forged_header_is_refused() {
    let header = |len: u64, json: &str| [&len.to_le_bytes()[..], json.as_bytes()].concat();
    for (bytes, expected) in [
        (
            header(u64::MAX, "{}"),
            "length of the header: expected at most 1048576, found 18446744073709551615",
        ),
        (header(1 << 20, "{}"), "cannot read "),
        (header(2, "{]"), "embed.safetensors is damaged: "),
        (header(2, "{}"), "tensor `model.embed_tokens.weight`: expected F32 [29, 16], found none"),
        (
            header(
                91,
                r#"{"model.embed_tokens.weight":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}}"#,
            ),
            "embed.safetensors is damaged: ",
        ),
    ] {
        let (dir, _, facts) = checkpoint();
        forge(dir.path(), 0, &bytes, 1);
        let error = refusal(dir.path(), &facts);
        assert!(error.contains(expected), "{error} does not say {expected}");
    }
}

#[test]
fn other_tensors_than_the_models_are_refused_by_name() {
    let name = "model.embed_tokens.weight";
    let data = vec![0; 29 * 16 * 4];
    let f32s = |shape: &[usize]| TensorView::new(Dtype::F32, shape.to_vec(), &data).unwrap();
    let ints = TensorView::new(Dtype::I32, vec![29, 16], &data).unwrap();
    for (tensors, expected) in [
        (
            vec![(name, f32s(&[16, 29]))],
            "tensor `model.embed_tokens.weight`: expected F32 [29, 16], found F32 [16, 29]",
        ),
        (vec![(name, ints)], "tensor `model.embed_tokens.weight`: expected F32 [29, 16], found I32 [29, 16]"),
        (
            vec![("wte", f32s(&[29, 16]))],
            "tensor `model.embed_tokens.weight`: expected F32 [29, 16], found none",
        ),
        (
            vec![(name, f32s(&[29, 16])), ("b", f32s(&[29, 16]))],
            "tensor `b`: expected none of this name, found one",
        ),
    ] {
        let (dir, _, facts) = checkpoint();
        let count = tensors.len();
        forge(dir.path(), 0, &serialize(tensors, None).unwrap(), count);
        let error = refusal(dir.path(), &facts);
        assert!(
            error.contains("embed.safetensors: ") && error.contains(expected),
            "{error} does not say {expected}"
        );
    }
}

#[test]
fn an_optimizer_file_without_its_number_of_updates_is_refused() {
    let (dir, _, facts) = checkpoint();
    let bytes = fs::read(step_folder(dir.path(), 2).join("embed.optimizer.safetensors")).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    forge(dir.path(), 1, &serialize(tensors.iter(), None).unwrap(), 2);
    let error = refusal(dir.path(), &facts);
    assert!(error.ends_with("metadata entry `updates`: expected a number, found nothing"), "{error}");
}

#[test]
fn another_run_is_refused_with_both_values() {
    type Edit = fn(&mut RunFacts);
    let cases: &[(Edit, &str)] = &[
        (|f| f.seed = 3, "seed: expected 3, found 18446744073709551615"),
        (|f| f.tokenizer = "bpe".into(), "tokenizer: expected bpe, found byte"),
        (|f| f.data = "00".into(), "hash of the training data: expected 00, found e3b0c44298fc1c14"),
        (|f| f.architecture.ffn = 32, "architecture.ffn: expected 32, found 24"),
        (|f| f.architecture.tied = false, "architecture.tied: expected false, found true"),
        (|f| f.architecture.family = Family::Gpt2, "architecture.family: expected \"gpt2\", found \"llama\""),
    ];
    let (dir, _, facts) = checkpoint();
    for (edit, expected) in cases {
        let mut other = facts.clone();
        edit(&mut other);
        let error = refusal(dir.path(), &other);
        assert!(error.contains(expected), "{error} does not say {expected}");
    }
}

#[test]
fn files_of_too_few_units_make_no_manifest() {
    let (dir, _, facts) = checkpoint();
    let mut files = Manifest::read(dir.path(), 2).unwrap().files;
    files.swap(0, 1);
    assert!(Manifest::new(2, Results::default(), facts.clone(), files.clone()).is_err());
    files.pop();
    let error = Manifest::new(2, Results::default(), facts, files).unwrap_err();
    assert_eq!(error.to_string(), "new manifest: number of files: expected 10, found 9");
}
