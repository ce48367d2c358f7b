//! Each operator against its composition of Burn's operations: `cargo bench -p thinwire-ops [-- --json] [-- NAME]`.
//!
//! Forward and backward pass of one layer's shapes, both versions in turn, of each the fastest of the rounds.

#![expect(clippy::print_stdout, reason = "a program that prints what it measured")]

mod composed;

use std::env;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use burn::optim::{AdamWConfig, Optimizer};
use burn::tensor::{Device, Distribution, Int, Tensor, TensorData};
use thinwire_ops::{
    AdamWStep, AttentionShape, Moments, RotaryTable, WeightLayout, adamw, attention, cross_entropy,
    gelu_tanh, layer_norm, linear, rms_norm, rotary, swiglu,
};

const TOKENS: usize = 256;
const EPS: f32 = 1e-5;
const ROUNDS: usize = 9;

/// The shapes of a model's layers.
#[derive(Clone, Copy)]
struct Model {
    name: &'static str,
    samples: usize,
    hidden: usize,
    ffn: usize,
    heads: [usize; 2],
    vocab: usize,
}

const MODELS: [Model; 3] = [
    Model { name: "SmolLM2-135M", samples: 1, hidden: 576, ffn: 1536, heads: [9, 3], vocab: 49_152 },
    Model { name: "SmolLM2-135M", samples: 4, hidden: 576, ffn: 1536, heads: [9, 3], vocab: 49_152 },
    Model { name: "quickstart", samples: 1, hidden: 256, ffn: 704, heads: [4, 2], vocab: 256 },
];

struct Report {
    json: bool,
    only: Option<String>,
    model: Model,
}

impl Report {
    /// Times both versions in turn and prints the fastest rounds, in milliseconds.
    fn compare(&self, operator: &str, mut fused: impl FnMut(), mut composed: impl FnMut()) {
        if self.only.as_ref().is_some_and(|only| !operator.contains(only)) {
            return;
        }
        let mut times = [const { Vec::new() }; 2];
        for round in 0..=ROUNDS {
            for (times, version) in times.iter_mut().zip([&mut fused as &mut dyn FnMut(), &mut composed]) {
                let begin = Instant::now();
                version();
                if round > 0 {
                    times.push(begin.elapsed().as_secs_f64() * 1e3);
                }
            }
        }
        let [fused, composed] = times.map(|times| times.into_iter().fold(f64::INFINITY, f64::min));
        let (Model { name, samples, .. }, ratio) = (self.model, composed / fused);
        if self.json {
            let line = serde_json::json!({
                "model": name, "samples": samples, "operator": operator, "fused_ms": fused, "composed_ms": composed,
            });
            println!("{line}");
        } else {
            println!("{name:13} {samples}  {operator:22} {fused:9.3} ms {composed:9.3} ms {ratio:7.1} x");
        }
    }

    /// The forward and backward pass of one operator over fresh leaves, the gradient's seed given.
    fn passes<const N: usize>(
        &self,
        operator: &str,
        shapes: [[usize; 2]; N],
        fused: impl Fn(&[Tensor<2>; N]) -> Tensor<2>,
        composed: impl Fn(&[Tensor<2>; N]) -> Tensor<2>,
    ) {
        let inner = Device::flex();
        let device = inner.clone().autodiff();
        let values = shapes.map(|shape| Tensor::<2>::random(shape, Distribution::Default, &inner));
        let run = |formula: &dyn Fn(&[Tensor<2>; N]) -> Tensor<2>| {
            let leaves = values.each_ref().map(|x| Tensor::from_inner(x.clone()).require_grad());
            let y = formula(&leaves);
            let seed = Tensor::<2>::ones(y.dims(), &device);
            black_box((y * seed).sum().backward());
        };
        self.compare(operator, || run(&fused), || run(&composed));
    }
}

fn flat(x: &Tensor<2>) -> Tensor<1> {
    x.clone().flatten(0, 1)
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).filter(|a| a != "--bench").collect();
    let json = arguments.iter().any(|a| a == "--json");
    let only = arguments.into_iter().find(|a| !a.starts_with("--"));
    if !json {
        println!("forward and backward, {} threads: fused, composed", rayon::current_num_threads());
    }
    for model in MODELS {
        let report = Report { json, only: only.clone(), model };
        elementwise(&report);
        norms(&report);
        heads(&report);
        products(&report);
        optimizer(&report);
    }
}

