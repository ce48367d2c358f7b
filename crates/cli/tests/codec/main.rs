//! `thinwire codec`, run as a user runs it.

#[path = "../common/mod.rs"]
mod common;
mod hostile;
mod vectors;

use std::fs;
use std::path::Path;
use std::process::Stdio;

use common::{json, thinwire};
use half::{bf16, f16};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

const CODECS: [&str; 7] = [
    "tah",
    "tah:g=16,a=c,p=0.3,hi=5,lo=2,tau=0",
    "fixed:bits=5,group=32",
    "tah:raw_below=400",
    "raw:dtype=f32",
    "aqsgd:first=bf16",
    "group:bits=3,group=64",
];

/// Values of mixed size with an outlier now and then, as activations have.
fn values(len: usize) -> Vec<f32> {
    let value = |i: usize| (i as f32 * 0.7).sin() * if i.is_multiple_of(37) { 20.0 } else { 1.0 };
    (0..len).map(value).collect()
}

fn bytes(dtype: Dtype, values: &[f32]) -> Vec<u8> {
    match dtype {
        Dtype::F32 => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        Dtype::F16 => values.iter().flat_map(|&value| f16::from_f32(value).to_le_bytes()).collect(),
        Dtype::BF16 => values.iter().flat_map(|&value| bf16::from_f32(value).to_le_bytes()).collect(),
        other => panic!("{other} is not used here"),
    }
}

/// A safetensors file with one tensor `x`.
fn write(path: &Path, dtype: Dtype, shape: &[usize], data: &[u8]) {
    let view = TensorView::new(dtype, shape.to_vec(), data).unwrap();
    fs::write(path, safetensors::serialize([("x", view)], None).unwrap()).unwrap();
}

/// Dtype, shape and data of a tensor in a file.
fn read(path: &Path, name: &str) -> (Dtype, Vec<usize>, Vec<u8>) {
    let bytes = fs::read(path).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let tensor = file.tensor(name).unwrap();
    (tensor.dtype(), tensor.shape().to_vec(), tensor.data().to_vec())
}

