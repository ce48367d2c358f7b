//! The conformance vectors, through the command line.

use std::fs;
use std::path::Path;

use safetensors::SafeTensors;

use super::common::{json, thinwire};
use super::read;

fn floats(file: &SafeTensors<'_>, name: &str) -> Vec<f32> {
    file.tensor(name).unwrap().data().as_chunks().0.iter().map(|&word| f32::from_le_bytes(word)).collect()
}

/// All but 0.1 % of the values agree to 1e-5 of the largest: the two implementations add in different orders,
/// which may round a value to the code beside it.
#[test]
fn tah_vectors() {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../codec/tests/vectors");
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.safetensors");
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
        let report = json(
            thinwire(["codec", "roundtrip", "--tensor", "x", "--codec", &spec])
                .arg(&path)
                .arg("--out")
                .arg(&out),
        );

        let expected = floats(&file, "decoded");
        let decoded = read(&out, "decoded").2;
        let decoded: Vec<f32> = decoded.as_chunks().0.iter().map(|&word| f32::from_le_bytes(word)).collect();
        assert_eq!(decoded.len(), expected.len());
        let largest = floats(&file, "x").iter().fold(0f32, |largest, x| largest.max(x.abs()));
        let near = |(decoded, expected): &(&f32, &f32)| (**decoded - **expected).abs() <= 1e-5 * largest;
        let off = decoded.iter().zip(&expected).filter(|pair| !near(pair)).count();
        assert!(off * 1000 <= expected.len(), "{name}: {off} of {} values differ", expected.len());

        // The ledger leaves out the 4 bytes of header and the padding of each section to whole bytes.
        let ledger = f64::from(floats(&file, "bits_per_element")[0]) * expected.len() as f64 / 8.0;
        let bytes = report["bytes"].as_f64().unwrap();
        assert!(bytes >= ledger && bytes <= ledger + 12.0, "{name}: {bytes} bytes, by the ledger {ledger}");
    }
    assert!(seen >= 10, "{seen} vectors");
}
