//! What each unit costs, measured by running it.

use std::time::{Duration, Instant};

use burn::tensor::{Device, Int, Tensor, TensorData};

use super::median::median;
use crate::config::{Dtype, StageUnits, Unit};
use crate::model::{Activation, Architecture, GradientSums, Init, Parameter, Part, token_losses};

/// Measured runs of a unit, after one that warms it up.
const RUNS: usize = 5;

/// No further run of a unit starts when its runs have taken this long.
const BUDGET: Duration = Duration::from_secs(2);

/// Cost of one unit for one micro-batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnitCost {
    /// The unit.
    pub unit: Unit,
    /// Time of a forward pass, for the head with its loss, in seconds.
    pub forward: f64,
    /// Time of a backward pass, in seconds.
    pub backward: f64,
    /// Number of values in its parameters.
    pub parameters: usize,
    /// Values in the activation that crosses a boundary behind it; 0 behind the head.
    pub boundary: usize,
}

impl UnitCost {
    /// Time of both passes, in seconds.
    pub fn seconds(&self) -> f64 {
        self.forward + self.backward
    }
}

/// Runs the units of `arch` forward and backward in `dtype` on `device` (without autodiff) with micro-batches of `samples`
/// sequences of `tokens` tokens, and gives the median time of each, in model order.
///
/// Blocks are all alike, so one stands for all. One unit at a time is in memory.
///
/// # Panics
/// When `samples` or `tokens` is 0, `tokens` exceeds the model's context, or the device fails.
pub fn measure(
    arch: &Architecture,
    samples: usize,
    tokens: usize,
    dtype: Dtype,
    device: &Device,
) -> Vec<UnitCost> {
    assert!(samples > 0 && (1..=arch.context).contains(&tokens), "[{samples}, {tokens}] is no micro-batch");
    let bench = Bench { arch, samples, tokens, dtype, device };
    let embed = bench.measure(Unit::Embed);
    let block = bench.measure(Unit::Block(0));
    let head = bench.measure(Unit::Head);
    let units = StageUnits { embed: true, blocks: 0..arch.layers, head: true };
    let cost = |unit| match unit {
        Unit::Embed => embed,
        Unit::Block(_) => UnitCost { unit, ..block },
        Unit::Head => head,
    };
    units.iter().map(cost).collect()
}

struct Bench<'a> {
    arch: &'a Architecture,
    samples: usize,
    tokens: usize,
    dtype: Dtype,
    device: &'a Device,
}

