//! Model folders that are not what they claim.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use thinwire_pretrained::Pretrained;

use crate::support::{chain, copy, open_and_read};

const WEIGHTS: &str = "model.safetensors";

/// Splits a safetensors file in header and values.
fn parts(path: &Path) -> (Value, Vec<u8>) {
    let bytes = fs::read(path).unwrap();
    let (len, rest) = bytes.split_first_chunk().unwrap();
    let (header, values) = rest.split_at(u64::from_le_bytes(*len) as usize);
    (serde_json::from_slice(header).unwrap(), values.to_vec())
}

fn write(path: &Path, header: &[u8], values: &[u8]) {
    fs::write(path, [&(header.len() as u64).to_le_bytes(), header, values].concat()).unwrap();
}

/// What opening says after `change` to the header of the weights.
fn with_header(change: impl Fn(&mut Value)) -> String {
    let folder = copy("smollm");
    let path = folder.path().join(WEIGHTS);
    let (mut header, values) = parts(&path);
    change(&mut header);
    write(&path, header.to_string().as_bytes(), &values);
    chain(&Pretrained::open(folder.path()).unwrap_err())
}

#[test]
fn nothing_there() {
    let folder = tempfile::tempdir().unwrap();
    let error = |path: &Path| Pretrained::open(path).unwrap_err().to_string();
    assert!(error(folder.path()).contains("a folder without config.json"));
    assert!(error(&folder.path().join("none")).contains("is no model: nothing;"));
    let file = folder.path().join("model.bin");
    fs::write(&file, "x").unwrap();
    assert!(error(&file).contains("a file of another kind"));
    fs::copy(copy("qwen2").path().join("config.json"), folder.path().join("config.json")).unwrap();
    assert!(error(folder.path()).contains("expected `model.safetensors` or `model.safetensors.index.json`"));
}

#[test]
fn malformed_json() {
    let folder = copy("smollm");
    let path = folder.path().join("config.json");
    fs::write(&path, "[".repeat(100_000)).unwrap();
    let error = chain(&Pretrained::open(folder.path()).unwrap_err());
    assert!(error.contains("config.json is damaged: recursion limit exceeded"), "{error}");
    fs::write(&path, "[]").unwrap();
    let error = chain(&Pretrained::open(folder.path()).unwrap_err());
    assert!(error.contains("expected a JSON object, found []"), "{error}");
}

#[test]
fn length_of_the_header() {
    let folder = copy("smollm");
    let path = folder.path().join(WEIGHTS);
    for len in [u64::MAX, 1 << 62, 100_000_001] {
        fs::write(&path, [&len.to_le_bytes()[..], b"{}"].concat()).unwrap();
        let error = Pretrained::open(folder.path()).unwrap_err().to_string();
        assert!(
            error.contains(&format!(
                "length of the header: expected at most 2 in a file of 10 bytes, found {len}"
            )),
            "{error}"
        );
    }
    fs::write(&path, b"1234567").unwrap();
    let error = Pretrained::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("size in bytes: expected at least 8, found 7"), "{error}");
}

#[test]
fn forged_headers() {
    let norm = "model.norm.weight";
    let error = with_header(|header| header[norm]["data_offsets"] = json!([0, u64::MAX]));
    assert!(error.contains("model.safetensors is damaged"), "{error}");
    let error = with_header(|header| header[norm]["shape"] = json!([1_u64 << 63, 4]));
    assert!(error.contains("model.safetensors is damaged"), "{error}");
    let error = with_header(|header| header["extra"] = header[norm].clone());
    assert!(error.contains("model.safetensors is damaged"), "{error}");
    let error = with_header(|header| header[norm]["dtype"] = json!("I16"));
    assert!(
        error.contains("`model.norm.weight`` is I16") || error.contains("is I16, which is not"),
        "{error}"
    );
    let error = with_header(|header| header[norm]["shape"] = json!([4, 4]));
    assert!(error.contains("shape of tensor `model.norm.weight`: expected [16], found [4, 4]"), "{error}");
    let error = with_header(|header| {
        let value = header.as_object_mut().unwrap().remove(norm).unwrap();
        header["model.norm.scale"] = value;
    });
    assert!(error.contains("missing: model.norm.weight; unexpected: model.norm.scale"), "{error}");
}

