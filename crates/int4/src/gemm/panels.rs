#![expect(clippy::inline_always, reason = "kernels are compiled inside each instruction set's entry")]

use std::ops::Range;

use rayon::prelude::*;

use super::Operand;
use super::microkernel::{Microkernel, Side};
use crate::Isa;
use crate::simd::{Kernel, Simd};

/// Elements of the depth that are unpacked before they are put in order: their panel stays in the first cache.
const STRETCH: usize = 256;

/// Panels that one task packs of a transposed operand, from neighbouring bytes of its rows.
const GROUP: usize = 8;

/// How the depth of a product lies in its panels: segments of elements, each padded with zeros to whole words.
#[derive(Debug)]
pub(crate) struct Depth {
    /// Elements of each segment.
    elements: Vec<Range<usize>>,
    /// Words of each segment.
    pub(crate) words: Vec<Range<usize>>,
    total: usize,
}

impl Depth {
    /// Consecutive segments of these lengths, as microkernel `M` wants them.
    pub(crate) fn new<M: Microkernel>(lengths: impl Iterator<Item = usize>) -> Self {
        let multiple = M::A.interleave.max(M::B.interleave);
        let mut depth = Self { elements: Vec::new(), words: Vec::new(), total: 0 };
        let mut begin = 0;
        for length in lengths {
            let words = length.div_ceil(M::ELEMENTS).next_multiple_of(multiple);
            depth.elements.push(begin..begin + length);
            depth.words.push(depth.total..depth.total + words);
            begin += length;
            depth.total += words;
        }
        depth
    }
}

/// An operand in the order in which a microkernel reads it.
#[derive(Debug)]
pub(crate) struct Panels {
    words: Vec<u32>,
    count: usize,
    /// Words of a panel.
    len: usize,
    /// Of every panel, segment and lane the sum of the codes, if anyone asked.
    sums: Vec<i32>,
    lanes: usize,
    segments: usize,
}

impl Panels {
    /// Packs an operand. A row-major one has a single segment.
    pub(crate) fn pack<M: Microkernel>(isa: Isa, operand: Operand<'_>, side: Side, depth: &Depth) -> Self {
        let len = depth.total * side.lanes;
        let count = operand.outputs().div_ceil(side.lanes);
        let mut words = vec![0; count * len];
        if len > 0 {
            let group = if operand.is_transposed() { GROUP } else { 1 };
            words.par_chunks_mut(group * len).enumerate().for_each(|(i, panels)| {
                let first = i * group * side.lanes;
                isa.run(Pack::<M> {
                    operand,
                    side,
                    depth,
                    first,
                    len,
                    panels,
                    microkernel: std::marker::PhantomData,
                });
            });
        }
        Self { words, count, len, sums: Vec::new(), lanes: side.lanes, segments: depth.words.len() }
    }

    /// Adds up the codes of every lane, segment by segment. For panels of bytes without an offset or interleave.
    pub(crate) fn with_sums(mut self, isa: Isa, depth: &Depth) -> Self {
        let per_panel = self.segments * self.lanes;
        self.sums = vec![0; self.count * per_panel];
        if self.len > 0 {
            let panels = self.words.par_chunks(self.len);
            self.sums.par_chunks_mut(per_panel).zip(panels).for_each(|(sums, words)| {
                isa.run(Sum { words, lanes: self.lanes, depth, sums });
            });
        }
        self
    }

    pub(crate) fn panel(&self, i: usize) -> &[u32] {
        &self.words[i * self.len..][..self.len]
    }

    /// The sums of a panel's lanes over a segment.
    pub(crate) fn sums(&self, panel: usize, segment: usize) -> &[i32] {
        &self.sums[(panel * self.segments + segment) * self.lanes..][..self.lanes]
    }
}

struct Pack<'a, M> {
    operand: Operand<'a>,
    side: Side,
    depth: &'a Depth,
    /// The first output.
    first: usize,
    /// Words of a panel.
    len: usize,
    panels: &'a mut [u32],
    microkernel: std::marker::PhantomData<M>,
}

