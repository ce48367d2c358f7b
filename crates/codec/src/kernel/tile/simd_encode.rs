//! Three passes over [`BLOCK`] tiles that stay in the first-level cache: magnitudes and extrema, transforms, codes.
//! Between them the parameters of all tiles of the block are computed side by side, one tile a lane.

#![expect(clippy::inline_always, reason = "kernels are compiled inside each instruction set's entry")]

use half::f16;

use super::{Encode, OUTLIER, RHO, aligned};
use crate::element::Element;
use crate::kernel::scan::Range;
use crate::kernel::{BLOCK, LANES, WHOLE, bits, hadamard};
use crate::simd::{Combine, PACK_ROOM, Simd, fold_rows};

/// Tiles of `tile` values: 16, 32, or a multiple of [`WHOLE`].
///
/// The codes of a block are written after the next one has been scanned: its parameters are at the end of long chains of
/// operations, and the scan is what there is to do meanwhile.
#[inline(always)]
pub(super) fn encode<S: Simd, E: Element>(simd: S, run: Encode<'_, E>, tile: usize, scale: f32) {
    let mut codes = run.codes;
    let mut lanes = Scanned { largest: [[simd.splat(0.0); 2]; BLOCK], range: [[simd.splat(0.0); 2]; BLOCK] };
    let (mut tiles, mut last_tiles) = aligned(run.scratch).split_at_mut(BLOCK * tile);
    let mut last = Parameters::NONE;
    let mut last_widths: &[u8] = &[];
    run.pivots.fill(0);
    let blocks = run.x.chunks(BLOCK * tile).zip(run.widths.chunks(BLOCK)).zip(run.pivots.chunks_mut(BLOCK));
    let wire = run.zeros.chunks_mut(BLOCK).zip(run.scales.chunks_mut(BLOCK));
    for (((x, widths), pivots), (zeros, scales)) in blocks.zip(wire) {
        scan(simd, x, tile, scale, tiles, &mut lanes);
        let outliers = find_outliers(simd, &lanes, run.outlier_ratio, pivots.len());
        codes = quantize_block(simd, last_tiles, tile, &last, last_widths, codes);
        let mut norms = [1.0; LANES];
        for i in bits_of(outliers.mask) {
            let values = &mut tiles[i * tile..][..tile];
            let pivot;
            (pivot, lanes.range[i]) = transform(simd, values, outliers.largest[i]);
            pivots[i] = pivot as u16;
            norms[i] = norm_behind(tile);
        }
        (last, last_widths) = (parameters(simd, &lanes.range, norms, widths), widths);
        for (i, (zero, scale)) in zeros.iter_mut().zip(scales).enumerate() {
            *zero = last.zero_bits[i].to_le_bytes();
            let flag = if outliers.mask >> i & 1 == 1 { OUTLIER } else { 0 };
            *scale = (last.scale_bits[i].to_bits() | flag).to_le_bytes();
        }
        (tiles, last_tiles) = (last_tiles, tiles);
    }
    quantize_block(simd, last_tiles, tile, &last, last_widths, codes);
}

/// What the values of a transformed tile in scratch are still to be multiplied with. The products are exact but below
/// `2^-126`, where they are too small to change a parameter or a code.
#[inline(always)]
fn norm_behind(tile: usize) -> f32 {
    if tile <= WHOLE { hadamard::exact_norm(tile) } else { 1.0 }
}

/// What the first pass knows of each tile of a block, in lanes that are still to be folded. Where there are fewer tiles,
/// the last rows are anything.
struct Scanned<F> {
    /// The two largest magnitudes.
    largest: [[F; 2]; BLOCK],
    /// Minimum and maximum.
    range: [[F; 2]; BLOCK],
}

/// Scales the values into `tiles` on the way.
#[inline(always)]
fn scan<S: Simd, E: Element>(
    simd: S,
    x: &[E],
    tile: usize,
    scale: f32,
    tiles: &mut [f32],
    scanned: &mut Scanned<S::Floats>,
) {
    let scale = simd.splat(scale);
    for (i, (x, out)) in x.chunks_exact(tile).zip(tiles.chunks_exact_mut(tile)).enumerate() {
        let (x, out) = (x.as_chunks::<LANES>().0, out.as_chunks_mut::<LANES>().0);
        let mut parts = x.chunks(WHOLE / LANES).zip(out.chunks_mut(WHOLE / LANES));
        let (x, out) = parts.next().expect("a tile has values");
        let (mut largest, mut range) = scan_part(simd, x, scale, out);
        for (x, out) in parts {
            let more = scan_part(simd, x, scale, out);
            largest = Largest::combine(simd, largest, more.0);
            range = Range::combine(simd, range, more.1);
        }
        (scanned.largest[i], scanned.range[i]) = (largest, range);
    }
}

