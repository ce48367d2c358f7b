//! TAH-Quant and the message scale by their definitions: `f64`, sorting, matrix products, no speed.

use thinwire_codec::{Selection, Shape, TahSettings};

use super::tah_message::tiling;

/// What the definitions say about a tensor.
pub(crate) struct Tah {
    /// `k` of the message scale.
    pub(crate) exponent: i32,
    /// All quantization tiles, sample after sample.
    pub(crate) tiles: Vec<Tile>,
}

#[derive(Clone)]
pub(crate) struct Tile {
    pub(crate) width: u32,
    /// How far the entropy is from that of the nearest tile with the other width.
    pub(crate) entropy_margin: f64,
    pub(crate) ratio: f64,
    /// How far the ratio is from `tau`.
    pub(crate) ratio_margin: f64,
    pub(crate) outlier: bool,
    pub(crate) pivot: usize,
    /// The scaled values, transformed if the tile has an outlier.
    pub(crate) values: Vec<f64>,
}

const SMALL: f64 = 1e-12;

pub(crate) fn exponent(x: &[f32]) -> i32 {
    let max = x.iter().fold(0.0_f64, |max, &x| max.max(f64::from(x).abs()));
    if max == 0.0 {
        return 0;
    }
    let mut floor_log2 = -149;
    while 2_f64.powi(floor_log2 + 1) <= max {
        floor_log2 += 1;
    }
    floor_log2 - 8
}

pub(crate) fn tah(settings: &TahSettings, shape: Shape, x: &[f32]) -> Tah {
    let exponent = exponent(x);
    let scaled: Vec<f64> = x.iter().map(|&x| f64::from(x) * 2_f64.powi(-exponent)).collect();
    let sample = shape.tokens * shape.channels;
    let tiles = scaled.chunks_exact(sample).flat_map(|x| tah_sample(settings, shape.channels, x)).collect();
    Tah { exponent, tiles }
}

fn tah_sample(settings: &TahSettings, channels: usize, x: &[f64]) -> Vec<Tile> {
    let (_, per_allocation, _) = tiling(settings, channels);
    let allocation_len = per_allocation * settings.tile;
    let allocations: Vec<&[f64]> =
        x.chunks_exact(channels).flat_map(|token| token.chunks(allocation_len)).collect();
    let entropies: Vec<f64> = allocations.iter().map(|values| entropy(values)).collect();

    let mut order: Vec<usize> = (0..entropies.len()).collect();
    order.sort_by(|&a, &b| entropies[b].total_cmp(&entropies[a])); // stable: ties keep the lower index first
    let high = (settings.high_share * entropies.len() as f64).round_ties_even() as usize;

    let mut tiles = Vec::new();
    for (i, values) in allocations.iter().enumerate() {
        let is_high = match settings.selection {
            Selection::Entropy => order[..high].contains(&i),
            Selection::Even => (i + 1) * high / allocations.len() > i * high / allocations.len(),
        };
        let other = if is_high { order.get(high) } else { high.checked_sub(1).map(|last| &order[last]) };
        let other = other.filter(|_| settings.selection == Selection::Entropy);
        let margin = other.map_or(f64::INFINITY, |&other| (entropies[other] - entropies[i]).abs());
        for values in values.chunks(settings.tile) {
            let mut tile = tile(settings, values);
            tile.width = if is_high { settings.high_bits } else { settings.low_bits };
            tile.entropy_margin = margin;
            tiles.push(tile);
        }
    }
    tiles
}

/// In bits.
fn entropy(values: &[f64]) -> f64 {
    let sum: f64 = values.iter().map(|x| x.abs()).sum();
    values
        .iter()
        .map(|x| {
            let p = x.abs() / (sum + SMALL);
            p * ((sum + SMALL) / (x.abs() + SMALL)).log2()
        })
        .sum::<f64>()
}

fn tile(settings: &TahSettings, values: &[f64]) -> Tile {
    let mut values = values.to_vec();
    values.resize(settings.tile, 0.0);
    let mut magnitudes: Vec<f64> = values.iter().map(|x| x.abs()).collect();
    let first = magnitudes.iter().copied().fold(0.0, f64::max);
    let pivot = magnitudes.iter().position(|&x| x == first).unwrap();
    magnitudes.remove(pivot);
    let second = magnitudes.iter().copied().fold(0.0, f64::max);
    let ratio = first / (second + SMALL);
    let tau = f64::from(settings.outlier_ratio);
    let outlier = ratio > tau;
    if outlier {
        values.swap(0, pivot);
        values = hadamard(&values);
    }
    Tile {
        width: 0,
        entropy_margin: 0.0,
        ratio,
        ratio_margin: if tau.is_finite() { (ratio - tau).abs() } else { f64::INFINITY },
        outlier,
        pivot: if outlier { pivot } else { 0 },
        values,
    }
}

/// The product with `H / sqrt(n)`; entry `(i, j)` of the Sylvester matrix is `(-1)^popcount(i & j)`.
pub(crate) fn hadamard(x: &[f64]) -> Vec<f64> {
    let sign = |i: usize, j: usize| if (i & j).count_ones().is_multiple_of(2) { 1.0 } else { -1.0 };
    let norm = 1.0 / (x.len() as f64).sqrt();
    (0..x.len()).map(|i| norm * x.iter().enumerate().map(|(j, x)| sign(i, j) * x).sum::<f64>()).collect()
}
