use std::env;
use std::fmt;
use std::str::FromStr;

use crate::Int4Error;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use crate::gemm::microkernel::amx::{Amx, AmxTiles};
#[cfg(target_arch = "aarch64")]
use crate::gemm::microkernel::neon::NeonDot;
use crate::gemm::microkernel::portable::PortableWords;
use crate::gemm::microkernel::{UseMicrokernel, Width};
#[cfg(target_arch = "x86_64")]
use crate::gemm::microkernel::{
    avx2::{Avx2Bytes, Avx2Nibbles},
    avx512::Vnni,
};
#[cfg(target_arch = "aarch64")]
use crate::simd::neon::Neon;
use crate::simd::portable::Portable;
use crate::simd::{Kernel, Simd};
#[cfg(target_arch = "x86_64")]
use crate::simd::{avx2::Avx2, avx512::Avx512};

/// An instruction set that the kernels are compiled for. All give the same bits.
///
/// A value is the proof that this processor, and the system it runs, have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Isa(Level);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    Amx(Avx512, Amx),
    #[cfg(target_arch = "aarch64")]
    Neon(Neon),
}

impl Isa {
    /// What every processor of the compilation's target has.
    pub const PORTABLE: Self = Self(Level::Portable);

    /// The environment variable that overrides the choice of [`Isa::choose`].
    pub const VARIABLE: &'static str = "THINWIRE_ISA";

    /// Every one this processor has, the slowest first.
    ///
    /// The first call asks the system for the tile registers of AMX, where the processor has them; a system that refuses
    /// leaves AVX-512.
    pub fn available() -> Vec<Self> {
        let all = [
            Some(Level::Portable),
            #[cfg(target_arch = "x86_64")]
            Avx2::detect().map(Level::Avx2),
            #[cfg(target_arch = "x86_64")]
            Avx512::detect().map(Level::Avx512),
            #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
            Avx512::detect().and_then(|floats| Amx::detect().map(|tiles| Level::Amx(floats, tiles))),
            #[cfg(target_arch = "aarch64")]
            Neon::detect().map(Level::Neon),
        ];
        all.into_iter().flatten().map(Self).collect()
    }

    /// The one that [`Isa::VARIABLE`] names, or else the fastest available.
    ///
    /// # Errors
    /// [`Int4Error::UnknownIsa`] if the variable names none that this processor has.
    pub fn choose() -> Result<Self, Int4Error> {
        match env::var(Self::VARIABLE) {
            Ok(name) => name.parse(),
            Err(_) => Ok(Self::available().pop().unwrap_or(Self::PORTABLE)),
        }
    }

    /// `portable`, `avx2`, `avx512` (with VNNI), `amx` or `neon` (with dot products).
    pub const fn name(self) -> &'static str {
        match self.0 {
            Level::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Level::Avx2(_) => "avx2",
            #[cfg(target_arch = "x86_64")]
            Level::Avx512(_) => "avx512",
            #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
            Level::Amx(..) => "amx",
            #[cfg(target_arch = "aarch64")]
            Level::Neon(_) => "neon",
        }
    }

    /// Runs a kernel compiled with this instruction set.
    pub(crate) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self.0 {
            Level::Portable => Portable.vectorize(kernel),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2(proof) => proof.vectorize(kernel),
            #[cfg(target_arch = "x86_64")]
            Level::Avx512(proof) => proof.vectorize(kernel),
            #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
            Level::Amx(proof, _) => proof.vectorize(kernel),
            #[cfg(target_arch = "aarch64")]
            Level::Neon(proof) => proof.vectorize(kernel),
        }
    }

    /// Hands over the fastest microkernel for operands of this width.
    pub(crate) fn with_microkernel<U: UseMicrokernel>(self, width: Width, user: U) -> U::Output {
        match (self.0, width) {
            (Level::Portable, _) => user.with(PortableWords),
            #[cfg(target_arch = "x86_64")]
            (Level::Avx2(proof), Width::Nibbles) => user.with(Avx2Nibbles(proof)),
            #[cfg(target_arch = "x86_64")]
            (Level::Avx2(proof), Width::Bytes) => user.with(Avx2Bytes(proof)),
            #[cfg(target_arch = "x86_64")]
            (Level::Avx512(proof), _) => user.with(Vnni(proof)),
            #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
            (Level::Amx(_, proof), _) => user.with(AmxTiles(proof)),
            #[cfg(target_arch = "aarch64")]
            (Level::Neon(proof), _) => user.with(NeonDot(proof)),
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Isa {
    type Err = Int4Error;

    fn from_str(text: &str) -> Result<Self, Int4Error> {
        let available = Self::available();
        available.iter().copied().find(|isa| isa.name() == text).ok_or_else(|| Int4Error::UnknownIsa {
            name: text.to_owned(),
            available: available.iter().map(|isa| isa.name()).collect::<Vec<_>>().join(", "),
        })
    }
}
