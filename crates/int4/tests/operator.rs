//! The three products against a float simulation of the same algorithm, and the statistics of sampling.

mod common;

use common::{for_each_isa, generator, hadamard_by_matrix, on_threads, values};
use rand::RngExt;
use thinwire_int4::{
    Block, Int4Error, Isa, Key, Quantized, Sampling, SplitGradient, Step, drawn_probability, forward,
    input_gradient, probabilities, weight_gradient,
};

for_each_isa!(products_as_simulated, sampled_rows_are_the_same_everywhere);

/// A layer `Y = X W^T`, quantized, with a gradient whose rows differ in size.
struct Layer {
    /// Samples, outputs, inputs.
    shape: [usize; 3],
    values: Vec<f32>,
    x: Quantized,
    w: Quantized,
    dy: SplitGradient,
}

impl Layer {
    fn new(isa: Isa, shape: [usize; 3], block: usize, seed: u64) -> Self {
        let [n, c, d] = shape;
        let mut random = generator(seed);
        let block = Block::new(block, d).unwrap();
        let mut quantize = |rows: usize| {
            let values = values(rows * d, &mut random);
            let step = Step::initial(isa, &values, [rows, d], block).unwrap();
            (Quantized::new(isa, &values, [rows, d], block, step).unwrap(), values)
        };
        let ((x, input), (w, _)) = (quantize(n), quantize(c));
        let mut gradient = values(n * c, &mut random);
        for row in gradient.chunks_exact_mut(c.max(1)) {
            let size = 10.0_f32.powf(random.random_range(-2.0..0.0));
            for v in row {
                *v *= size;
            }
        }
        let dy = SplitGradient::new(isa, &gradient, [n, c], Key::new(seed)).unwrap();
        Self { shape, values: input, x, w, dy }
    }

    fn weight_gradient(&self, isa: Isa, sampling: Sampling, key: Key) -> (Vec<f32>, usize, f64) {
        let mut dw = vec![f32::NAN; self.shape[1] * self.shape[2]];
        let summary = weight_gradient(isa, &self.dy, &self.x, &self.w, (sampling, key), &mut dw).unwrap();
        (dw, summary.kept, summary.codes)
    }

    fn input_gradient(&self, isa: Isa, sampling: Sampling, key: Key) -> (Vec<f32>, usize, f64) {
        let mut dx = vec![f32::NAN; self.shape[0] * self.shape[2]];
        let summary = input_gradient(isa, &self.dy, &self.x, &self.w, (sampling, key), &mut dx).unwrap();
        (dx, summary.kept, summary.codes)
    }

    /// The rows of the split gradient, as numbers.
    fn split_rows(&self) -> Vec<Vec<f64>> {
        let [n, c, _] = self.shape;
        let codes = self.dy.codes().view().codes();
        let rows = codes.chunks_exact(c).enumerate();
        rows.map(|(i, row)| {
            let step = f64::from(self.dy.steps()[i / n]);
            row.iter().map(|&code| step * f64::from(code)).collect()
        })
        .collect()
    }
}

/// `step * codes`.
fn numbers(matrix: &Quantized) -> Vec<f64> {
    let step = f64::from(matrix.step().get());
    matrix.codes().view().codes().into_iter().map(|code| step * f64::from(code)).collect()
}

/// What undoes clamping and transform in the backward pass.
fn undo(gradient: &[f64], matrix: &Quantized) -> Vec<f64> {
    let columns = matrix.shape()[1];
    let kept = |i: usize| matrix.unclamped().get(i / columns, i % columns);
    let masked: Vec<f64> = gradient.iter().enumerate().map(|(i, &g)| if kept(i) { g } else { 0.0 }).collect();
    hadamard_by_matrix(&masked, columns, matrix.block().size())
}

/// `gradient^T`-weighted sums: the gradients with respect to the quantized `W` and `X`, without sampling.
fn simulated_gradients(layer: &Layer) -> [Vec<f64>; 2] {
    let [n, c, d] = layer.shape;
    let (x, w, rows) = (numbers(&layer.x), numbers(&layer.w), layer.split_rows());
    let [mut dw, mut dx] = [vec![0.0; c * d], vec![0.0; n * d]];
    for (i, row) in rows.iter().enumerate() {
        let i = i % n;
        for (j, dy) in row.iter().enumerate() {
            for k in 0..d {
                dw[j * d + k] += dy * x[i * d + k];
                dx[i * d + k] += dy * w[j * d + k];
            }
        }
    }
    [dw, dx]
}

