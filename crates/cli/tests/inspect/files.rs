//! Messages, frames, tensors, metrics, and files that are nothing known.

use std::fs;
use std::path::{Path, PathBuf};

use safetensors::Dtype;
use safetensors::tensor::TensorView;
use serde_json::{Value, json};
use thinwire_link::{Frame, FrameHeader, FrameKind, RunId};

use super::common::{json, thinwire};
use super::{inspect, refused, text};

/// `x.safetensors` with tensor `x` of `[2, 3, 64]` in a fresh folder.
fn tensor() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let data: Vec<u8> = (0..384u16).flat_map(|i| (f32::from(i) * 0.1).sin().to_le_bytes()).collect();
    let view = TensorView::new(Dtype::F32, vec![2, 3, 64], &data).unwrap();
    let path = folder.path().join("x.safetensors");
    fs::write(&path, safetensors::serialize([("x\u{1b}", view)], None).unwrap()).unwrap();
    (folder, path)
}

#[test]
fn messages_are_described_and_verified() {
    let (folder, input) = tensor();
    let path = folder.path().join("x.tw");
    let encoded =
        json(thinwire(["codec", "encode", "--codec", "tah:g=32"]).arg(input).arg("--out").arg(&path));
    let report = inspect(&path, &["--verify"]);
    assert_eq!(
        (&report["kind"], &report["bytes"]),
        (&json!("message"), &json!(fs::metadata(&path).unwrap().len()))
    );
    let message = &report["message"];
    for key in ["tensor", "shape", "dtype", "codec", "elements", "bytes", "bits_per_element"] {
        assert_eq!(message[key], encoded[key], "{key}");
    }
    // The largest value is just below 1 = 2^0, so floor(log2) - 8 is -9.
    assert_eq!((&message["scale_exponent"], &message["decoded"]), (&json!(-9), &json!(true)));
    assert_eq!(report["frames"][1]["shape"], json!([2, 3, 64]));
    let shown = text(&path, &[]);
    assert!(
        shown.contains("2 frames") && shown.contains("scale 2^-9") && !shown.contains('\u{1b}'),
        "{shown}"
    );

    let whole = fs::read(&path).unwrap();
    for at in (4..whole.len()).step_by(13) {
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        for bytes in [&flipped, &whole[..at]] {
            fs::write(&path, bytes).unwrap();
            let text = refused(&path, &[]);
            assert!(text.contains("x.tw: the frame at byte "), "{text}");
        }
    }
}

/// Both streams into one file, as on a terminal: every path has its answer in its place.
#[test]
fn results_and_errors_keep_the_order_of_the_paths() {
    let (folder, tensor) = tensor();
    let (absent, screen) = (folder.path().join("absent"), folder.path().join("screen"));
    let file = fs::File::create(&screen).unwrap();
    let mut command = thinwire(["inspect"]);
    command.args([&absent, &tensor]).stdout(file.try_clone().unwrap()).stderr(file);
    assert_eq!(command.status().unwrap().code(), Some(1));
    let screen = fs::read_to_string(&screen).unwrap();
    let places = ["absent", "x.safetensors", "error: 1 of 2 paths could not be inspected"]
        .map(|text| screen.find(text).unwrap_or_else(|| panic!("no {text}: {screen}")));
    assert!(places.is_sorted(), "{screen}");
}

#[test]
fn frames_of_any_kind_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("captured");
    let frame = |kind, step, payload: &'static [u8]| {
        let header = FrameHeader::without_tensor(RunId([7; 16]), kind, step, 3, payload.len() as u64);
        Frame { header, payload }.to_bytes().unwrap()
    };
    let mut bytes = frame(FrameKind::PoisonedForward, 5, b"");
    bytes.extend(frame(FrameKind::Abort, 6, b"disk full"));
    fs::write(&path, &bytes).unwrap();
    let report = inspect(&path, &[]);
    assert_eq!((&report["kind"], &report["message"]), (&json!("frames"), &Value::Null));
    let frames = report["frames"].as_array().unwrap();
    assert_eq!((&frames[0]["kind"], &frames[0]["step"]), (&json!("poisoned-forward"), &json!(5)));
    assert_eq!((&frames[1]["payload_bytes"], &frames[1]["run"]), (&json!(9), &json!("07".repeat(16))));

    for _ in 0..30 {
        bytes.extend(frame(FrameKind::Control, 7, b"x"));
    }
    fs::write(&path, &bytes).unwrap();
    assert!(text(&path, &[]).ends_with("  and 12 more\n"));
    fs::write(&path, [&bytes[..], b"TWFR"].concat()).unwrap();
    assert!(refused(&path, &[]).contains(&format!("the frame at byte {}", bytes.len())));
}

#[test]
fn tensors_are_listed_from_the_header() {
    let (folder, path) = tensor();
    let report = inspect(&path, &[]);
    assert_eq!(
        (&report["kind"], &report["elements"], &report["checkpoint"]),
        (&json!("safetensors"), &json!(384), &Value::Null)
    );
    assert_eq!(
        report["tensors"][0],
        json!({"name": "x\u{1b}", "dtype": "F32", "shape": [2, 3, 64], "bytes": 1536})
    );
    assert!(text(&path, &[]).contains("x\\u{1b} [2, 3, 64] F32"));
    let renamed = folder.path().join("weights");
    fs::rename(&path, &renamed).unwrap();
    assert_eq!(inspect(&renamed, &[])["kind"], "safetensors", "by its content");

    let npy = folder.path().join("x.npy");
    for (descr, size) in [("<f4", 4), ("<i8", 8), ("|b1", 1), ("<U5", 20), ("<M8[ns]", 8)] {
        fs::write(&npy, npy_file(descr, 6 * size)).unwrap();
        let report = inspect(&npy, &[]);
        assert_eq!((&report["kind"], &report["elements"]), (&json!("npy"), &json!(6)));
        assert_eq!(
            report["tensors"][0],
            json!({"name": "x", "dtype": descr, "shape": [2, 3], "bytes": 6 * size})
        );
    }
}

