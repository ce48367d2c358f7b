#![expect(clippy::inline_always, reason = "kernels are compiled inside each instruction set's entry")]

use super::root;
use crate::kernel::{LANES, WHOLE};
use crate::simd::Simd;

/// Transforms a tile of a multiple of [`WHOLE`] values in place.
#[inline(always)]
pub(in crate::kernel) fn transform<S: Simd>(simd: S, tile: &mut [f32]) {
    let root = root(tile.len());
    let mut stride = tile.len() / 2;
    while stride >= WHOLE {
        for pair in tile.chunks_exact_mut(2 * stride) {
            let (first, second) = pair.split_at_mut(stride);
            for (a, b) in first.as_chunks_mut().0.iter_mut().zip(second.as_chunks_mut().0) {
                let (first, second) = (simd.load(a), simd.load(b));
                simd.store(simd.add(first, second), a);
                simd.store(simd.sub(first, second), b);
            }
        }
        stride /= 2;
    }
    for chunk in tile.as_chunks_mut::<WHOLE>().0 {
        let vectors = chunk.as_chunks_mut::<LANES>().0;
        let [a, b] = [simd.load(&vectors[0]), simd.load(&vectors[1])];
        let [c, d] = [simd.load(&vectors[2]), simd.load(&vectors[3])];
        for (v, out) in small_strides(simd, [a, b, c, d]).into_iter().zip(vectors) {
            simd.store(divide(simd, v, root), out);
        }
    }
}

/// The transform of a tile of 16, 32 or 64 values in the first registers, which the caller has multiplied or will multiply
/// by [`exact_norm`].
#[inline(always)]
pub(in crate::kernel) fn transform_registers<S: Simd>(
    simd: S,
    mut v: [S::Floats; 4],
    len: usize,
) -> [S::Floats; 4] {
    let mut stride = len / LANES / 2;
    while stride > 0 {
        for i in 0..len / LANES {
            if i & stride == 0 {
                (v[i], v[i + stride]) = (simd.add(v[i], v[i + stride]), simd.sub(v[i], v[i + stride]));
            }
        }
        stride /= 2;
    }
    for v in &mut v[..len / LANES] {
        *v = simd.butterfly(*v);
        if exact_norm(len) == 1.0 {
            *v = simd.div(*v, simd.splat(root(len)));
        }
    }
    v
}

/// `1 / sqrt(len)` if it is a power of two, so that it may be multiplied at any place, and 1 otherwise.
#[inline(always)]
pub(in crate::kernel) fn exact_norm(len: usize) -> f32 {
    let root = root(len);
    if is_power_of_two(root) { 1.0 / root } else { 1.0 }
}

/// The strides below [`WHOLE`].
#[inline(always)]
fn small_strides<S: Simd>(simd: S, [a, b, c, d]: [S::Floats; 4]) -> [S::Floats; 4] {
    let [a, b, c, d] = [simd.add(a, c), simd.add(b, d), simd.sub(a, c), simd.sub(b, d)];
    let mut tile = [simd.add(a, b), simd.sub(a, b), simd.add(c, d), simd.sub(c, d)];
    for v in &mut tile {
        *v = simd.butterfly(*v);
    }
    tile
}

/// `v / root`. The reciprocal of a power of two is exact, and a product much faster than a quotient.
#[inline(always)]
fn divide<S: Simd>(simd: S, v: S::Floats, root: f32) -> S::Floats {
    if is_power_of_two(root) { simd.mul(v, simd.splat(1.0 / root)) } else { simd.div(v, simd.splat(root)) }
}

#[inline(always)]
fn is_power_of_two(root: f32) -> bool {
    root.to_bits().trailing_zeros() >= f32::MANTISSA_DIGITS - 1
}
