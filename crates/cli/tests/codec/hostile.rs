//! Input that is damaged, of the wrong kind, or lies.

use std::fs;
use std::path::{Path, PathBuf};

use safetensors::Dtype;
use safetensors::tensor::TensorView;
use thinwire_codec::{CodecId, DType, Shape};
use thinwire_link::{Frame, FrameHeader, FrameKind, RunId};

use super::common::{failure, json, thinwire};
use super::{bytes, values, write};

/// A folder with `in.safetensors`, tensor `x` of 128 values.
fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.safetensors");
    write(&input, Dtype::F32, &[2, 64], &bytes(Dtype::F32, &values(128)));
    (folder, input)
}

/// What a roundtrip of `input` fails with; an earlier output must survive it.
fn refused(input: &Path, arguments: &[&str]) -> String {
    let out = input.with_file_name("out.safetensors");
    fs::write(&out, "earlier").unwrap();
    let mut command = thinwire(["codec", "roundtrip", "--codec", "tah"]);
    let text = failure(command.arg(input).arg("--out").arg(&out).args(arguments), 1);
    assert_eq!(fs::read(&out).unwrap(), b"earlier");
    assert!(text.starts_with("error: ") && !text.contains("panicked"), "{text}");
    text
}

#[test]
fn truncated_safetensors() {
    let (_folder, input) = folder();
    let whole = fs::read(&input).unwrap();
    for length in (0..whole.len()).step_by(29) {
        fs::write(&input, &whole[..length]).unwrap();
        let text = refused(&input, &["--tensor", "x"]);
        assert!(text.contains("in.safetensors is not a usable safetensors file\n  because: "), "{text}");
    }
}

#[test]
fn a_tensor_that_is_not_there_or_not_named() {
    let (_folder, input) = folder();
    let text = refused(&input, &["--tensor", "y"]);
    assert!(text.contains("in.safetensors has no tensor \"y\"; it has \"x\""), "{text}");

    let data = bytes(Dtype::F32, &values(64));
    let names: Vec<String> = (0..25).map(|i| format!("layer.{i:02}\u{1b}")).collect();
    let view = || TensorView::new(Dtype::F32, vec![64], &data).unwrap();
    let file = safetensors::serialize(names.iter().map(|name| (name, view())), None).unwrap();
    fs::write(&input, file).unwrap();
    let text = refused(&input, &[]);
    assert!(text.contains("choose a tensor with --tensor; the file has \"layer.00\\u{1b}\", "), "{text}");
    assert!(text.contains("\"layer.19\\u{1b}\" and 5 more") && !text.contains('\u{1b}'), "{text}");
}

#[test]
fn values_that_no_codec_takes() {
    let (_folder, input) = folder();
    for (bad, shown) in [(f32::NAN, "NaN"), (f32::INFINITY, "inf"), (f32::NEG_INFINITY, "-inf")] {
        for dtype in [Dtype::F32, Dtype::F16, Dtype::BF16] {
            let mut values = values(128);
            values[77] = bad;
            write(&input, dtype, &[2, 64], &bytes(dtype, &values));
            let text = refused(&input, &[]);
            assert!(text.contains("cannot encode tensor \"x\" of "), "{text}");
            assert!(text.contains(&format!("because: value 77 of the tensor is {shown}")), "{text}");
        }
    }
    write(&input, Dtype::I32, &[2], &[0; 8]);
    let text = refused(&input, &[]);
    assert!(text.contains("holds I32 values: expected F32, F16 or BF16"), "{text}");
}

#[test]
fn files_of_another_kind() {
    let (folder, input) = folder();
    for (name, contents, expected) in [
        ("absent.safetensors", None, "cannot read "),
        ("x.pt", Some(&b"PK"[..]), "expected a name that ends in .safetensors or .npy"),
        ("x.npy", Some(b"PK"), "because: it does not begin with \\x93NUMPY"),
    ] {
        let path = folder.path().join(name);
        if let Some(contents) = contents {
            fs::write(&path, contents).unwrap();
        }
        let text = refused(&path, &[]);
        assert!(text.contains(expected), "{text}");
    }
    fs::rename(&input, folder.path().join("x.npy")).unwrap();
    let text = refused(&folder.path().join("x.npy"), &["--tensor", "x"]);
    assert!(text.contains("leave out --tensor"), "{text}");

    write(&input, Dtype::BF16, &[64], &bytes(Dtype::BF16, &values(64)));
    let out = folder.path().join("out.npy");
    let text =
        failure(thinwire(["codec", "roundtrip", "--codec", "tah"]).arg(&input).arg("--out").arg(&out), 1);
    assert!(text.contains(".npy has no bf16 values") && !out.exists(), "{text}");
}