/// A .npy file of shape `(2, 3)`.
fn npy_file(descr: &str, data: usize) -> Vec<u8> {
    let dict = format!("{{'descr': '{descr}', 'fortran_order': True, 'shape': (2, 3), }}\n");
    [&b"\x93NUMPY\x01\x00"[..], &(dict.len() as u16).to_le_bytes(), dict.as_bytes(), &vec![0; data]].concat()
}

#[test]
fn tensor_files_that_lie() {
    let (folder, path) = tensor();
    let whole = fs::read(&path).unwrap();
    for length in (0..whole.len()).step_by(37) {
        fs::write(&path, &whole[..length]).unwrap();
        assert!(refused(&path, &[]).contains("x.safetensors is not a usable safetensors file\n  because: "));
    }
    let huge = 1u64 << 40;
    for (length, header, expected) in [
        (u64::MAX, String::new(), "header too large"),
        (99_000_000, String::new(), "invalid header length"),
        (
            0,
            format!(r#"{{"x":{{"dtype":"U8","shape":[{huge}],"data_offsets":[0,{huge}]}}}}"#),
            "incomplete metadata",
        ),
        (
            0,
            format!(r#"{{"x":{{"dtype":"U8","shape":[{huge},{huge}],"data_offsets":[0,1]}}}}"#),
            "invalid JSON",
        ),
        (0, r#"{"x":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}}"#.to_owned(), "invalid JSON"),
    ] {
        let length = if length == 0 { header.len() as u64 } else { length };
        fs::write(&path, [&length.to_le_bytes(), header.as_bytes()].concat()).unwrap();
        let text = refused(&path, &[]);
        assert!(text.contains(expected), "{text}");
    }
    let npy = folder.path().join("x.npy");
    for (bytes, expected) in [
        (npy_file("<f4", 23), "23 bytes of data do not fit shape [2, 3] of \"<f4\""),
        (npy_file("|O", 48), "48 bytes of data do not fit"),
        (npy_file("<f99999999999999999999", 24), "24 bytes of data do not fit"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff{".to_vec(), "it ends within its header"),
        (b"PK".to_vec(), "it does not begin with"),
    ] {
        fs::write(&npy, bytes).unwrap();
        let text = refused(&npy, &[]);
        assert!(
            text.contains("x.npy is not a usable .npy file\n  because: ") && text.contains(expected),
            "{text}"
        );
    }
}

#[test]
fn metrics_are_summed_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metrics.jsonl");
    let step = |step: u64, loss: Value| {
        json!({
            "kind": "step", "step": step, "loss": loss, "perplexity": "NaN", "learning_rate": 0.1, "gradient_norm": 1.0,
            "skipped": false, "tokens": 8, "seconds": 0.5, "tokens_per_second": 16.0, "links": [], "stages": [],
        })
    };
    let eval =
        json!({"kind": "eval", "step": 2, "loss": 1.5, "perplexity": 4.5, "tokens": 9, "seconds": 0.1});
    let lines = format!("{}\n{}\n{eval}\n{{\"kind\":\"st", step(1, json!(2.5)), step(2, json!("NaN")));
    fs::write(&path, &lines).unwrap();
    let report = inspect(&path, &[]);
    assert_eq!(
        (&report["kind"], &report["steps"], &report["evaluations"]),
        (&json!("metrics"), &json!(2), &json!(1))
    );
    assert_eq!((&report["tokens"], &report["last_step"]["loss"]), (&json!(16), &json!("NaN")));
    assert_eq!(report["last_evaluation"]["perplexity"], 4.5);
    assert!(text(&path, &[]).contains("perplexity 4.5000"));
    fs::write(&path, format!("{{}}\n{lines}")).unwrap();
    assert!(refused(&path, &[]).contains("metrics.jsonl, line 1: not a metrics record"));
}

#[test]
fn unknown_things_are_refused_and_the_others_still_told() {
    let (folder, path) = tensor();
    let beside = |name: &str| folder.path().join(name);
    fs::write(beside("notes.txt"), "hello").unwrap();
    fs::write(beside("empty"), "").unwrap();
    for (path, expected) in [
        (beside("notes.txt"), "is nothing known: it does not begin as frames (TWFR), .npy (\\x93NUMPY)"),
        (beside("empty"), "is nothing known"),
        (beside("absent"), "cannot open "),
        (folder.path().to_owned(), "is neither a run's folder"),
        #[cfg(unix)]
        (Path::new("/dev/zero").to_owned(), "is neither a file nor a folder"),
    ] {
        let text = refused(&path, &[]);
        assert!(text.contains(expected), "{text}");
    }
    let output = thinwire(["inspect", "--json"])
        .args([beside("absent"), path.clone(), beside("empty"), path])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 2);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(errors.matches("error: ").count(), 3);
    assert!(errors.ends_with("error: 2 of 4 paths could not be inspected\n"), "{errors}");
}
