//! Every instruction set and any number of threads write the bytes, and decode to the values, of the portable kernels on
//! one thread.
//!
//! Tests for each instruction set. Where the processor lacks one, they have nothing to run; `THINWIRE_TEST_ISAS`, a list
//! like `avx2,avx512`, names those for which that is a failure.

mod common;

use std::num::NonZero;

use common::random::Family;
use common::specs;
use half::{bf16, f16};
use thinwire_codec::{
    Codec, CodecSpec, DType, DecodeError, EncodeError, Execution, HEADER_LEN, Isa, Shape, TensorView,
    TensorViewMut, Values, ValuesMut,
};

/// The names of tests and instruction sets.
macro_rules! instruction_sets {
    ($($name:ident),*) => {
        $(mod $name {
            #[test]
            fn same_bytes() {
                if let Some(isa) = super::isa(stringify!($name)) {
                    super::same_bytes(isa);
                }
            }

            #[test]
            fn same_bytes_of_large_messages_on_threads() {
                if let Some(isa) = super::isa(stringify!($name)) {
                    super::same_bytes_of_large_messages_on_threads(isa);
                }
            }

            #[test]
            fn same_values_of_parameters_that_no_encoder_writes() {
                if let Some(isa) = super::isa(stringify!($name)) {
                    super::same_values_of_parameters_that_no_encoder_writes(isa);
                }
            }

            #[test]
            fn same_bytes_of_real_activations() {
                if let Some(isa) = super::isa(stringify!($name)) {
                    super::same_bytes_of_real_activations(isa);
                }
            }

            #[test]
            fn same_refusals() {
                if let Some(isa) = super::isa(stringify!($name)) {
                    super::same_refusals(isa);
                }
            }
        })*
    };
}

/// Which error a decoder gives must not depend on which thread is first to find one.
#[test]
fn same_refusals_on_threads() {
    let shape = Shape::new(5, 100, 700);
    let x = Family::HeavyTail.values(shape.elements().unwrap(), 11);
    for text in ["f32", "bf16", "fixed", "tah", "group"] {
        let spec: CodecSpec = text.parse().unwrap();
        let mut message = common::encode(&spec, shape, &x[..]);
        // NaN and infinity everywhere from a place on: in every part, the last ones most easily found.
        message[6000..].fill(0xff);
        let refuse = |threads| {
            let mut out = vec![0.0; x.len()];
            let out = TensorViewMut::new(shape, &mut out[..]).unwrap();
            codec(&spec, Isa::choose().unwrap(), threads).decode(&message, out).unwrap_err()
        };
        let expected = refuse(1);
        for threads in [2, 3, 5, 7] {
            assert_eq!(refuse(threads), expected, "{text}, {threads} threads");
        }
    }
    let mut x = x;
    (x[170_000], x[349_999]) = (f32::NAN, f32::INFINITY);
    for threads in [1, 2, 5] {
        let error = codec(&"tah".parse().unwrap(), Isa::choose().unwrap(), threads)
            .encode(TensorView::new(shape, &x[..]).unwrap(), &mut vec![0; 4 * x.len()])
            .unwrap_err();
        assert!(matches!(error, EncodeError::NonFinite { index: 170_000, .. }), "{error}");
    }
}

instruction_sets!(portable, avx2, avx512, neon);

fn isa(name: &str) -> Option<Isa> {
    let required = std::env::var("THINWIRE_TEST_ISAS").unwrap_or_default();
    let isa = name.parse().ok();
    assert!(isa.is_some() || !required.split(',').any(|required| required == name), "no {name} here");
    isa
}

fn codec(spec: &CodecSpec, isa: Isa, threads: usize) -> Box<dyn Codec> {
    spec.build_with(Execution { isa, threads: NonZero::new(threads).unwrap() }).unwrap()
}