fn assert_close(got: &[f32], want: &[f64], what: &str) {
    let largest = want.iter().fold(0.0_f64, |largest, v| largest.max(v.abs()));
    for (i, (&got, want)) in got.iter().zip(want).enumerate() {
        // A scale, a sum in f32 for each segment of rows, and the transform's additions: under 32 roundings.
        let tolerance = 32.0 * f64::from(f32::EPSILON) * largest.max(1e-30);
        assert!((f64::from(got) - want).abs() <= tolerance, "{what}, element {i}: {got} for {want}");
    }
}

const LAYERS: [([usize; 3], usize); 7] = [
    ([1, 1, 1], 1),
    ([3, 5, 7], 1),
    ([9, 6, 20], 4),
    ([20, 33, 48], 16),
    ([2, 70, 64], 64),
    ([130, 40, 96], 32),
    ([17, 19, 1024], 1024),
];

fn products_as_simulated(isa: Isa) {
    for (seed, (shape, block)) in LAYERS.into_iter().enumerate() {
        let layer = Layer::new(isa, shape, block, seed as u64);
        let [n, c, d] = shape;
        let what = format!("{isa}, {shape:?}");
        let (x, w) = (numbers(&layer.x), numbers(&layer.w));
        let mut y = vec![f32::NAN; n * c];
        forward(isa, &layer.x, &layer.w, &mut y).unwrap();
        let dot = |i: usize, j: usize| (0..d).map(|k| x[i * d + k] * w[j * d + k]).sum::<f64>();
        let expected: Vec<f64> = (0..n * c).map(|i| dot(i / c, i % c)).collect();
        assert_close(&y, &expected, &what);

        let [dw, dx] = simulated_gradients(&layer);
        let (got, kept, codes) = layer.weight_gradient(isa, Sampling::Off, Key::new(0));
        assert_eq!(kept, 2 * n);
        assert_close(&got, &undo(&dw, &layer.w), &what);
        check_codes(codes, &dw, &layer.w, &what);
        let (got, _, codes) = layer.input_gradient(isa, Sampling::Off, Key::new(0));
        assert_close(&got, &undo(&dx, &layer.x), &what);
        check_codes(codes, &dx, &layer.x, &what);
        let (nonzero, ..) = layer.input_gradient(isa, Sampling::KeepNonzero, Key::new(0));
        assert_eq!(nonzero, got, "{what}: rows of zeros add nothing");
    }
}

fn check_codes(got: f64, gradient: &[f64], matrix: &Quantized, what: &str) {
    let codes = matrix.codes().view().codes();
    let products = gradient.iter().zip(codes).map(|(g, code)| g * f64::from(code));
    let (sum, size) = products.fold((0.0, 0.0), |(sum, size), product| (sum + product, size + product.abs()));
    assert!((got - sum).abs() <= 1e-5 * size + 1e-30, "{what}: {got} for {sum}");
}

fn sampled_rows_are_the_same_everywhere(isa: Isa) {
    for (seed, (shape, block)) in LAYERS.into_iter().enumerate() {
        let layer = Layer::new(isa, shape, block, seed as u64);
        for sampling in [Sampling::Sample, Sampling::TopK] {
            let key = Key::new(8);
            let run =
                |isa| (layer.weight_gradient(isa, sampling, key), layer.input_gradient(isa, sampling, key));
            let expected = on_threads(1, || run(Isa::PORTABLE));
            assert_eq!(run(isa), expected, "{isa}, {shape:?}");
            assert_eq!(on_threads(5, || run(isa)), expected, "{isa}, {shape:?}");
            if sampling == Sampling::TopK {
                assert!(expected.0.1 <= shape[0]);
            }
        }
    }
}

/// The gradient of the step with respect to `X`, from what the operator returns, against its definition.
#[test]
fn step_gradient_as_defined() {
    let isa = Isa::choose().unwrap();
    let layer = Layer::new(isa, [9, 12, 32], 16, 3);
    let (dx, _, codes) = layer.input_gradient(isa, Sampling::Off, Key::new(0));
    let values = dx.iter().zip(&layer.values).map(|(&g, &x)| f64::from(g) * f64::from(x)).sum();
    let got = layer.x.step().gradient(codes, values, dx.len());

    let wide: Vec<f64> = layer.values.iter().copied().map(f64::from).collect();
    let transformed = hadamard_by_matrix(&wide, 32, 16);
    let step = f64::from(layer.x.step().get());
    let [_, gradient] = simulated_gradients(&layer);
    let sum: f64 = (0..dx.len())
        .map(|i| {
            let ratio = transformed[i] / step;
            let code = ratio.clamp(-7.0, 7.0).round_ties_even();
            gradient[i] * if ratio.abs() <= 7.0 { code - ratio } else { code }
        })
        .sum();
    let expected = sum / (dx.len() as f64 * 7.0).sqrt();
    assert!((f64::from(got) - expected).abs() <= 1e-4 * expected.abs(), "{got} for {expected}");
}

