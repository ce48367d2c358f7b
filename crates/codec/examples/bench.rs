//! Speed of every codec on one core, beside the memory's: `cargo run --release -p thinwire-codec --example bench`.
//!
//! The tensor imitates an activation: every channel Gaussian, with scales between 1/3 and 3, one channel in a hundred
//! fifty times larger. For each codec and direction the fastest of the rounds counts. A plain copy of the same f32
//! tensor runs in every round, so that the ratio to it is of the same moment on the same machine. `--json` prints one
//! object a line.

#![expect(clippy::print_stdout, reason = "the table is what the program is for")]

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use thinwire_codec::{CodecSpec, Shape, TensorView, TensorViewMut};

const SHAPE: Shape = Shape::new(1, 2048, 1024);
const ROUNDS: usize = 25;
const SPECS: [&str; 10] = [
    "f32",
    "f16",
    "bf16",
    "fixed:bits=4",
    "fixed",
    "fixed:bits=8",
    "fixed:bits=10",
    "tah",
    "tah:a=c",
    "tah:tau=0",
];

/// What one codec did.
struct Row {
    spec: CodecSpec,
    /// Values a second.
    encode: f64,
    decode: f64,
    copy: f64,
    bits_per_element: f64,
    rel_sq_error: f64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let json = match std::env::args().nth(1).as_deref() {
        None => false,
        Some("--json") => true,
        Some(other) => return Err(format!("unknown argument `{other}`: did you mean `--json`?").into()),
    };
    let x = activation()?;
    if !json {
        println!("one thread, f32 tensor {SHAPE}, fastest of {ROUNDS} rounds");
        println!(
            "{:<44} {:>9} {:>9} {:>9} {:>9} {:>7} {:>9}",
            "", "encode", "decode", "encode", "decode", "", ""
        );
        println!(
            "{:<44} {:>9} {:>9} {:>9} {:>9} {:>7} {:>9}",
            "codec", "M/s", "M/s", "of copy", "of copy", "bits", "rel error"
        );
    }
    for spec in SPECS {
        let row = measure(&spec.parse()?, &x)?;
        if json { print_json(&row) } else { print_line(&row) }
    }
    Ok(())
}

fn measure(spec: &CodecSpec, x: &[f32]) -> Result<Row, Box<dyn Error>> {
    let mut codec = spec.build()?;
    let view = TensorView::new(SHAPE, x)?;
    let mut message = vec![0; codec.packed_size(SHAPE, view.dtype())?.bound()];
    let mut decoded = vec![0.0_f32; x.len()];
    let mut bytes = codec.encode(view, &mut message)?;
    let mut seconds = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        let start = Instant::now();
        bytes = codec.encode(black_box(view), black_box(&mut message))?;
        seconds[0].push(start.elapsed().as_secs_f64());

        let start = Instant::now();
        codec
            .decode(black_box(&message[..bytes]), TensorViewMut::new(SHAPE, black_box(&mut decoded[..]))?)?;
        seconds[1].push(start.elapsed().as_secs_f64());

        let start = Instant::now();
        black_box(&mut decoded[..]).copy_from_slice(black_box(x));
        seconds[2].push(start.elapsed().as_secs_f64());
    }
    let stats = codec.measure(view, &message[..bytes])?;
    let [encode, decode, copy] =
        seconds.map(|seconds| x.len() as f64 / seconds.into_iter().fold(f64::INFINITY, f64::min));
    let bits_per_element = 8.0 * bytes as f64 / x.len() as f64;
    Ok(Row { spec: *spec, encode, decode, copy, bits_per_element, rel_sq_error: stats.rel_sq_error() })
}

fn print_line(row: &Row) {
    println!(
        "{:<44} {:>9.0} {:>9.0} {:>9.3} {:>9.3} {:>7.3} {:>9.2e}",
        row.spec.to_string(),
        row.encode / 1e6,
        row.decode / 1e6,
        row.encode / row.copy,
        row.decode / row.copy,
        row.bits_per_element,
        row.rel_sq_error
    );
}

fn print_json(row: &Row) {
    println!(
        "{}",
        serde_json::json!({
            "codec": row.spec.to_string(),
            "encode_elements_per_second": row.encode,
            "decode_elements_per_second": row.decode,
            "copy_elements_per_second": row.copy,
            "encode_of_copy": row.encode / row.copy,
            "decode_of_copy": row.decode / row.copy,
            "bits_per_element": row.bits_per_element,
            "rel_sq_error": row.rel_sq_error,
        })
    );
}

/// Gaussian values times a scale of their channel: between 1/3 and 3, one channel in a hundred fifty times that.
fn activation() -> Result<Vec<f32>, Box<dyn Error>> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let scales: Vec<f32> = (0..SHAPE.channels)
        .map(|channel| 3_f32.powf(rng.random_range(-1.0..1.0)) * if channel % 100 == 7 { 50.0 } else { 1.0 })
        .collect();
    let mut gaussian = || (0..12).map(|_| rng.random::<f32>()).sum::<f32>() - 6.0;
    Ok((0..SHAPE.elements()?).map(|i| gaussian() * scales[i % SHAPE.channels]).collect())
}