/// Those of other tests, and every width of all codecs at every length the vector kernels are made for.
fn all_specs() -> Vec<CodecSpec> {
    let mut specs = specs();
    for bits in 2..=16 {
        specs.push(format!("fixed:bits={bits},group={}", 64 << (bits % 3)).parse().unwrap());
        specs.push(format!("fixed:bits={bits},group={}", 8 << (bits % 3)).parse().unwrap());
    }
    for bits in 2..=8 {
        for (i, group) in [64 << (bits % 3), 8 << (bits % 3), 192].into_iter().enumerate() {
            for (j, quantizer) in ["symmetric", "naive", "zero-aware"].into_iter().enumerate() {
                // Without the optimizer every width, length and quantizer, but not all of each other's.
                if !cfg!(debug_assertions) || (bits + i) % 3 == j {
                    let spec = format!("group:bits={bits},group={group},quantizer={quantizer}");
                    specs.push(spec.parse().unwrap());
                }
            }
        }
    }
    for (high, low) in [(3, 2), (5, 4), (7, 6), (8, 8)] {
        specs.push(format!("tah:hi={high},lo={low},p=0.5").parse().unwrap());
        specs.push(format!("tah:g=16,hi={high},lo={low},p=0.5,tau=1.2").parse().unwrap());
        specs.push(format!("tah:g=32,a=96,hi={high},lo={low},p=0.5,tau=1.2").parse().unwrap());
        specs.push(format!("tah:g=64,a=192,hi={high},lo={low},p=0.5,tau=1.2").parse().unwrap());
        specs.push(format!("tah:g=256,a=c,hi={high},lo={low},p=0.5,tau=0").parse().unwrap());
        specs.push(format!("tah:g=512,hi={high},lo={low},p=0.5,tau=1.1").parse().unwrap());
    }
    specs
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// A tensor's values in one number format, and the same moved off its alignment by `offset` values.
trait Format: Copy + Default + PartialEq + std::fmt::Debug {
    const DTYPE: DType;
    fn of(value: f32) -> Self;
    fn bits(self) -> u32;
    fn view(values: &[Self]) -> Values<'_>;
    fn view_mut(values: &mut [Self]) -> ValuesMut<'_>;
}

macro_rules! number_format {
    ($type:ty, $dtype:expr, $of:expr, $variant:ident) => {
        impl Format for $type {
            const DTYPE: DType = $dtype;
            fn of(value: f32) -> Self {
                $of(value)
            }
            fn bits(self) -> u32 {
                self.to_bits().into()
            }
            fn view(values: &[Self]) -> Values<'_> {
                Values::$variant(values)
            }
            fn view_mut(values: &mut [Self]) -> ValuesMut<'_> {
                ValuesMut::$variant(values)
            }
        }
    };
}

number_format!(f32, DType::F32, |value| value, F32);
number_format!(f16, DType::F16, |value: f32| f16::from_f32(value.clamp(-65504.0, 65504.0)), F16);
number_format!(bf16, DType::BF16, |value: f32| bf16::from_f32(value.clamp(-3e38, 3e38)), BF16);

/// Compares with the portable kernels; `offset` moves every buffer off its alignment.
fn compare<T: Format>(spec: &CodecSpec, shape: Shape, x: &[f32], isa: Isa, threads: usize, offset: usize) {
    let what = format!("{spec} {shape} {}, {isa}, {threads} threads", T::DTYPE);
    let mut moved = vec![T::default(); offset];
    moved.extend(x.iter().map(|&value| T::of(value)));
    let view = TensorView::new(shape, T::view(&moved[offset..])).unwrap();
    let (mut reference, mut codec) = (codec(spec, Isa::PORTABLE, 1), codec(spec, isa, threads));
    let bytes = reference.packed_size(shape, T::DTYPE).unwrap().bound();
    let (mut expected, mut got) = (vec![0xa5; bytes], vec![0x5a; bytes + offset]);
    reference.encode(view, &mut expected).unwrap();
    codec.encode(view, &mut got[offset..]).unwrap();
    assert!(expected == got[offset..], "{what}: message");

    // Into the same format, and into f32 with another offset.
    let decode = |codec: &mut dyn Codec| {
        let mut same = vec![T::default(); x.len() + offset];
        let out = TensorViewMut::new(shape, T::view_mut(&mut same[offset..])).unwrap();
        let first = codec.decode(&expected, out);
        let mut wide = vec![0.0_f32; x.len() + offset];
        let out = TensorViewMut::new(shape, &mut wide[offset..]).unwrap();
        codec.decode(&expected, out).unwrap();
        (first, same.into_iter().map(T::bits).collect::<Vec<_>>(), bits(&wide))
    };
    assert!(decode(&mut *reference) == decode(&mut *codec), "{what}: decoded values");
}

fn same_bytes(isa: Isa) {
    let shapes = [(1, 1, 1), (1, 3, 63), (2, 3, 64), (1, 7, 65), (2, 5, 448), (1, 19, 512), (1, 3, 1100)];
    for spec in all_specs() {
        for (i, (samples, tokens, channels)) in shapes.into_iter().enumerate() {
            let shape = Shape::new(samples, tokens, channels);
            for (seed, family) in Family::ALL.into_iter().enumerate() {
                let x = family.values(shape.elements().unwrap(), seed as u64);
                compare::<f32>(&spec, shape, &x, isa, 1, i);
                compare::<f16>(&spec, shape, &x, isa, 1, i);
                compare::<bf16>(&spec, shape, &x, isa, 1, i);
            }
        }
    }
}

fn same_bytes_of_large_messages_on_threads(isa: Isa) {
    // How a message is shared does not depend on the optimizer, without which all of it takes minutes.
    let (families, threads): (&[_], &[_]) = if cfg!(debug_assertions) {
        (&[Family::HeavyTail], &[1, 3])
    } else {
        (&[Family::HeavyTail, Family::Ties], &[1, 2, 3, 7])
    };
    // Whole samples to threads, samples left to be shared, samples too small to be shared, and both at once.
    for (samples, tokens, channels) in
        [(1, 700, 320), (1, 1, 300_000), (3, 131, 1090), (23, 30, 320), (3000, 2, 64)]
    {
        let shape = Shape::new(samples, tokens, channels);
        for family in families {
            let x = family.values(shape.elements().unwrap(), 5);
            for spec in [
                "f32",
                "bf16",
                "f16",
                "fixed",
                "fixed:bits=11,group=32",
                "fixed:raw_below=1000000",
                "tah",
                "tah:a=c",
                "tah:g=16,a=48",
                "tah:g=256",
                "group",
                "group:bits=3,group=32,quantizer=symmetric",
            ] {
                for &threads in threads {
                    compare::<f32>(&spec.parse().unwrap(), shape, &x, isa, threads, 0);
                    if threads == 3 {
                        compare::<bf16>(&spec.parse().unwrap(), shape, &x, isa, threads, 0);
                    }
                }
            }
        }
    }
}

