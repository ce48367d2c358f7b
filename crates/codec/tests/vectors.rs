//! TAH-Quant's conformance vectors of an independent `NumPy` implementation (`tests/vectors/README.md`).
//!
//! Widths and outlier flags must be equal, except for tiles so near a decision that the order of an f32 sum may tip
//! it. Decoded values must agree to one quantization step everywhere, and all but 0.1 % of them to 1e-5 of the
//! tensor's largest value: two butterflies that add in different orders may round a value to neighbouring codes.

mod common;

use std::path::{Path, PathBuf};

use common::tah_message::{TahMessage, tile_of};
use common::{oracle, round_trip};
use safetensors::{Dtype, SafeTensors};
use thinwire_codec::{Allocation, CodecSpec, DType, PackedSize, Selection, Shape, TahSettings};

struct Vector {
    name: String,
    settings: TahSettings,
    shape: Shape,
    x: Vec<f32>,
    widths: Vec<u32>,
    outliers: Vec<bool>,
    pivots: Vec<usize>,
    decoded: Vec<f32>,
    bits_per_element: f32,
}

impl Vector {
    fn load(path: &Path) -> Self {
        let bytes = std::fs::read(path).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let floats = |name: &str| -> Vec<f32> {
            let tensor = file.tensor(name).unwrap();
            assert_eq!(tensor.dtype(), Dtype::F32);
            tensor.data().as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
        };
        let integers = |name: &str| -> Vec<i32> {
            let tensor = file.tensor(name).unwrap();
            assert_eq!(tensor.dtype(), Dtype::I32);
            tensor.data().as_chunks().0.iter().map(|bytes| i32::from_le_bytes(*bytes)).collect()
        };
        let params = floats("params");
        let &[samples, tokens, channels] = file.tensor("x").unwrap().shape() else {
            panic!("x is [B, S, C]")
        };
        Self {
            name: path.file_name().unwrap().to_string_lossy().into_owned(),
            settings: TahSettings {
                tile: params[0] as usize,
                allocation: Allocation::Channels(params[1] as usize),
                // The file holds 0.8 rounded to f32.
                high_share: params[2].to_string().parse().unwrap(),
                high_bits: params[3] as u32,
                low_bits: params[4] as u32,
                outlier_ratio: params[5],
                selection: Selection::Entropy,
                raw_below: 0,
            },
            shape: Shape::new(samples, tokens, channels),
            x: floats("x"),
            widths: integers("bits").iter().map(|&bits| bits as u32).collect(),
            outliers: file.tensor("outlier").unwrap().data().iter().map(|&flag| flag != 0).collect(),
            pivots: integers("pivot").iter().map(|&pivot| pivot as usize).collect(),
            decoded: floats("decoded"),
            bits_per_element: floats("bits_per_element")[0],
        }
    }

    fn all() -> Vec<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
        let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("tah_")))
            .collect();
        paths.sort();
        assert_eq!(paths.len(), 10, "all vectors are there");
        paths.iter().map(|path| Self::load(path)).collect()
    }

    fn spec(&self) -> CodecSpec {
        CodecSpec::Tah(self.settings)
    }
}

#[test]
fn widths_and_outliers_are_the_reference_s() {
    for vector in Vector::all() {
        let (message, _) = round_trip(&vector.spec(), vector.shape, &vector.x);
        let tiles = TahMessage::parse(&vector.settings, vector.shape, &message).tiles;
        let exact = oracle::tah(&vector.settings, vector.shape, &vector.x);
        assert_eq!(tiles.len(), vector.widths.len(), "{}", vector.name);
        for (i, tile) in tiles.iter().enumerate() {
            let what = format!("{}, tile {i}", vector.name);
            if exact.tiles[i].entropy_margin > 1e-6 {
                assert_eq!(tile.width, vector.widths[i], "width of {what}");
            }
            if exact.tiles[i].ratio_margin > 1e-5 {
                assert_eq!(tile.outlier, vector.outliers[i], "outlier flag of {what}");
                if tile.outlier && exact.tiles[i].ratio > 1.0 {
                    assert_eq!(tile.pivot, vector.pivots[i], "pivot of {what}");
                }
            }
        }
    }
}

#[test]
fn decoded_values_are_the_reference_s() {
    for vector in Vector::all() {
        let (message, decoded) = round_trip(&vector.spec(), vector.shape, &vector.x);
        let parsed = TahMessage::parse(&vector.settings, vector.shape, &message);
        let largest = vector.x.iter().fold(0.0_f32, |max, x| max.max(x.abs()));
        let mut off = 0;
        for (i, (&got, &want)) in decoded.iter().zip(&vector.decoded).enumerate() {
            // Of an outlier tile, one code off moves every value by step / sqrt(G): still below one step.
            let tile = &parsed.tiles[tile_of(&vector.settings, vector.shape, i)];
            let difference = f64::from((got - want).abs());
            assert!(
                difference <= tile.step * 1.001 + 1e-6 * f64::from(largest),
                "{}, value {i}: {got}, reference {want}, step {}",
                vector.name,
                tile.step
            );
            off += usize::from(difference > 1e-5 * f64::from(largest));
        }
        assert!(off as f64 <= 1e-3 * decoded.len() as f64, "{}: {off} values differ", vector.name);
    }
}

#[test]
fn ledger_is_the_reference_s() {
    for vector in Vector::all() {
        let codec = vector.spec().build().unwrap();
        let PackedSize::Exact(bytes) = codec.packed_size(vector.shape, DType::F32).unwrap() else {
            panic!("TAH messages have a fixed length")
        };
        let payload = bytes - thinwire_codec::HEADER_LEN;
        let bits = f64::from(vector.bits_per_element) * vector.x.len() as f64;
        // Two bit sections of every sample are filled up to whole bytes.
        let padding = 8.0 * payload as f64 - bits;
        // The reference rounded to f32.
        let slack = bits * f64::from(f32::EPSILON);
        assert!(
            padding >= -slack && padding < 14.0 * vector.shape.samples as f64 + slack,
            "{}: {padding} bits above the reference's {bits}",
            vector.name
        );
    }
}