/// The two largest magnitudes and the extrema of one, two or four vectors, lane by lane.
#[inline(always)]
fn scan_part<S: Simd, E: Element>(
    simd: S,
    x: &[[E; LANES]],
    scale: S::Floats,
    out: &mut [[f32; LANES]],
) -> ([S::Floats; 2], [S::Floats; 2]) {
    let mut largest = [[simd.splat(0.0); 2]; 4];
    let mut range = [[simd.splat(0.0); 2]; 4];
    for (i, (x, out)) in x.iter().zip(out).enumerate() {
        let y = simd.mul(E::load(simd, x), scale);
        simd.store(y, out);
        (largest[i], range[i]) = ([simd.abs(y), simd.splat(0.0)], [y, y]);
    }
    let mut width = x.len();
    while width > 1 {
        for i in 0..width / 2 {
            let second = if width == x.len() {
                simd.min(largest[2 * i][0], largest[2 * i + 1][0])
            } else {
                Largest::combine(simd, largest[2 * i], largest[2 * i + 1])[1]
            };
            largest[i] = [simd.max(largest[2 * i][0], largest[2 * i + 1][0]), second];
            range[i] = Range::combine(simd, range[2 * i], range[2 * i + 1]);
        }
        width /= 2;
    }
    (largest[0], range[0])
}

/// The two largest of four magnitudes, of which each pair is in order.
struct Largest;

impl Combine<2> for Largest {
    #[inline(always)]
    fn combine<S: Simd>(simd: S, a: [S::Floats; 2], b: [S::Floats; 2]) -> [S::Floats; 2] {
        [simd.max(a[0], b[0]), simd.max(simd.min(a[0], b[0]), simd.max(a[1], b[1]))]
    }
}

struct Outliers {
    /// Bit `i` stands for tile `i`.
    mask: u16,
    /// The largest magnitude of each tile.
    largest: [f32; LANES],
}

#[inline(always)]
fn find_outliers<S: Simd>(simd: S, scanned: &Scanned<S::Floats>, ratio: f32, tiles: usize) -> Outliers {
    let [first, second] = fold_rows::<Largest, _, 2>(simd, &scanned.largest);
    let bound = simd.mul(simd.splat(ratio), simd.add(second, simd.splat(RHO)));
    let mut largest = [0.0; LANES];
    simd.store(first, &mut largest);
    let present = ((1_u32 << tiles) - 1) as u16;
    Outliers { mask: simd.greater(first, bound) & present, largest }
}

/// Swaps the first value of this magnitude with the first of all and transforms, but for [`norm_behind`]. Returns where
/// the value was and the lanes of minimum and maximum.
#[inline(always)]
fn transform<S: Simd>(simd: S, tile: &mut [f32], magnitude: f32) -> (usize, [S::Floats; 2]) {
    if tile.len() > WHOLE {
        let pivot = find(simd, tile, magnitude);
        tile.swap(0, pivot);
        hadamard::transform_simd(simd, tile);
        return (pivot, range(simd, tile));
    }
    let mut values = [simd.splat(0.0); 4];
    let places = places(simd, tile, magnitude);
    let (first, pivot) = (tile[0], places.trailing_zeros() as usize);
    let lowest = places & places.wrapping_neg();
    for (i, (value, vector)) in values.iter_mut().zip(tile.as_chunks().0).enumerate() {
        *value = simd.replace(simd.load(vector), (lowest >> (i * LANES)) as u16, first);
    }
    values[0] = simd.replace(values[0], 1, tile[pivot]);
    let values = hadamard::transform_registers(simd, values, tile.len());
    for (y, vector) in values.into_iter().zip(tile.as_chunks_mut().0) {
        simd.store(y, vector);
    }
    (pivot, range(simd, tile))
}

/// The first place of a magnitude that is there.
#[inline(always)]
fn find<S: Simd>(simd: S, tile: &[f32], magnitude: f32) -> usize {
    for (i, chunk) in tile.as_chunks::<WHOLE>().0.iter().enumerate() {
        let places = places(simd, chunk, magnitude);
        if places != 0 {
            return i * WHOLE + places.trailing_zeros() as usize;
        }
    }
    unreachable!("the maximum is one of the values")
}

/// Bit `i` says whether value `i` of up to 64 has this magnitude.
#[inline(always)]
fn places<S: Simd>(simd: S, values: &[f32], magnitude: f32) -> u64 {
    let magnitude = simd.splat(magnitude);
    let mut places = 0;
    for (i, vector) in values.as_chunks().0.iter().enumerate() {
        let equal = simd.equal(simd.abs(simd.load(vector)), magnitude);
        places |= u64::from(equal) << (i * LANES);
    }
    places
}