impl Bench<'_> {
    fn measure(&self, unit: Unit) -> UnitCost {
        let part = Part::new(self.arch, &[unit], 0, self.device).in_dtype(self.dtype);
        let sums = part.params().gradient_sums();
        let start = Instant::now();
        self.run(&part, &sums);
        let mut runs = vec![self.run(&part, &sums)];
        while runs.len() < RUNS && start.elapsed() < BUDGET {
            runs.push(self.run(&part, &sums));
        }
        let boundary = match unit {
            Unit::Head => 0,
            _ => self.samples * self.tokens * self.arch.hidden,
        };
        UnitCost {
            unit,
            forward: median(runs.iter().map(|run| run.0)),
            backward: median(runs.iter().map(|run| run.1)),
            parameters: part.params().iter().map(Parameter::len).sum(),
            boundary,
        }
    }

    /// Seconds of one forward and one backward pass.
    fn run(&self, part: &Part, sums: &GradientSums) -> (f64, f64) {
        let x = if part.has_embedding() {
            Activation::Ids(self.ids())
        } else {
            Activation::Hidden(self.hidden().require_grad())
        };
        let leaves = part.params().leaves(sums);
        let targets = self.ids().reshape([self.samples * self.tokens]);
        let upstream = self.hidden();
        self.sync();

        let start = Instant::now();
        let (forward, mut gradients) = match part.forward(&leaves, x.clone()) {
            Activation::Logits(logits) => {
                let loss = token_losses(logits, targets).mean();
                (self.seconds_since(start), loss.backward())
            }
            Activation::Hidden(_) if part.has_embedding() && !part.trains() => {
                return (self.seconds_since(start), 0.0);
            }
            Activation::Hidden(h) => (self.seconds_since(start), (h * upstream).sum().backward()),
            Activation::Ids(_) => unreachable!("no unit gives token ids"),
        };
        leaves.add_gradients(&mut gradients);
        sums.take();
        if let Activation::Hidden(h) = x {
            h.grad_remove(&mut gradients);
        }
        (forward, self.seconds_since(start) - forward)
    }

    /// Token ids `[samples, tokens]` that are spread over the vocabulary.
    fn ids(&self) -> Tensor<2, Int> {
        let ids =
            (0..self.samples * self.tokens).map(|i| i64::from((i * 7919 % self.arch.vocab) as u32)).collect();
        Tensor::from_data(TensorData::new(ids, [self.samples, self.tokens]), &self.device.clone().autodiff())
    }

    /// A residual stream, or its gradient: `[samples, tokens, hidden]`.
    fn hidden(&self) -> Tensor<3> {
        let shape = [self.samples, self.tokens, self.arch.hidden];
        let values = Init::Normal(1.0).values(0, "hidden", shape.iter().product());
        self.dtype.cast(Tensor::from_data(TensorData::new(values, shape), &self.device.clone().autodiff()))
    }

    fn seconds_since(&self, start: Instant) -> f64 {
        self.sync();
        start.elapsed().as_secs_f64()
    }

    fn sync(&self) {
        self.device.sync().expect("the device finishes what it was given");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Family;
    use crate::model::Lora;

    fn arch(family: Family, layers: usize) -> Architecture {
        Architecture {
            family,
            layers,
            hidden: 32,
            heads: 4,
            head_dim: None,
            kv_heads: 4,
            ffn: 64,
            context: 16,
            vocab: 61,
            tied: false,
            norm_eps: 1e-5,
            rope_theta: 10_000.0,
            rope_scaling: None,
            lora: None,
        }
    }

    #[test]
    fn every_unit_of_either_family_is_measured() {
        for (family, dtype) in [(Family::Gpt2, Dtype::F32), (Family::Llama, Dtype::Bf16)] {
            let arch = arch(family, 3);
            let device = Device::flex();
            let costs = measure(&arch, 2, 9, dtype, &device);
            let whole: Vec<Unit> = StageUnits { embed: true, blocks: 0..3, head: true }.iter().collect();
            assert_eq!(costs.iter().map(|cost| cost.unit).collect::<Vec<_>>(), whole);
            for cost in &costs {
                assert!(cost.forward > 0.0 && cost.backward > 0.0, "{cost:?}");
                assert_eq!(cost.boundary, if cost.unit == Unit::Head { 0 } else { 2 * 9 * 32 });
            }
            let parameters: usize =
                Part::new(&arch, &whole, 0, &device).params().iter().map(Parameter::len).sum();
            assert_eq!(costs.iter().map(|cost| cost.parameters).sum::<usize>(), parameters);
        }
    }

    #[test]
    fn adapters_are_measured() {
        let lora = Lora { rank: 2, alpha: 4.0, targets: vec!["q_proj".into(), "up_proj".into()] };
        let arch = Architecture { lora: Some(lora), ..arch(Family::Llama, 1) };
        let [embed, block, head] = measure(&arch, 2, 9, Dtype::F32, &Device::flex())[..] else {
            panic!("three units")
        };
        assert_eq!(embed.backward, 0.0, "nothing is trained there");
        assert!(block.backward > 0.0 && head.backward > 0.0);
    }

    #[test]
    fn a_larger_block_costs_more() {
        let small = arch(Family::Llama, 1);
        let large = Architecture { hidden: 256, ffn: 1024, ..small.clone() };
        let block = |arch| measure(arch, 2, 16, Dtype::F32, &Device::flex())[1].seconds();
        assert!(block(&large) > block(&small));
    }
}