/// Sampled products over many keys: element by element their mean, and the mean of the squared distance from the
/// unsampled product, against `variance`. Means of 4,000 draws lie within 5.5 of their deviations but for one in 26 million
/// (central limit theorem).
fn check_statistics(exact: &[f32], variance: f64, sampled: impl Fn(Key) -> Vec<f32>) {
    const KEYS: u64 = 4000;
    let (mut sums, mut squares) = (vec![0.0_f64; exact.len()], vec![0.0_f64; exact.len()]);
    let (mut distances, mut distances_squared) = (0.0, 0.0);
    for i in 0..KEYS {
        let mut distance = 0.0;
        for (j, (&got, &exact)) in sampled(Key::new(77).child(i)).iter().zip(exact).enumerate() {
            let error = f64::from(got) - f64::from(exact);
            sums[j] += error;
            squares[j] += error * error;
            distance += error * error;
        }
        distances += distance;
        distances_squared += distance * distance;
    }
    let keys = KEYS as f64;
    for (j, (sum, square)) in sums.iter().zip(&squares).enumerate() {
        let deviation = (square / keys / keys).sqrt();
        // Rounding alone is all that differs where every row was certain.
        let rounding = 1e-5 * f64::from(exact[j].abs()) + 1e-9;
        assert!((sum / keys).abs() <= 5.5 * deviation + rounding, "element {j}: off by {}", sum / keys);
    }
    let mean = distances / keys;
    let deviation = ((distances_squared / keys - mean * mean) / keys).sqrt();
    assert!(
        (mean - variance).abs() <= 5.5 * deviation,
        "variance {mean}, deviation {deviation}, expected {variance}"
    );
    assert!(deviation < 0.05 * variance, "4,000 keys do not tell the variance: {deviation} of {variance}");
}

fn norm(row: &[f64]) -> f64 {
    row.iter().map(|v| v * v).sum::<f64>().sqrt()
}

/// Proposition 4.1, `sum (1 - p) / p |row of dY|^2 |row of X|^2`: the transform that follows keeps norms, and nothing of the
/// weight is clamped.
#[test]
fn sampled_weight_gradient_is_unbiased_with_the_variance_of_proposition_4_1() {
    let isa = Isa::choose().unwrap();
    let mut layer = Layer::new(isa, [24, 6, 16], 4, 5);
    let w = values(6 * 16, &mut generator(1));
    layer.w = Quantized::new(isa, &w, [6, 16], Block::new(4, 16).unwrap(), Step::new(10.0).unwrap()).unwrap();
    let x = numbers(&layer.x);
    let rows = layer.split_rows();
    let scores: Vec<f64> =
        rows.iter().enumerate().map(|(i, row)| norm(row) * norm(&x[i % 24 * 16..][..16])).collect();
    let narrow: Vec<f32> = scores.iter().map(|&score| score as f32).collect();
    let chances = probabilities(&narrow, 24);
    assert!(chances.contains(&1.0) && chances.iter().any(|&p| p < 0.1), "{chances:?}");
    let terms = scores.iter().zip(&chances).filter(|(score, _)| **score > 0.0);
    let variance = terms.map(|(score, &p)| (1.0 / drawn_probability(p) - 1.0) * score * score).sum();
    let (exact, ..) = layer.weight_gradient(isa, Sampling::Off, Key::new(0));
    check_statistics(&exact, variance, |key| layer.weight_gradient(isa, Sampling::Sample, key).0);
}

/// Proposition B.2, `sum (1 - p) / p |row of dY|^2`, which holds for the gradient of the input where the codes of the weight are those of
/// the identity.
#[test]
fn sampled_input_gradient_is_unbiased_with_the_variance_of_proposition_b_2() {
    let isa = Isa::choose().unwrap();
    let mut layer = Layer::new(isa, [24, 8, 8], 1, 6);
    let identity: Vec<f32> = (0..64).map(|i| if i % 9 == 0 { 1.0 } else { 0.0 }).collect();
    layer.w = Quantized::new(isa, &identity, [8, 8], Block::NONE, Step::new(1.0).unwrap()).unwrap();
    let x = values(24 * 8, &mut generator(2));
    layer.x = Quantized::new(isa, &x, [24, 8], Block::NONE, Step::new(10.0).unwrap()).unwrap();
    let scores: Vec<f64> = layer.split_rows().iter().map(|row| norm(row)).collect();
    let narrow: Vec<f32> = scores.iter().map(|&score| score as f32).collect();
    let chances = probabilities(&narrow, 24);
    let terms = scores.iter().zip(&chances).filter(|(score, _)| **score > 0.0);
    let variance = terms.map(|(score, &p)| (1.0 / drawn_probability(p) - 1.0) * score * score).sum();
    let (exact, ..) = layer.input_gradient(isa, Sampling::Off, Key::new(0));
    check_statistics(&exact, variance, |key| layer.input_gradient(isa, Sampling::Sample, key).0);
}

