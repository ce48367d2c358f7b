//! Real files: values of their tensors against the `gguf` package of Python, by hash.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};
use thinwire_pretrained::{Gguf, Pretrained};

use crate::support::{asset, read_fixture};

const SMOLLM2: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";
const GEMMA: &str = "gemma-3-270m.Q4_K_M.gguf";

/// For each file: its tensors, with their format and the hash of their values.
type Hashes = BTreeMap<String, BTreeMap<String, (String, String)>>;

fn check(name: &str) {
    let Some(path) = asset(name) else { return };
    let file = Gguf::open(path).unwrap();
    let hashes: Hashes = serde_json::from_slice(&read_fixture("real_tensors.json")).unwrap();
    for (tensor, (format, expected)) in &hashes[name] {
        assert_eq!(format!("{:?}", file.format(tensor).unwrap()), *format, "{tensor}");
        let values = file.read(tensor).unwrap();
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let digits: Vec<String> = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        let found = digits.concat();
        assert_eq!(found, *expected, "{tensor} in {format}");
    }
}

#[test]
fn smollm2_values() {
    check(SMOLLM2);
}

#[test]
fn gemma_values() {
    check(GEMMA);
}

#[test]
fn gemma_is_refused_by_name() {
    let Some(path) = asset(GEMMA) else { return };
    let error = Pretrained::open(path).unwrap_err().to_string();
    assert!(error.contains("`general.architecture` is \"gemma3\", which is not supported"), "{error}");
}
