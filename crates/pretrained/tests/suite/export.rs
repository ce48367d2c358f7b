//! Folders written by [`export`].

use std::fs;
use std::io;

use serde_json::Value;
use thinwire_pretrained::{Error, Export, ExportFormat, Pretrained, TensorSpec, export};

use crate::support::{SMALL, chain, fixture};

fn values(model: &Pretrained) -> impl FnMut(&TensorSpec) -> Result<Vec<f32>, Error> {
    |tensor| model.read(&tensor.name, &tensor.shape)
}

#[test]
fn what_is_written_reads_back() {
    let folder = tempfile::tempdir().unwrap();
    for name in SMALL {
        let model = Pretrained::open(fixture(&format!("models/{name}.gguf"))).unwrap();
        let tokenizer = model.tokenizer().unwrap();
        let formats = [ExportFormat::F32, ExportFormat::F16, ExportFormat::BF16];
        for (number, format) in formats.into_iter().enumerate() {
            let path = folder.path().join(format!("below/{name}{number}"));
            // Small enough for several files, but for the first format.
            let shard_bytes = if format == ExportFormat::F32 { 1 << 30 } else { 4000 };
            let options =
                Export { tokenizer: Some(&tokenizer), format, shard_bytes, ..Export::new(model.config()) };
            export(&path, &options, values(&model)).unwrap();
            assert_eq!(path.join("model.safetensors").is_file(), format == ExportFormat::F32);

            let back = Pretrained::open(&path).unwrap();
            assert_eq!(back.config(), model.config());
            assert_eq!(back.tokenizer().unwrap(), tokenizer, "{name}");
            for tensor in model.config().tensors() {
                let expected = model.read(&tensor.name, &tensor.shape).unwrap();
                let found = back.read(&tensor.name, &tensor.shape).unwrap();
                // The values are bf16, which f32 and bf16 hold exactly; f16 has 11 bits and a smallest step of 2^-24.
                let tolerance = if format == ExportFormat::F16 { 2_f32.powi(-11) } else { 0.0 };
                for (found, expected) in found.iter().zip(expected) {
                    let bound = tolerance * expected.abs().max(2_f32.powi(-14));
                    assert!((found - expected).abs() <= bound, "{} {found} {expected}", tensor.name);
                }
            }
        }
    }
    let hidden = fs::read_dir(folder.path().join("below")).unwrap();
    assert_eq!(hidden.count(), 15, "temporary folders are left");
}

#[test]
fn shards_are_bounded_and_indexed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    let model = Pretrained::open(fixture("models/qwen2")).unwrap();
    let options = Export { shard_bytes: 8192, ..Export::new(model.config()) };
    export(&path, &options, values(&model)).unwrap();
    let index: Value =
        serde_json::from_slice(&fs::read(path.join("model.safetensors.index.json")).unwrap()).unwrap();
    let total: usize = model.config().tensors().iter().map(|tensor| 4 * tensor.len()).sum();
    assert_eq!(index["metadata"]["total_size"], total);
    let files = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
    let shards: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|kind| kind == "safetensors")).collect();
    // The embedding alone is larger than a shard.
    assert!(shards.len() > 3);
    assert!(shards.iter().all(|path| path.metadata().unwrap().len() < 4 * 400 * 16 + 4096));
}

#[test]
fn nothing_is_left_after_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    let model = Pretrained::open(fixture("models/gpt2")).unwrap();
    let options = Export::new(model.config());
    let left = || fs::read_dir(folder.path()).unwrap().count();

    let failing = |tensor: &TensorSpec| match &tensor.name[..] {
        "transformer.ln_f.bias" => Err(io::Error::other("gone")),
        _ => Ok(vec![0.0; tensor.len()]),
    };
    let error = chain(&export(&path, &options, failing).unwrap_err());
    assert!(error.contains("cannot export tensor `transformer.ln_f.bias`: gone"), "{error}");
    assert_eq!(left(), 0);

    let short = |tensor: &TensorSpec| Ok::<_, io::Error>(vec![0.0; tensor.len() - 1]);
    let error = export(&path, &options, short).unwrap_err().to_string();
    assert!(
        error.contains("number of values of tensor `transformer.wte.weight`: expected 6400, found 6399"),
        "{error}"
    );
    assert_eq!(left(), 0);

    let large = |tensor: &TensorSpec| Ok::<_, io::Error>(vec![70_000.0; tensor.len()]);
    let options = Export { format: ExportFormat::F16, ..options };
    let error = export(&path, &options, large).unwrap_err().to_string();
    assert!(error.contains("expected values that fit float16, found 70000"), "{error}");
    assert_eq!(left(), 0);
}

#[test]
fn an_existing_folder_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let model = Pretrained::open(fixture("models/gpt2")).unwrap();
    let options = Export::new(model.config());
    fs::write(folder.path().join("mine"), "x").unwrap();
    let error = export(folder.path(), &options, values(&model)).unwrap_err().to_string();
    assert!(error.contains("expected none, or an empty one, found files"), "{error}");
    fs::remove_file(folder.path().join("mine")).unwrap();
    export(folder.path(), &options, values(&model)).unwrap();
    Pretrained::open(folder.path()).unwrap();
}
