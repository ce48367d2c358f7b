//! Eight codes of `B` bits are `B` bytes. They are moved inside 64-bit words, four 16-bit lanes at a time.

const GROUP: usize = 8;

pub(super) fn pack<const B: usize>(codes: &[u16], out: &mut [u8]) {
    let (groups, rest) = codes.as_chunks::<GROUP>();
    let (out, tail) = out.split_at_mut(groups.len() * B);
    for (group, out) in groups.iter().zip(out.as_chunks_mut::<B>().0) {
        out.copy_from_slice(&pack_group::<B>(group)[..B]);
    }
    if !rest.is_empty() {
        let mut group = [0; GROUP];
        group[..rest.len()].copy_from_slice(rest);
        tail.copy_from_slice(&pack_group::<B>(&group)[..tail.len()]);
    }
}

pub(super) fn unpack<const B: usize>(bytes: &[u8], codes: &mut [u16]) {
    let (groups, rest) = codes.as_chunks_mut::<GROUP>();
    let (bytes, tail) = bytes.split_at(groups.len() * B);
    for (group, bytes) in groups.iter_mut().zip(bytes.as_chunks::<B>().0) {
        *group = unpack_group::<B>(bytes);
    }
    if !rest.is_empty() {
        let mut bytes = [0; B];
        bytes[..tail.len()].copy_from_slice(tail);
        rest.copy_from_slice(&unpack_group::<B>(&bytes)[..rest.len()]);
    }
}

fn pack_group<const B: usize>(codes: &[u16; GROUP]) -> [u8; 16] {
    let [low, high] = [0, 4].map(|i| {
        let lanes = codes[i..i + 4].iter().rev().fold(0, |word, &code| word << 16 | u64::from(code));
        let pairs = lanes & 0x0000_ffff_0000_ffff | (lanes & 0xffff_0000_ffff_0000) >> (16 - B);
        pairs & 0xffff_ffff | pairs >> 32 << (2 * B)
    });
    (u128::from(low) | u128::from(high) << (4 * B)).to_le_bytes()
}

fn unpack_group<const B: usize>(bytes: &[u8; B]) -> [u16; GROUP] {
    let pair_mask: u64 = (1 << (2 * B)) - 1;
    let lane_mask: u64 = ((1 << B) - 1) * 0x0000_0001_0000_0001;
    let mut word = [0; 16];
    word[..B].copy_from_slice(bytes);
    let word = u128::from_le_bytes(word);
    let mut codes = [0; GROUP];
    for (codes, word) in codes.as_chunks_mut::<4>().0.iter_mut().zip([word, word >> (4 * B)]) {
        let word = word as u64;
        let pairs = word & pair_mask | (word >> (2 * B) & pair_mask) << 32;
        let lanes = pairs & lane_mask | (pairs >> B & lane_mask) << 16;
        *codes = [0, 16, 32, 48].map(|shift| (lanes >> shift) as u16);
    }
    codes
}