impl<M: Microkernel> Kernel for Pack<'_, M> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) {
        if self.operand.is_transposed() { self.pack_transposed() } else { self.pack_rows() }
    }
}

impl<M: Microkernel> Pack<'_, M> {
    /// Rows are outputs: a stretch of one lane after the other.
    #[inline(always)]
    fn pack_rows(self) {
        let Side { lanes, interleave, offset } = self.side;
        let depth = self.operand.depth();
        let mut codes = [0; STRETCH];
        for begin in (0..depth).step_by(STRETCH) {
            let len = STRETCH.min(depth - begin);
            // What is left of the last word is zero.
            codes[len..].fill(0);
            let panel = &mut self.panels[begin / M::ELEMENTS * lanes..];
            for lane in 0..lanes.min(self.operand.outputs() - self.first) {
                self.operand.unpack(self.first + lane, begin, &mut codes[..len]);
                for (g, word) in
                    codes[..len.next_multiple_of(M::ELEMENTS)].chunks_exact(M::ELEMENTS).enumerate()
                {
                    let place = (g / interleave * lanes + lane) * interleave + g % interleave;
                    panel[place] = encode::<M>(|i| word[i], offset);
                }
            }
        }
    }

    /// Rows are the depth: the words of all lanes, from as many rows as a word has elements.
    #[inline(always)]
    fn pack_transposed(self) {
        let Side { lanes, interleave, offset } = self.side;
        let width = (GROUP * lanes).min(self.operand.outputs() - self.first);
        let mut rows = vec![0; M::ELEMENTS * width];
        for (elements, words) in self.depth.elements.iter().zip(&self.depth.words) {
            for (g, begin) in elements.clone().step_by(M::ELEMENTS).enumerate() {
                for (i, codes) in rows.chunks_exact_mut(width).enumerate() {
                    if begin + i < elements.end {
                        self.operand.unpack(begin + i, self.first, codes);
                    } else {
                        codes.fill(0);
                    }
                }
                let g = words.start + g;
                let place = g / interleave * lanes * interleave + g % interleave;
                for (first, panel) in (0..width).step_by(lanes).zip(self.panels.chunks_exact_mut(self.len)) {
                    let lanes = lanes.min(width - first);
                    let codes: [&[i8]; 4] = std::array::from_fn(|i| {
                        // Words of two elements do not look at the last two.
                        &rows[i % M::ELEMENTS * width + first..][..lanes]
                    });
                    let words = panel[place..].iter_mut().step_by(interleave);
                    for (lane, word) in (0..lanes).zip(words) {
                        *word = encode::<M>(|i| codes[i][lane], offset);
                    }
                }
            }
        }
    }
}

/// A word of the codes `0..M::ELEMENTS`.
#[inline(always)]
fn encode<M: Microkernel>(code: impl Fn(usize) -> i8, offset: i32) -> u32 {
    if M::ELEMENTS == 4 {
        // The offset is at most 128: adding it modulo 256 makes a code of -128 to 127 one of 0 to 255.
        let byte = |i| u32::from(code(i).cast_unsigned().wrapping_add(offset as u8));
        byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24
    } else {
        let half = |i| u32::from((i32::from(code(i)) + offset) as u16);
        half(0) | half(1) << 16
    }
}

struct Sum<'a> {
    words: &'a [u32],
    lanes: usize,
    depth: &'a Depth,
    sums: &'a mut [i32],
}

impl Kernel for Sum<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) {
        let segments = self.depth.words.iter().zip(self.sums.chunks_exact_mut(self.lanes));
        for (segment, sums) in segments {
            let words = &self.words[segment.start * self.lanes..segment.end * self.lanes];
            for words in words.chunks_exact(self.lanes) {
                for (sum, word) in sums.iter_mut().zip(words) {
                    let [a, b, c, d] = word.to_le_bytes().map(|byte| i32::from(byte.cast_signed()));
                    *sum += a + b + c + d;
                }
            }
        }
    }
}
