//! SwiGLU (Shazeer, 2020) and GPT-2's GELU (Hendrycks and Gimpel, 2016, the tanh form), element by element.

use pulp::Simd;

use super::lanes::{Lanewise, sigmoid};

/// `silu(gate) up`, `silu(x) = x sigmoid(x)`.
#[derive(Clone, Copy)]
pub(crate) struct SwiGlu;

impl Lanewise<2, 1> for SwiGlu {
    #[inline(always)]
    fn apply<S: Simd>(self, simd: S, [gate, up]: [S::f32s; 2], _: [S::f32s; 1]) -> [S::f32s; 1] {
        [simd.mul_f32s(simd.mul_f32s(gate, sigmoid(simd, gate)), up)]
    }
}

/// From `gate` and `up`; the upstream gradient becomes that of `up`, the second output that of `gate`.
#[derive(Clone, Copy)]
pub(crate) struct SwiGluBackward;

impl Lanewise<2, 2> for SwiGluBackward {
    #[inline(always)]
    fn apply<S: Simd>(self, simd: S, [gate, up]: [S::f32s; 2], [g, _]: [S::f32s; 2]) -> [S::f32s; 2] {
        let sigmoid = sigmoid(simd, gate);
        let silu = simd.mul_f32s(gate, sigmoid);
        // silu' = sigmoid + silu (1 - sigmoid)
        let slope = simd.mul_add_e_f32s(silu, simd.sub_f32s(simd.splat_f32s(1.0), sigmoid), sigmoid);
        [simd.mul_f32s(g, silu), simd.mul_f32s(simd.mul_f32s(g, up), slope)]
    }
}

/// `2 sqrt(2 / pi)`: the tanh form is `x sigmoid(SCALE (x + CUBIC x^3))`.
const SCALE: f32 = 1.595_769;
const CUBIC: f32 = 0.044_715;

/// `0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))`.
#[derive(Clone, Copy)]
pub(crate) struct Gelu;

impl Lanewise<1, 1> for Gelu {
    #[inline(always)]
    fn apply<S: Simd>(self, simd: S, [x]: [S::f32s; 1], _: [S::f32s; 1]) -> [S::f32s; 1] {
        [simd.mul_f32s(x, gelu_gate(simd, x, simd.mul_f32s(x, x)))]
    }
}

/// From `x`; the upstream gradient becomes that of `x`.
#[derive(Clone, Copy)]
pub(crate) struct GeluBackward;

impl Lanewise<1, 1> for GeluBackward {
    #[inline(always)]
    fn apply<S: Simd>(self, simd: S, [x]: [S::f32s; 1], [g]: [S::f32s; 1]) -> [S::f32s; 1] {
        let square = simd.mul_f32s(x, x);
        let gate = gelu_gate(simd, x, square);
        // gelu' = gate + x gate (1 - gate) SCALE (1 + 3 CUBIC x^2). Where the gate is 0 or 1 the second term is 0, even
        // if the square is infinite.
        let inner = simd.mul_add_e_f32s(square, simd.splat_f32s(3.0 * CUBIC * SCALE), simd.splat_f32s(SCALE));
        let bend = simd.mul_f32s(gate, simd.sub_f32s(simd.splat_f32s(1.0), gate));
        let second = simd.mul_f32s(simd.mul_f32s(x, bend), inner);
        let flat = simd.equal_f32s(bend, simd.splat_f32s(0.0));
        let second = simd.select_f32s(flat, simd.splat_f32s(0.0), second);
        [simd.mul_f32s(g, simd.add_f32s(gate, second))]
    }
}

#[inline(always)]
fn gelu_gate<S: Simd>(simd: S, x: S::f32s, square: S::f32s) -> S::f32s {
    let inner = simd.mul_add_e_f32s(square, simd.splat_f32s(CUBIC * SCALE), simd.splat_f32s(SCALE));
    sigmoid(simd, simd.mul_f32s(x, inner))
}
