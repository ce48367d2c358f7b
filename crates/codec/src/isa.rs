use std::env;
use std::fmt;
use std::num::NonZero;
use std::str::FromStr;

use crate::SpecError;
use crate::kernel::Kernel;
use crate::simd::Simd;
#[cfg(target_arch = "aarch64")]
use crate::simd::neon::Neon;
#[cfg(target_arch = "x86_64")]
use crate::simd::{avx2::Avx2, avx512::Avx512};

/// An instruction set that the kernels are compiled for. All give the same bytes.
///
/// A value is the proof that this processor has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Isa(Level);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
    #[cfg(target_arch = "aarch64")]
    Neon(Neon),
}

impl Isa {
    /// What every processor of the compilation's target has.
    pub const PORTABLE: Self = Self(Level::Portable);

    /// The environment variable that overrides the choice of [`Isa::choose`].
    pub const VARIABLE: &'static str = "THINWIRE_ISA";

    /// Every one this processor has, the slowest first.
    pub fn available() -> Vec<Self> {
        let all = [
            Some(Level::Portable),
            #[cfg(target_arch = "x86_64")]
            Avx2::detect().map(Level::Avx2),
            #[cfg(target_arch = "x86_64")]
            Avx512::detect().map(Level::Avx512),
            #[cfg(target_arch = "aarch64")]
            Neon::detect().map(Level::Neon),
        ];
        all.into_iter().flatten().map(Self).collect()
    }

    /// The one that [`Isa::VARIABLE`] names, or else the fastest available.
    ///
    /// # Errors
    /// [`SpecError::Unknown`] if the variable names none that this processor has.
    pub fn choose() -> Result<Self, SpecError> {
        match env::var(Self::VARIABLE) {
            Ok(name) => name.parse(),
            Err(_) => Ok(Self::available().pop().unwrap_or(Self::PORTABLE)),
        }
    }

    /// `portable`, `avx2`, `avx512` or `neon`.
    pub const fn name(self) -> &'static str {
        match self.0 {
            Level::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Level::Avx2(_) => "avx2",
            #[cfg(target_arch = "x86_64")]
            Level::Avx512(_) => "avx512",
            #[cfg(target_arch = "aarch64")]
            Level::Neon(_) => "neon",
        }
    }

    pub(crate) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self.0 {
            Level::Portable => kernel.portable(),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2(proof) => proof.vectorize(kernel),
            #[cfg(target_arch = "x86_64")]
            Level::Avx512(proof) => proof.vectorize(kernel),
            #[cfg(target_arch = "aarch64")]
            Level::Neon(proof) => proof.vectorize(kernel),
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Isa {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let available = Self::available();
        available.iter().copied().find(|isa| isa.name() == text).ok_or_else(|| {
            let names: Vec<&str> = available.iter().map(|isa| isa.name()).collect();
            SpecError::unknown("instruction set of this processor", text, &names)
        })
    }
}

/// How a codec value computes. It never changes the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Execution {
    /// The instruction set.
    pub isa: Isa,
    /// Threads that share a message, at most 1024. The default, 1, leaves the cores to the model: the caller's thread does
    /// it all. More are started with the codec and sleep between messages; each takes part if 65,536 values are left for it.
    pub threads: NonZero<usize>,
}

impl Execution {
    /// [`Isa::choose`], one thread.
    ///
    /// # Errors
    /// As [`Isa::choose`].
    pub fn choose() -> Result<Self, SpecError> {
        Ok(Self { isa: Isa::choose()?, threads: NonZero::<usize>::MIN })
    }
}