#[test]
fn truncated_and_extended() {
    let folder = copy("qwen3");
    let path = folder.path().join(WEIGHTS);
    let whole = fs::read(&path).unwrap();
    for len in (0..whole.len()).step_by(97).chain([whole.len() - 1]) {
        fs::write(&path, &whole[..len]).unwrap();
        Pretrained::open(folder.path()).unwrap_err();
    }
    fs::write(&path, [&whole[..], &[0]].concat()).unwrap();
    let error = Pretrained::open(folder.path()).unwrap_err().to_string();
    let found = whole.len() + 1;
    assert!(error.contains(&format!("size in bytes: expected {}, found {found}", whole.len())), "{error}");
}

#[test]
fn cut_after_opening() {
    let folder = copy("qwen3");
    let model = Pretrained::open(folder.path()).unwrap();
    let path = folder.path().join(WEIGHTS);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() / 8]).unwrap();
    let last =
        model.config().tensors().into_iter().find(|tensor| tensor.name == "model.norm.weight").unwrap();
    assert!(chain(&model.read(&last.name, &last.shape).unwrap_err()).contains("cannot read"));
}

/// Moves the weights of `folder` to the file `name` beside an index that names it as `claimed`.
fn shard(folder: &Path, name: &str, claimed: &str) {
    fs::rename(folder.join(WEIGHTS), folder.join(name)).unwrap();
    let index = json!({ "metadata": {}, "weight_map": { "model.norm.weight": claimed } });
    fs::write(folder.join("model.safetensors.index.json"), index.to_string()).unwrap();
}

#[test]
fn index_leads_nowhere_else() {
    let good = "model-00001-of-00001.safetensors";
    let folder = copy("llama3");
    shard(folder.path(), good, good);
    open_and_read(folder.path()).unwrap();
    for bad in
        ["../model.safetensors", "/etc/model.safetensors", "a/b.safetensors", "..\\b.safetensors", "x.bin"]
    {
        let folder = copy("llama3");
        shard(folder.path(), good, bad);
        let error = Pretrained::open(folder.path()).unwrap_err().to_string();
        assert!(error.contains("expected the name of a .safetensors file"), "{error}");
    }
    let folder = copy("llama3");
    shard(folder.path(), good, "model-00002-of-00002.safetensors");
    let error = chain(&Pretrained::open(folder.path()).unwrap_err());
    assert!(error.contains("cannot open") && error.contains("model-00002-of-00002"), "{error}");
}

#[test]
fn names_of_other_releases() {
    // A bare GPT-2 with the buffers of old releases: `h.0..` for `transformer.h.0..`.
    let folder = copy("gpt2");
    let path = folder.path().join(WEIGHTS);
    let (header, mut values) = parts(&path);
    let mut renamed = json!({});
    for (name, info) in header.as_object().unwrap() {
        renamed[name.trim_start_matches("transformer.")] = info.clone();
    }
    let end = values.len();
    renamed["h.0.attn.bias"] =
        json!({ "dtype": "BOOL", "shape": [1, 1, 2, 2], "data_offsets": [end, end + 4] });
    values.extend([1, 0, 1, 1]);
    write(&path, renamed.to_string().as_bytes(), &values);
    open_and_read(folder.path()).unwrap();
}

#[test]
fn tokenizer() {
    let folder = copy("qwen2");
    let model = Pretrained::open(folder.path()).unwrap();
    let error = model.tokenizer().unwrap_err().to_string();
    assert!(error.contains("tokenizer: expected `tokenizer.json`, found none"), "{error}");
    let vocab =
        json!({ "added_tokens": [{ "id": 400, "content": "<s>" }], "model": { "vocab": { "a": 1 } } });
    fs::write(folder.path().join("tokenizer.json"), vocab.to_string()).unwrap();
    let error = model.tokenizer().unwrap_err().to_string();
    assert!(error.contains("expected at most 400 tokens, as the model has, found 401"), "{error}");
    let settings = json!({ "bos_token": { "content": "<none>" } });
    fs::write(folder.path().join("tokenizer_config.json"), settings.to_string()).unwrap();
    let error = model.tokenizer().unwrap_err().to_string();
    assert!(error.contains("bos_token `<none>`: expected a token, found none"), "{error}");
}