#[inline(always)]
fn range<S: Simd>(simd: S, tile: &[f32]) -> [S::Floats; 2] {
    let vectors = tile.as_chunks().0;
    let mut range = [simd.load(&vectors[0]); 2];
    for y in &vectors[1..] {
        let y = simd.load(y);
        range = [simd.min(range[0], y), simd.max(range[1], y)];
    }
    range
}

/// The parameters of a block's tiles.
struct Parameters {
    zero_bits: [f16; LANES],
    scale_bits: [f16; LANES],
    /// As in [`norm_behind`].
    norm: [f32; LANES],
    minus_zero: [f32; LANES],
    per_step: [f32; LANES],
}

impl Parameters {
    const NONE: Self = Self {
        zero_bits: [f16::ZERO; LANES],
        scale_bits: [f16::ZERO; LANES],
        norm: [1.0; LANES],
        minus_zero: [0.0; LANES],
        per_step: [0.0; LANES],
    };
}

#[inline(always)]
fn parameters<S: Simd>(
    simd: S,
    ranges: &[[S::Floats; 2]; BLOCK],
    norm: [f32; LANES],
    widths: &[u8],
) -> Parameters {
    let [low, high] = fold_rows::<Range, _, 2>(simd, ranges);
    let (low, high) = (simd.mul(low, simd.load(&norm)), simd.mul(high, simd.load(&norm)));
    let mut largest = [1.0; LANES];
    for (largest, width) in largest.iter_mut().zip(widths) {
        *largest = ((1_u32 << width) - 1) as f32;
    }
    let mut of = Parameters { norm, ..Parameters::NONE };
    simd.store_f16(simd.add(low, simd.splat(0.0)), &mut of.zero_bits);
    let zero = simd.load_f16(&of.zero_bits);
    simd.store(simd.sub(simd.splat(0.0), zero), &mut of.minus_zero);
    let extent = simd.max(simd.sub(high, zero), simd.splat(0.0));
    simd.store_f16(simd.div(extent, simd.load(&largest)), &mut of.scale_bits);
    simd.store(simd.div(simd.splat(1.0), simd.load_f16(&of.scale_bits)), &mut of.per_step);
    for per_step in &mut of.per_step {
        *per_step = if *per_step == f32::INFINITY { 0.0 } else { *per_step };
    }
    of
}

/// Appends the codes of as many tiles as there are widths and returns what of `out` is behind them.
#[inline(always)]
fn quantize_block<'a, S: Simd>(
    simd: S,
    tiles: &[f32],
    tile: usize,
    parameters: &Parameters,
    widths: &[u8],
    mut out: &'a mut [u8],
) -> &'a mut [u8] {
    for (i, (tile, width)) in tiles.chunks_exact(tile).zip(widths).enumerate() {
        let affine = [parameters.norm[i], parameters.minus_zero[i], parameters.per_step[i]];
        out = quantize(simd, tile, affine, u32::from(*width), out);
    }
    out
}

/// Appends the codes of one tile, of `(y * norm + minus_zero) * per_step`, and returns what of `out` is behind them.
///
/// Codes are clamped after they are rounded, which is the same as the other way round. Before, their magnitude is
/// below `2^30`: a value is below `2^15`, a step at least `2^-24` and at least half of the exact one, or 0.
#[inline(always)]
fn quantize<'a, S: Simd>(
    simd: S,
    tile: &[f32],
    [norm, minus_zero, per_step]: [f32; 3],
    width: u32,
    mut out: &'a mut [u8],
) -> &'a mut [u8] {
    let (norm, minus_zero, per_step) = (simd.splat(norm), simd.splat(minus_zero), simd.splat(per_step));
    for chunk in tile.as_chunks::<LANES>().0.chunks(WHOLE / LANES) {
        let mut steps = [minus_zero; 4];
        for (steps, y) in steps.iter_mut().zip(chunk) {
            *steps = simd.mul(simd.mul_add(simd.load(y), norm, minus_zero), per_step);
        }
        let codes = simd.clamp_codes(width, simd.round_to_codes(steps, 0));
        let len = bits::packed_len(chunk.len() * LANES, width);
        if out.len() >= PACK_ROOM {
            simd.pack(width, codes, out);
        } else {
            let mut room = [0; PACK_ROOM];
            simd.pack(width, codes, &mut room);
            out[..len].copy_from_slice(&room[..len]);
        }
        out = &mut out[len..];
    }
    out
}

/// The places of the set bits, lowest first.
fn bits_of(mut mask: u16) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lowest = (mask != 0).then(|| mask.trailing_zeros() as usize);
        mask &= mask.wrapping_sub(1);
        lowest
    })
}
