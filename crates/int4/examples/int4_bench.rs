//! Measures the three products of a linear layer in 4 bits against f32 products of the `gemm` crate, taking turns.
//!
//! ```text
//! cargo run --release -p thinwire-int4 --example int4_bench [-- 4096x4096x4096 ...]
//! ```
//!
//! A shape is samples x outputs x inputs; without one, square and real layers. Times are medians, in ms, of everything that an operator does to f32
//! matrices: `forward` has the transform and quantization of input and weight in it, the gradients half of the splitting each.
#![expect(clippy::print_stdout, reason = "the tables are the program's result")]
#![expect(unsafe_code, reason = "gemm takes pointers")]

use std::error::Error;
use std::time::Instant;

use gemm::Parallelism;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use thinwire_int4::{
    Block, Isa, Key, Quantized, Sampling, SplitGradient, Step, forward, hadamard, input_gradient,
    weight_gradient,
};

const SHAPES: [[usize; 3]; 12] = [
    [256, 256, 256],
    [512, 512, 512],
    [1024, 1024, 1024],
    [2048, 2048, 2048],
    [4096, 4096, 4096],
    // MiniLM, 512 tokens: attention and the two halves of the feed-forward part.
    [512, 384, 384],
    [512, 1536, 384],
    [512, 384, 1536],
    // SmolLM2-135M, 2048 tokens: the feed-forward part.
    [2048, 1536, 576],
    [2048, 576, 1536],
    // Llama 2 7B, 2048 tokens: attention, feed-forward.
    [2048, 4096, 4096],
    [2048, 11008, 4096],
];

/// The longest blocks that are tried; the paper's usual choice.
const BLOCK: usize = 32;

fn main() -> Result<(), Box<dyn Error>> {
    let isa = Isa::choose()?;
    let shapes = std::env::args().skip(1).map(|text| parse(&text)).collect::<Result<Vec<_>, _>>()?;
    let shapes = if shapes.is_empty() { SHAPES.to_vec() } else { shapes };
    println!("{isa}, {} threads; times in ms, (x) how much faster than f32\n", rayon_threads());
    println!(
        "| samples x outputs x inputs | f32: Y, dW, dX | forward | dW | dX | rows kept: dW, dX, of 2 N |"
    );
    println!("|---|---|---|---|---|---|");
    let mut breakdown = Vec::new();
    for shape in shapes {
        let times = Layer::new(isa, shape).measure()?;
        let [n, c, d] = shape;
        let [y, dw, dx] = times.float;
        let ratio = |float: f64, ours: f64| format!("{ours:.1} ({:.2})", float / ours);
        let columns = [
            format!("{n} x {c} x {d}"),
            format!("{y:.1}, {dw:.1}, {dx:.1}"),
            ratio(y, times.quantize + times.forward),
            ratio(dw, times.split / 2.0 + times.weight),
            ratio(dx, times.split / 2.0 + times.input),
            format!("{}, {}, {}", times.kept[0], times.kept[1], 2 * n),
        ];
        println!("| {} |", columns.join(" | "));
        breakdown.push((columns[0].clone(), times));
    }
    println!("\nShare of the time of a step, %:\n");
    println!("| samples x outputs x inputs | transform | quantize | Y | split | dW | dX |");
    println!("|---|---|---|---|---|---|---|");
    for (shape, times) in breakdown {
        let Times { transform, quantize, forward, split, weight, input, .. } = times;
        // Transform and quantization are one pass; what the transform takes is measured by itself.
        let transform = transform.min(quantize);
        let parts = [transform, quantize - transform, forward, split, weight, input];
        let total: f64 = parts.iter().sum();
        let parts = parts.map(|part| format!("{:.0}", 100.0 * part / total));
        println!("| {shape} | {} |", parts.join(" | "));
    }
    Ok(())
}

fn rayon_threads() -> usize {
    std::env::var("RAYON_NUM_THREADS")
        .ok()
        .and_then(|text| text.parse().ok())
        .or_else(|| std::thread::available_parallelism().ok().map(std::num::NonZero::get))
        .unwrap_or(1)
}

fn parse(text: &str) -> Result<[usize; 3], String> {
    let sizes: Vec<usize> = text.split('x').filter_map(|size| size.parse().ok()).collect();
    sizes.try_into().map_err(|_| format!("`{text}`: expected a shape like 2048x4096x4096"))
}

struct Layer {
    isa: Isa,
    shape: [usize; 3],
    block: Block,
    x: Vec<f32>,
    w: Vec<f32>,
    dy: Vec<f32>,
}

/// Medians, in ms.
#[derive(Debug, Clone, Copy)]
struct Times {
    /// `Y`, `dW` and `dX` in f32.
    float: [f64; 3],
    transform: f64,
    quantize: f64,
    forward: f64,
    split: f64,
    weight: f64,
    input: f64,
    kept: [usize; 2],
}