#[test]
fn roundtrip_writes_decoded_and_reports_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("in.safetensors"), folder.path().join("out.safetensors"));
    let x = values(2 * 3 * 128);
    write(&input, Dtype::F32, &[2, 3, 128], &bytes(Dtype::F32, &x));
    let report = json(
        thinwire(["codec", "roundtrip", "--codec", "fixed:bits=6,group=64", "--tensor", "x"])
            .arg(&input)
            .arg("--out")
            .arg(&out),
    );

    let (dtype, shape, decoded) = read(&out, "decoded");
    assert_eq!((dtype, shape), (Dtype::F32, vec![2, 3, 128]));
    let decoded: Vec<f32> = decoded.as_chunks().0.iter().map(|&word| f32::from_le_bytes(word)).collect();
    let square = |value: f32| f64::from(value) * f64::from(value);
    let error: f64 = x.iter().zip(&decoded).map(|(x, decoded)| square(x - decoded)).sum();
    let signal: f64 = x.iter().copied().map(square).sum();
    assert!(error > 0.0);

    assert_eq!(report["elements"], 768);
    // 6 bits a value, 16 a group of 64, 4 bytes of header.
    assert_eq!(report["bytes"], 768 * 6 / 8 + 768 / 64 * 2 + 4);
    assert_eq!(report["bits_per_element"], report["bytes"].as_f64().unwrap() * 8.0 / 768.0);
    let reported = report["rel_sq_error"].as_f64().unwrap();
    assert!((reported - error / signal).abs() < 1e-6 * reported, "{reported} {}", error / signal);
    for seconds in ["encode_seconds", "decode_seconds"] {
        assert!(report[seconds].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn encode_then_decode_is_roundtrip_for_any_shape_dtype_and_codec() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (input, message) = (path("in.safetensors"), path("message.tw"));
    let shapes: [&[usize]; 7] = [&[], &[70], &[3, 70], &[2, 3, 70], &[2, 2, 3, 33], &[2, 0, 8], &[0]];
    for (dtype, shape) in
        [Dtype::F32, Dtype::F16, Dtype::BF16].into_iter().flat_map(|dtype| shapes.map(|s| (dtype, s)))
    {
        write(&input, dtype, shape, &bytes(dtype, &values(shape.iter().product())));
        for codec in CODECS {
            let out = path("out.safetensors");
            let report =
                json(thinwire(["codec", "roundtrip", "--codec", codec]).arg(&input).arg("--out").arg(&out));
            let (kept, dims, decoded) = read(&out, "decoded");
            assert_eq!((kept, &dims[..]), (dtype, shape), "{codec}");
            if codec.starts_with("raw") {
                assert_eq!(decoded, read(&input, "x").2, "raw f32 changes nothing");
            }

            let encoded =
                json(thinwire(["codec", "encode", "--codec", codec]).arg(&input).arg("--out").arg(&message));
            assert_eq!(encoded["bytes"], report["bytes"]);
            let out = path("decoded.safetensors");
            let packed = json(thinwire(["codec", "decode"]).arg(&message).arg("--out").arg(&out));
            assert_eq!(packed, encoded);
            assert_eq!(read(&out, "x"), (kept, dims, decoded), "{codec} {shape:?}");
        }
    }
}

#[test]
fn npy_in_and_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for (dtype, name) in [(Dtype::F32, "f32"), (Dtype::F16, "f16")] {
        write(&path("x.safetensors"), dtype, &[2, 5, 33], &bytes(dtype, &values(330)));
        let convert = |from: &str, to: &str| {
            let report = json(
                thinwire(["codec", "roundtrip", "--codec", "raw:dtype=f32", "--out"])
                    .arg(path(to))
                    .arg(path(from)),
            );
            assert_eq!(report["dtype"], name);
        };
        convert("x.safetensors", "x.npy");
        convert("x.npy", "y.npy");
        convert("y.npy", "y.safetensors");
        assert_eq!(read(&path("y.safetensors"), "decoded"), read(&path("x.safetensors"), "x"));
        assert_eq!(fs::read(path("x.npy")).unwrap(), fs::read(path("y.npy")).unwrap());
    }
}

#[test]
fn text_output_says_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.safetensors");
    write(&input, Dtype::BF16, &[4, 64], &bytes(Dtype::BF16, &values(256)));
    let output = thinwire(["codec", "roundtrip", "--codec", "raw:dtype=bf16"]).arg(&input).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    for part in ["raw:dtype=bf16", "x [4, 64] bf16, 256 elements", "516 bytes, 16.125 bits an element"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn small_tensors_go_raw_below_the_threshold_on_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.safetensors");
    write(&input, Dtype::BF16, &[2, 64], &bytes(Dtype::BF16, &values(128)));
    for (codec, sent_as, error) in [
        ("tah:raw_below=129", "raw bf16", true),
        ("tah:raw_below=128", "tah", false),
        ("bf16", "raw bf16", true),
    ] {
        for threads in ["1", "3"] {
            let arguments = ["codec", "roundtrip", "--codec", codec, "--threads", threads];
            let report = json(thinwire(arguments).arg(&input));
            assert_eq!(report["sent_as"], sent_as, "{codec}");
            assert_eq!(report["rel_sq_error"] == 0.0, error, "{codec}");
        }
    }
}

#[test]
fn a_reader_that_has_gone_away_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.safetensors");
    write(&input, Dtype::F32, &[64], &bytes(Dtype::F32, &values(64)));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = thinwire(["codec", "roundtrip", "--codec", "tah"])
        .arg(&input)
        .stdout(Stdio::from(writer))
        .output()
        .unwrap();
    assert!(output.status.success() && output.stderr.is_empty());
}