fn elementwise(report: &Report) {
    let Model { samples, ffn, .. } = report.model;
    let shape = [samples * TOKENS, ffn];
    report.passes(
        "swiglu",
        [shape; 2],
        |[gate, up]| swiglu(gate.clone(), up.clone()),
        |[gate, up]| composed::swiglu(gate.clone(), up.clone()),
    );
    report.passes("gelu_tanh", [shape], |[x]| gelu_tanh(x.clone()), |[x]| composed::gelu_tanh(x.clone()));
}

fn norms(report: &Report) {
    let Model { samples, hidden, .. } = report.model;
    let (x, w) = ([samples * TOKENS, hidden], [1, hidden]);
    report.passes(
        "rms_norm",
        [x, w],
        |[x, w]| rms_norm(x.clone(), flat(w), EPS),
        |[x, w]| composed::rms_norm(x.clone(), flat(w), EPS),
    );
    report.passes(
        "layer_norm",
        [x, w, w],
        |[x, w, b]| layer_norm(x.clone(), flat(w), flat(b), EPS),
        |[x, w, b]| composed::layer_norm(x.clone(), flat(w), flat(b), EPS),
    );
}

fn heads(report: &Report) {
    let Model { samples, heads: [query_heads, kv_heads], .. } = report.model;
    let head_dim = 64;
    let shape = AttentionShape { samples, queries: TOKENS, keys: TOKENS, query_heads, kv_heads, head_dim };
    let (q, kv) = ([samples * TOKENS, query_heads * head_dim], [samples * TOKENS, kv_heads * head_dim]);
    report.passes(
        "attention",
        [q, kv, kv],
        |inputs| attention(inputs.clone(), shape),
        |inputs| composed::attention(inputs.clone(), shape),
    );
    let frequencies: Vec<f64> = (0..head_dim / 2).map(|j| 10_000f64.powf(-(j as f64) / 32.0)).collect();
    let table = Arc::new(RotaryTable::new(&frequencies, TOKENS, 1.0));
    let device = Device::flex().autodiff();
    let angles = [f64::cos, f64::sin].map(|f| {
        let values: Vec<f32> =
            (0..TOKENS * head_dim / 2).map(|i| f((i / 32) as f64 * frequencies[i % 32]) as f32).collect();
        Tensor::<4>::from_data(TensorData::new(values, [1, 1, TOKENS, head_dim / 2]), &device)
    });
    report.passes(
        "rotary",
        [q],
        |[x]| rotary(x.clone(), &table, TOKENS, 0),
        |[x]| composed::rotary(x.clone(), angles.clone(), [samples, TOKENS]),
    );
}

fn products(report: &Report) {
    let Model { samples, hidden, ffn, vocab, .. } = report.model;
    let rows = samples * TOKENS;
    for (operator, to) in [("linear hidden x ffn", ffn), ("linear hidden x vocab", vocab)] {
        report.passes(
            operator,
            [[rows, hidden], [to, hidden]],
            |[x, w]| linear(x.clone(), w.clone(), None, WeightLayout::OutIn, None),
            |[x, w]| x.clone().matmul(w.clone().transpose()),
        );
    }
    let ids: Vec<i64> = (0..rows).map(|i| i64::try_from(i * 7919 % vocab).expect("small")).collect();
    let targets = Tensor::<1, Int>::from_data(TensorData::new(ids, [rows]), &Device::flex().autodiff());
    report.passes(
        "cross_entropy",
        [[rows, vocab]],
        |[x]| cross_entropy(x.clone(), targets.clone()).reshape([rows, 1]),
        |[x]| composed::cross_entropy(x.clone(), targets.clone()).reshape([rows, 1]),
    );
}

fn optimizer(report: &Report) {
    let Model { hidden, vocab, .. } = report.model;
    let device = Device::flex();
    let random = || Tensor::<1>::random([hidden * vocab], Distribution::Default, &device);
    let gradient = random();
    let mut fused = random();
    let mut moments = Moments { first: fused.zeros_like(), second: fused.zeros_like() };
    let mut composed = (random(), None);
    let rule = AdamWConfig::new().with_weight_decay(0.1).build();
    let mut updates = 0;
    report.compare(
        "adamw hidden x vocab",
        || {
            updates += 1;
            let step = AdamWStep {
                rate: 1e-4,
                beta1: 0.9,
                beta2: 0.999,
                epsilon: 1e-5,
                weight_decay: 0.1,
                clip: 1.0,
                updates,
            };
            adamw(&mut fused, gradient.clone(), &mut moments, &step);
        },
        || composed = rule.step(1e-4, composed.0.clone(), gradient.clone(), composed.1.take()),
    );
}
