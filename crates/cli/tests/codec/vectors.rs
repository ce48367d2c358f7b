//! The conformance vectors, through the command line.

use std::fs;
use std::path::Path;

use safetensors::SafeTensors;
use serde_json::Value;

use super::common::{json, thinwire};
use super::read;

fn floats(file: &SafeTensors<'_>, name: &str) -> Vec<f32> {
    file.tensor(name).unwrap().data().as_chunks().0.iter().map(|&word| f32::from_le_bytes(word)).collect()
}

/// Round-trips `x` of a vector and returns the report. All but 0.1 % of the values agree to 1e-5 of the largest: the two
/// implementations add in different orders, which may round a value to the code beside it.
fn round_trip(path: &Path, file: &SafeTensors<'_>, spec: &str) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.safetensors");
    let report = json(
        thinwire(["codec", "roundtrip", "--tensor", "x", "--codec", spec]).arg(path).arg("--out").arg(&out),
    );
    let expected = floats(file, "decoded");
    let decoded = read(&out, "decoded").2;
    let decoded: Vec<f32> = decoded.as_chunks().0.iter().map(|&word| f32::from_le_bytes(word)).collect();
    assert_eq!(decoded.len(), expected.len());
    let largest = floats(file, "x").iter().fold(0f32, |largest, x| largest.max(x.abs()));
    let near = |(decoded, expected): &(&f32, &f32)| (**decoded - **expected).abs() <= 1e-5 * largest;
    let off = decoded.iter().zip(&expected).filter(|pair| !near(pair)).count();
    assert!(off * 1000 <= expected.len(), "{spec}: {off} of {} values differ", expected.len());
    report
}

#[test]
fn tah_vectors() {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../codec/tests/vectors");
    let mut seen = 0;
    for entry in fs::read_dir(vectors).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !(name.starts_with("tah_") && name.ends_with(".safetensors")) {
            continue;
        }
        seen += 1;
        let bytes = fs::read(&path).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let [g, a, p, hi, lo, tau] = floats(&file, "params")[..] else { panic!("{name}: six parameters") };
        let spec = format!("tah:g={g},a={a},p={p},hi={hi},lo={lo},tau={tau}");
        let report = round_trip(&path, &file, &spec);

        // The ledger leaves out the 4 bytes of header and the padding of each section to whole bytes.
        let elements = floats(&file, "decoded").len() as f64;
        let ledger = f64::from(floats(&file, "bits_per_element")[0]) * elements / 8.0;
        let bytes = report["bytes"].as_f64().unwrap();
        assert!(bytes >= ledger && bytes <= ledger + 12.0, "{name}: {bytes} bytes, by the ledger {ledger}");
    }
    assert!(seen >= 10, "{seen} vectors");
}

#[test]
fn echo_vectors() {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../codec/tests/vectors");
    for (name, bits, quantizer, parameters) in [
        ("echo4_symmetric", 4, "symmetric", 2),
        ("echo4_naive_zero", 4, "naive", 4),
        ("echo4_zero_aware", 4, "zero-aware", 4),
        ("echo8_zero_aware", 8, "zero-aware", 4),
    ] {
        let path = vectors.join(name).with_extension("safetensors");
        let bytes = fs::read(&path).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let report = round_trip(&path, &file, &format!("group:bits={bits},group=128,quantizer={quantizer}"));
        let groups = floats(&file, "x").len() / 128;
        assert_eq!(report["bytes"], 4 + groups * (parameters + 16 * bits), "{name}");
    }
}
