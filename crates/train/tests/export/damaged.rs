//! Folders that cannot be written, and checkpoints that cannot be read.

use std::fs;
use std::path::Path;

use thinwire_train::evaluate::SavedModel;
use thinwire_train::export::{ExportFormat, ExportOptions, Exporter};
use thinwire_train::text::chain;

use crate::round_trip::trained;

/// What exporting says; nothing may be left of it.
fn refused(model: &Path, folder: &Path, replace: bool) -> String {
    let options = ExportOptions { format: ExportFormat::F32, shard_bytes: 1 << 30, replace };
    let model = SavedModel::open(model, None).unwrap();
    let before = entries(folder);
    let error = Exporter::new(&model).unwrap().write(folder, options, || ()).unwrap_err();
    assert_eq!(entries(folder), before);
    chain(&error)
}

/// What is in a folder and beside it, by name.
fn entries(folder: &Path) -> Vec<Vec<std::ffi::OsString>> {
    let list = |folder: &Path| {
        let mut names: Vec<_> =
            fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    vec![list(folder), list(folder.parent().unwrap())]
}

#[test]
fn a_damaged_checkpoint_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let config = trained(dir.path(), &[]);
    let step = config.run.dir.join("checkpoints/step-00000002");
    let file = step.join("layer-0001.safetensors");
    let whole = fs::read(&file).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    let out = dir.path().join("out");
    for (bytes, expected) in [
        (&flipped[..], "layer-0001.safetensors: SHA-256: expected "),
        (&whole[..whole.len() / 2], "layer-0001.safetensors: size in bytes: expected at least "),
        (&whole[..whole.len() - 1], "layer-0001.safetensors: size in bytes: expected "),
    ] {
        fs::write(&file, bytes).unwrap();
        let error = refused(&step, &out, false);
        assert!(error.contains(expected), "{error}");
    }
    fs::remove_file(&file).unwrap();
    let error = refused(&step, &out, false);
    assert!(error.contains("cannot open ") && error.contains("layer-0001.safetensors"), "{error}");
}

#[test]
fn a_folder_in_the_model_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let config = trained(dir.path(), &[]);
    let step = config.run.dir.join("checkpoints/step-00000002");
    for out in [step.join("out"), step.join("deep/er"), step.join("../step-00000002/out")] {
        let error = refused(&config.run.dir, &out, true);
        assert!(error.contains("lies in the model's own folder, "), "{error}");
    }
    #[cfg(unix)]
    {
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&step, &link).unwrap();
        let error = refused(&config.run.dir, &link.join("out"), false);
        assert!(error.contains("lies in the model's own folder, "), "{error}");
    }
    let model = dir.path().join("model");
    let options = ExportOptions { format: ExportFormat::F32, shard_bytes: 1 << 30, replace: true };
    let run = SavedModel::open(&config.run.dir, None).unwrap();
    Exporter::new(&run).unwrap().write(&model, options, || ()).unwrap();
    let error = refused(&model, &model, true);
    assert!(error.contains("lies in the model's own folder, "), "{error}");
}
