/// Strides below this are done inside an array of fixed length, without loops.
const BLOCK: usize = 8;

pub(in crate::kernel) fn transform(tile: &mut [f32]) {
    let mut stride = tile.len() / 2;
    while stride >= BLOCK {
        for pair in tile.chunks_exact_mut(2 * stride) {
            let (first, second) = pair.split_at_mut(stride);
            for (a, b) in first.iter_mut().zip(second) {
                (*a, *b) = (*a + *b, *a - *b);
            }
        }
        stride /= 2;
    }
    let root = super::root(tile.len());
    for block in tile.as_chunks_mut::<BLOCK>().0 {
        *block = small_strides(*block).map(|value| value / root);
    }
}

fn small_strides([a, b, c, d, e, f, g, h]: [f32; BLOCK]) -> [f32; BLOCK] {
    let [a, b, c, d, e, f, g, h] = [a + e, b + f, c + g, d + h, a - e, b - f, c - g, d - h];
    let [a, b, c, d, e, f, g, h] = [a + c, b + d, a - c, b - d, e + g, f + h, e - g, f - h];
    [a + b, a - b, c + d, c - d, e + f, e - f, g + h, g - h]
}