impl Layer {
    /// Normally spread values would do for the time, but the rows of a gradient have to differ for sampling to have a choice: their sizes
    /// spread over two decades.
    fn new(isa: Isa, shape: [usize; 3]) -> Self {
        let [n, c, d] = shape;
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let mut values = |len| (0..len).map(|_| random.random_range(-1.0_f32..1.0)).collect::<Vec<_>>();
        let (x, w, mut dy) = (values(n * d), values(c * d), values(n * c));
        for row in dy.chunks_exact_mut(c) {
            let size = 10.0_f32.powf(random.random_range(-2.0..0.0));
            for value in row {
                *value *= size;
            }
        }
        let block = Block::all(d).take_while(|block| block.size() <= BLOCK).last().unwrap_or(Block::NONE);
        Self { isa, shape, block, x, w, dy }
    }

    fn measure(&self) -> Result<Times, Box<dyn Error>> {
        let Self { isa, shape: [n, c, d], block, .. } = *self;
        let step = Step::initial(isa, &self.x, [n, d], block)?;
        let quantize = |values: &[f32], rows| Quantized::new(isa, values, [rows, d], block, step);
        let (mut y, mut dw, mut dx) = (vec![0.0; n * c], vec![0.0; c * d], vec![0.0; n * d]);
        let (mut scratch_x, mut scratch_w) = (self.x.clone(), self.w.clone());
        let modes = (Sampling::Sample, Key::new(1));
        let mut kept = [0; 2];
        let turns = if n * c * d > 1 << 31 { 5 } else { 11 };
        let mut times = vec![[0.0; 9]; turns];
        for times in &mut times {
            ((), times[0]) = timed(|| multiply(&self.x, [n, d], false, &self.w, [c, d], true, &mut y));
            ((), times[1]) = timed(|| multiply(&self.dy, [n, c], true, &self.x, [n, d], false, &mut dw));
            ((), times[2]) = timed(|| multiply(&self.dy, [n, c], false, &self.w, [c, d], false, &mut dx));
            let (transformed, quantized, done, halves, weight, input);
            (transformed, times[3]) = timed(|| {
                hadamard(isa, &mut scratch_x, [n, d], block).and(hadamard(isa, &mut scratch_w, [c, d], block))
            });
            (quantized, times[4]) = timed(|| (quantize(&self.x, n), quantize(&self.w, c)));
            let (x, w) = (quantized.0?, quantized.1?);
            (done, times[5]) = timed(|| forward(isa, &x, &w, &mut y));
            (halves, times[6]) = timed(|| SplitGradient::new(isa, &self.dy, [n, c], Key::new(1)));
            let halves = halves?;
            (weight, times[7]) = timed(|| weight_gradient(isa, &halves, &x, &w, modes, &mut dw));
            (input, times[8]) = timed(|| input_gradient(isa, &halves, &x, &w, modes, &mut dx));
            transformed.and(done)?;
            kept = [weight?.kept, input?.kept];
        }
        let median = |i: usize| {
            let mut column: Vec<f64> = times.iter().map(|times| times[i]).collect();
            column.sort_by(f64::total_cmp);
            column[column.len() / 2]
        };
        Ok(Times {
            float: [median(0), median(1), median(2)],
            transform: median(3),
            quantize: median(4),
            forward: median(5),
            split: median(6),
            weight: median(7),
            input: median(8),
            kept,
        })
    }
}

/// A result and the ms that it took.
fn timed<R>(work: impl FnOnce() -> R) -> (R, f64) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed().as_secs_f64() * 1e3)
}

/// The product of two row-major matrices, each transposed if asked for, in f32.
fn multiply(
    a: &[f32],
    a_shape: [usize; 2],
    a_turned: bool,
    b: &[f32],
    b_shape: [usize; 2],
    b_turned: bool,
    out: &mut [f32],
) {
    let oriented = |[rows, columns]: [usize; 2], turned: bool| {
        let stride = columns.cast_signed();
        if turned { ([columns, rows], [1, stride]) } else { ([rows, columns], [stride, 1]) }
    };
    let ([m, k], [a_down, a_right]) = oriented(a_shape, a_turned);
    let ([depth, n], [b_down, b_right]) = oriented(b_shape, b_turned);
    assert!(k == depth && a.len() == m * k && b.len() == k * n && out.len() == m * n);
    // SAFETY: with these shapes and strides every element lies inside its slice, whose length was just compared.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            out.as_mut_ptr(),
            1,
            n.cast_signed(),
            false,
            a.as_ptr(),
            a_right,
            a_down,
            b.as_ptr(),
            b_right,
            b_down,
            0.0_f32,
            1.0,
            false,
            false,
            false,
            Parallelism::Rayon(0),
        );
    }
}