/// The largest parameters under every large message scale: values that overflow on the way are saturated alike.
fn same_values_of_parameters_that_no_encoder_writes(isa: Isa) {
    let shape = Shape::new(1, 1, 2048);
    let x = Family::Gaussian.values(shape.elements().unwrap(), 3);
    // Of each tile or group, the bytes of its parameters; they are the front of the payload.
    for (spec, parameters) in [
        ("fixed:bits=8,group=64", 2 * 32),
        ("fixed:bits=9,group=128", 2 * 16),
        ("fixed:bits=16,group=64", 2 * 32),
        ("tah:tau=0", 4 * 32),
        ("group:group=64", 4 * 32),
        ("group:bits=8,group=128", 4 * 16),
        ("group:bits=3,group=8,quantizer=symmetric", 2 * 256),
        ("tah:g=1024,a=1024,hi=8,lo=8,tau=0", 4 * 2),
    ] {
        let spec = spec.parse().unwrap();
        let mut message = common::encode(&spec, shape, &x[..]);
        let largest = if matches!(spec, CodecSpec::Tah(_)) { f16::MIN } else { f16::MAX };
        for parameter in message[HEADER_LEN..][..parameters].as_chunks_mut().0 {
            *parameter = largest.to_le_bytes();
        }
        for exponent in 80..=119_i16 {
            message[2..4].copy_from_slice(&exponent.to_le_bytes());
            let decode = |isa| {
                let mut out = vec![0.0; x.len()];
                let view = TensorViewMut::new(shape, &mut out[..]).unwrap();
                codec(&spec, isa, 1).decode(&message, view).unwrap();
                bits(&out)
            };
            assert!(decode(isa) == decode(Isa::PORTABLE), "{spec}, 2^{exponent}");
        }
    }
}

/// A boundary of a trained model (`tests/activations/README.md`).
fn same_bytes_of_real_activations(isa: Isa) {
    let bytes = include_bytes!("activations/llama.safetensors");
    let file = safetensors::SafeTensors::deserialize(bytes).unwrap();
    let tensor = file.tensor("x").unwrap();
    let &[samples, tokens, channels] = tensor.shape() else { panic!("x is [samples, tokens, channels]") };
    let shape = Shape::new(samples, tokens, channels);
    let x: Vec<f32> = tensor.data().as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    let mut specs = all_specs();
    // None of its tiles is an outlier tile by default.
    specs.extend(["tah:tau=1.2", "tah:g=16,tau=1.1,p=0.3"].map(|spec| spec.parse::<CodecSpec>().unwrap()));
    for spec in specs {
        compare::<f32>(&spec, shape, &x, isa, 1, 3);
        compare::<f16>(&spec, shape, &x, isa, 1, 1);
        compare::<bf16>(&spec, shape, &x, isa, 1, 0);
    }
}

/// The index of the first value that is not finite, and what a decoder says about flipped bits.
fn same_refusals(isa: Isa) {
    let shape = Shape::new(1, 5, 192);
    let x = Family::HeavyTail.values(shape.elements().unwrap(), 9);
    for spec in all_specs() {
        for bad in [0, 17, 500, 959] {
            for value in [f32::NAN, f32::INFINITY, -f32::NAN] {
                let mut x = x.clone();
                (x[bad], x[959]) = (value, f32::NEG_INFINITY);
                let refuse = |isa| {
                    let mut message = vec![0; 4 * x.len() + 64];
                    let error = codec(&spec, isa, 1)
                        .encode(TensorView::new(shape, &x[..]).unwrap(), &mut message)
                        .unwrap_err();
                    error.to_string()
                };
                assert_eq!(refuse(isa), refuse(Isa::PORTABLE), "{spec}");
            }
        }
        let message = common::encode(&spec, shape, &x[..]);
        for place in (0..message.len()).step_by(29) {
            let mut message = message.clone();
            message[place] ^= 0xff;
            let decode = |isa| -> (Result<(), DecodeError>, Vec<u32>) {
                let mut out = vec![0.0; x.len()];
                let result =
                    codec(&spec, isa, 1).decode(&message, TensorViewMut::new(shape, &mut out[..]).unwrap());
                let bits = if result.is_ok() { bits(&out) } else { Vec::new() };
                (result, bits)
            };
            assert!(decode(isa) == decode(Isa::PORTABLE), "{spec}, byte {place}");
        }
    }
}