/// The number of kept rows is a sum of independent draws with an expectation near N and a variance below N.
#[test]
fn half_of_the_rows_are_kept() {
    let isa = Isa::choose().unwrap();
    let layer = Layer::new(isa, [400, 8, 16], 1, 7);
    let (_, kept, _) = layer.weight_gradient(isa, Sampling::Sample, Key::new(1));
    let (_, most, _) = layer.weight_gradient(isa, Sampling::TopK, Key::new(1));
    // A sixteenth for the probabilities that are drawn with, and six deviations.
    assert!((f64::from(kept as u32) - 400.0).abs() <= 25.0 + 6.0 * 20.0, "{kept}");
    assert_eq!(most, 400);
}

#[test]
fn what_is_no_number_reaches_every_result() {
    for isa in Isa::available() {
        let mut layer = Layer::new(isa, [5, 6, 8], 2, 8);
        let mut x = vec![0.5; 40];
        x[7] = f32::NAN;
        let block = Block::new(2, 8).unwrap();
        layer.x = Quantized::new(isa, &x, [5, 8], block, Step::new(1.0).unwrap()).unwrap();
        let mut y = vec![0.0; 30];
        forward(isa, &layer.x, &layer.w, &mut y).unwrap();
        assert!(y.iter().all(|y| y.is_nan()), "{isa}");
        assert!(layer.weight_gradient(isa, Sampling::Sample, Key::new(0)).0.iter().any(|v| v.is_nan()));

        let mut layer = Layer::new(isa, [5, 6, 8], 2, 8);
        layer.dy = SplitGradient::new(isa, &[f32::INFINITY; 30], [5, 6], Key::new(0)).unwrap();
        for gradient in [
            layer.weight_gradient(isa, Sampling::Sample, Key::new(0)).0,
            layer.input_gradient(isa, Sampling::Sample, Key::new(0)).0,
        ] {
            assert!(gradient.iter().any(|v| v.is_nan()), "{isa}");
        }
    }
}

#[test]
fn zero_gradients_and_empty_layers() {
    for isa in Isa::available() {
        let mut layer = Layer::new(isa, [5, 6, 8], 2, 9);
        layer.dy = SplitGradient::new(isa, &[0.0; 30], [5, 6], Key::new(0)).unwrap();
        for sampling in [Sampling::Sample, Sampling::KeepNonzero, Sampling::TopK, Sampling::Off] {
            assert_eq!(layer.weight_gradient(isa, sampling, Key::new(0)).0, vec![0.0; 48], "{isa}");
            assert_eq!(layer.input_gradient(isa, sampling, Key::new(0)).0, vec![0.0; 40], "{isa}");
        }
        for shape in [[0, 3, 4], [3, 0, 4], [3, 4, 0]] {
            let layer = Layer::new(isa, shape, 1, 10);
            let mut y = vec![f32::NAN; shape[0] * shape[1]];
            forward(isa, &layer.x, &layer.w, &mut y).unwrap();
            assert!(y.iter().all(|&y| y == 0.0), "{isa}");
            let (dw, ..) = layer.weight_gradient(isa, Sampling::Sample, Key::new(0));
            let (dx, ..) = layer.input_gradient(isa, Sampling::Sample, Key::new(0));
            assert!(dw.iter().chain(&dx).all(|&v| v == 0.0), "{isa}");
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let isa = Isa::PORTABLE;
    let layer = Layer::new(isa, [5, 6, 8], 2, 11);
    let other = Layer::new(isa, [4, 6, 8], 4, 11);
    let mut y = vec![0.0; 30];
    assert_eq!(
        forward(isa, &layer.x, &other.w, &mut y),
        Err(Int4Error::Mismatch { what: "Hadamard blocks of the input and the weight", left: 2, right: 4 })
    );
    assert!(matches!(forward(isa, &layer.x, &layer.w, &mut y[1..]), Err(Int4Error::Length { .. })));
    let modes = (Sampling::Off, Key::new(0));
    assert_eq!(
        weight_gradient(isa, &other.dy, &layer.x, &layer.w, modes, &mut [0.0; 48]).unwrap_err(),
        Int4Error::Mismatch { what: "rows of the gradient and the input", left: 4, right: 5 }
    );
    assert!(input_gradient(isa, &layer.dy, &layer.x, &layer.w, modes, &mut [0.0; 39]).is_err());
}