#[test]
fn wrong_usage_exits_with_2() {
    let (_folder, input) = folder();
    for (arguments, expected) in [
        (&["codec", "roundtrip"][..], "--codec <SPEC>"),
        (&["codec", "roundtrip", "--codec", "tah:taw=3"], "did you mean `tau`"),
        (&["codec", "roundtrip", "--codec", "fixed:bits=1"], "a whole number from 2 to 16"),
        (&["codec", "unzip"], "unrecognized subcommand"),
    ] {
        let text = failure(thinwire(arguments).arg(&input), 2);
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn damaged_message_files() {
    let (folder, input) = folder();
    let (message, out) = (folder.path().join("m.tw"), folder.path().join("out.safetensors"));
    json(thinwire(["codec", "encode", "--codec", "tah"]).arg(&input).arg("--out").arg(&message));
    let whole = fs::read(&message).unwrap();
    let decode = || {
        let text = failure(thinwire(["codec", "decode"]).arg(&message).arg("--out").arg(&out), 1);
        assert!(text.contains("m.tw is not a usable message file\n  because: ") && !out.exists(), "{text}");
    };
    for at in (0..whole.len()).step_by(17) {
        fs::write(&message, &whole[..at]).unwrap();
        decode();
        let mut flipped = whole.clone();
        flipped[at] ^= 0x10;
        fs::write(&message, flipped).unwrap();
        decode();
    }
    fs::write(&message, [&whole[..], &[0]].concat()).unwrap();
    decode();
}

#[test]
fn message_files_that_lie_behind_good_checksums() {
    let (folder, _) = folder();
    let (path, out) = (folder.path().join("m.tw"), folder.path().join("out.safetensors"));
    let huge = 1usize << 40;
    let raw = "raw:dtype=f32";
    for (description, shape, codec, expected) in [
        (description(&[huge], raw), Shape::new(1, 1, huge), CodecId::RawF32, "the message has 4 bytes"),
        (
            description(&[huge, huge, huge], raw),
            Shape::new(huge, huge, huge),
            CodecId::RawF32,
            "is too large",
        ),
        (description(&[huge; 4], raw), Shape::new(huge, huge, huge), CodecId::RawF32, "is too large"),
        (
            description(&[2], raw),
            Shape::new(1, 1, 3),
            CodecId::RawF32,
            "its description speaks of raw f32 [1, 1, 2]",
        ),
        (description(&[2], raw), Shape::new(1, 1, 2), CodecId::Tah, "its frame of tah [1, 1, 2]"),
        (
            description(&[2], "tah:raw_below=3"),
            Shape::new(1, 1, 2),
            CodecId::Tah,
            "its description speaks of raw f32 [1, 1, 2], its frame of tah [1, 1, 2]",
        ),
        (
            description(&[2], "tah:raw_below=2"),
            Shape::new(1, 1, 2),
            CodecId::RawF32,
            "its description speaks of tah [1, 1, 2], its frame of raw f32 [1, 1, 2]",
        ),
        (description(&[2], "zip"), Shape::new(1, 1, 2), CodecId::Tah, "its description cannot be read"),
        (b"{}".to_vec(), Shape::new(1, 1, 2), CodecId::Tah, "its description cannot be read"),
    ] {
        let control = header(FrameKind::Control, Shape::new(0, 0, 0), CodecId::RawF32, description.len());
        let mut file = Frame { header: control, payload: &description }.to_bytes().unwrap();
        let forward = header(FrameKind::Forward, shape, codec, 4);
        file.extend(Frame { header: forward, payload: &[1, 1, 0, 0] }.to_bytes().unwrap());
        fs::write(&path, file).unwrap();
        let text = failure(thinwire(["codec", "decode"]).arg(&path).arg("--out").arg(&out), 1);
        assert!(text.contains(expected) && !out.exists(), "{text}");
    }
}

fn description(shape: &[usize], codec: &str) -> Vec<u8> {
    serde_json::json!({"tensor": "x", "shape": shape, "codec": codec}).to_string().into_bytes()
}

fn header(kind: FrameKind, shape: Shape, codec: CodecId, payload_len: usize) -> FrameHeader {
    FrameHeader {
        run: RunId([0; 16]),
        step: 0,
        micro_batch: 0,
        kind,
        dtype: DType::F32,
        shape,
        codec,
        tag: 0,
        payload_len: payload_len as u64,
    }
}
