//! AMX: 16,384 products an instruction, on tile registers of 16 rows of 64 bytes.
//!
//! ```text
//! acc = 32 x 32 sums in four tiles
//! for every 64 elements of the depth:
//!     a0, a1 = 2 x 16 rows of 64 bytes
//!     b0, b1 = 2 x 16 columns: row g has word g of each column
//!     acc[i][j] += a_i b_j                      tdpbssd: signed by signed
//! ```
//!
//! The intrinsics are not stable, so this is assembly. A process has to ask the system for the tile registers, once: they make the
//! state that is saved with every thread much larger.

#![expect(unsafe_code, reason = "tile instructions, and the system call that permits them")]

use std::arch::asm;
use std::arch::x86_64::__cpuid_count;
use std::sync::OnceLock;

use super::{Microkernel, Side};

const ROWS: usize = 32;
const COLUMNS: usize = 32;
/// Words of a tile's row.
const ROW_WORDS: usize = 16;

/// Proof that the processor has AMX with 8-bit integers, and that this process may use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Amx(());

impl Amx {
    /// Asks the system at the first call.
    pub(crate) fn detect() -> Option<Self> {
        static PERMITTED: OnceLock<bool> = OnceLock::new();
        PERMITTED.get_or_init(|| processor_has_it() && permitted(request())).then_some(Self(()))
    }
}

/// Tiles and their 8-bit products, by CPUID.
fn processor_has_it() -> bool {
    const FEATURES: u32 = 7;
    const TILE_AND_INT8: u32 = 1 << 24 | 1 << 25;
    __cpuid_count(0, 0).eax >= FEATURES && __cpuid_count(FEATURES, 0).edx & TILE_AND_INT8 == TILE_AND_INT8
}

/// `arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA)`, for all threads of the process. Since Linux 5.16; before, and where a filter
/// refuses it, an error.
fn request() -> i64 {
    const ARCH_PRCTL: i64 = 158;
    const REQUEST_PERMISSION: u64 = 0x1023;
    const TILE_DATA: u64 = 18;
    let result;
    // SAFETY: the call takes two numbers and touches no memory of this process; the system overwrites `rcx` and `r11`.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") ARCH_PRCTL => result,
            in("rdi") REQUEST_PERMISSION,
            in("rsi") TILE_DATA,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// A negative result is an error number: the system is too old, or has no room for the registers, or refuses.
const fn permitted(result: i64) -> bool {
    result == 0
}

/// Bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AmxTiles(pub(crate) Amx);

impl Microkernel for AmxTiles {
    const A: Side = Side { lanes: ROWS, interleave: ROW_WORDS, offset: 0 };
    const B: Side = Side { lanes: COLUMNS, interleave: 1, offset: 0 };
    const ELEMENTS: usize = 4;

    fn accumulate(self, a: &[u32], b: &[u32], acc: &mut [i32]) {
        let (a, b) = (a.as_chunks::<{ ROWS * ROW_WORDS }>().0, b.as_chunks::<{ COLUMNS * ROW_WORDS }>().0);
        let acc: &mut [i32; ROWS * COLUMNS] = acc.try_into().expect("a tile of the output");
        assert_eq!(a.len(), b.len(), "panels of one depth");
        if !a.is_empty() {
            multiply(self.0, a, b, acc);
        }
    }
}

/// Palette 1, all eight tiles 16 rows of 64 bytes.
#[repr(C, align(64))]
struct Configuration {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

static CONFIGURATION: Configuration = Configuration {
    palette: 1,
    start_row: 0,
    reserved: [0; 14],
    row_bytes: [64, 64, 64, 64, 64, 64, 64, 64, 0, 0, 0, 0, 0, 0, 0, 0],
    rows: [16, 16, 16, 16, 16, 16, 16, 16, 0, 0, 0, 0, 0, 0, 0, 0],
};

/// As many blocks of `a` as of `b`, at least one.
fn multiply(
    _proof: Amx,
    a: &[[u32; ROWS * ROW_WORDS]],
    b: &[[u32; COLUMNS * ROW_WORDS]],
    acc: &mut [i32; ROWS * COLUMNS],
) {
    let upper = acc.as_mut_ptr();
    // SAFETY: an `Amx` is made by `detect` alone, where the processor has the instructions and the system permits them. Tiles
    // of sums are 16 rows of 64 bytes, 128 apart, in the four quarters of `acc`, 4096 bytes. A block of `a` is 32 rows of 64
    // bytes, one of `b` 16 rows of 128; both are 2048 bytes, which is what the pointers advance by, as often as there are
    // blocks. The tiles are released, so that nothing of them is left for other code.
    unsafe {
        asm!(
            "ldtilecfg [{configuration}]",
            "tileloadd tmm0, [{acc} + {wide} * 1]",
            "tileloadd tmm1, [{acc} + {wide} * 1 + 64]",
            "tileloadd tmm2, [{lower} + {wide} * 1]",
            "tileloadd tmm3, [{lower} + {wide} * 1 + 64]",
            "2:",
            "tileloadd tmm4, [{a} + {narrow} * 1]",
            "tileloadd tmm6, [{b} + {wide} * 1]",
            "tdpbssd tmm0, tmm4, tmm6",
            "tileloadd tmm7, [{b} + {wide} * 1 + 64]",
            "tdpbssd tmm1, tmm4, tmm7",
            "tileloadd tmm5, [{a} + {narrow} * 1 + 1024]",
            "tdpbssd tmm2, tmm5, tmm6",
            "tdpbssd tmm3, tmm5, tmm7",
            "add {a}, 2048",
            "add {b}, 2048",
            "dec {blocks}",
            "jnz 2b",
            "tilestored [{acc} + {wide} * 1], tmm0",
            "tilestored [{acc} + {wide} * 1 + 64], tmm1",
            "tilestored [{lower} + {wide} * 1], tmm2",
            "tilestored [{lower} + {wide} * 1 + 64], tmm3",
            "tilerelease",
            configuration = in(reg) &raw const CONFIGURATION,
            acc = in(reg) upper,
            lower = in(reg) upper.add(ROWS * COLUMNS / 2),
            a = inout(reg) a.as_ptr() => _,
            b = inout(reg) b.as_ptr() => _,
            blocks = inout(reg) a.len() => _,
            wide = in(reg) 128_usize,
            narrow = in(reg) 64_usize,
            out("tmm0") _,
            out("tmm1") _,
            out("tmm2") _,
            out("tmm3") _,
            out("tmm4") _,
            out("tmm5") _,
            out("tmm6") _,
            out("tmm7") _,
            options(nostack),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_no_permission() {
        let (eperm, einval, enosys) = (1, 22, 38);
        assert!(permitted(0));
        for error in [eperm, einval, enosys] {
            assert!(!permitted(-error));
        }
    }

    #[test]
    fn the_configuration_is_laid_out_as_the_processor_reads_it() {
        assert_eq!(size_of::<Configuration>(), 64);
        assert_eq!(std::mem::offset_of!(Configuration, row_bytes), 16);
        assert_eq!(std::mem::offset_of!(Configuration, rows), 48);
    }

    #[test]
    fn a_processor_without_it_is_not_asked_for_it() {
        if !processor_has_it() {
            assert_eq!(Amx::detect(), None);
        }
    }
}
