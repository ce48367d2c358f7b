//! What the fuzz targets share: codecs, shapes and tensors from bytes.

use std::num::NonZero;

use arbitrary::{Arbitrary, Unstructured};
use thinwire_codec::{Codec, CodecSpec, Execution, Isa, Shape};

/// Every codec, with the widths and tile sizes that take different paths.
const SPECS: [&str; 21] = [
    "f32",
    "f16",
    "bf16",
    "fixed",
    "fixed:bits=2,group=8",
    "fixed:bits=8,group=128",
    "fixed:bits=11,group=32",
    "fixed:bits=16,group=1024",
    "tah",
    "tah:a=192,tau=0",
    "tah:g=8,a=24,p=0.5,hi=8,lo=2,tau=0",
    "tah:g=32,a=c,p=0.3,hi=5,lo=3,tau=inf",
    "tah:g=128,a=256,p=1,hi=7,lo=6,tau=1",
    "tah:g=256,a=c,p=0.5,hi=6,lo=5,tau=1.1",
    "fixed:raw_below=600",
    "tah:raw_below=600",
    "aqsgd",
    "aqsgd:bits=11,group=32,keep=bf16,first=bf16",
    "group",
    "group:bits=8,group=192,quantizer=naive",
    "group:bits=3,group=16,quantizer=symmetric",
];

/// A codec and a shape of at most 4096 values.
#[derive(Debug)]
pub struct Case {
    /// The codec.
    pub spec: CodecSpec,
    /// The tensor's shape.
    pub shape: Shape,
}

impl<'a> Arbitrary<'a> for Case {
    fn arbitrary(u: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        let spec = u.choose(&SPECS)?.parse().expect("a valid spec");
        let (samples, tokens) = (u.int_in_range(0..=2)?, u.int_in_range(0..=4)?);
        Ok(Self { spec, shape: Shape::new(samples, tokens, u.int_in_range(0..=512)?) })
    }
}

impl Case {
    /// The codec on one instruction set.
    pub fn codec(&self, isa: Isa) -> Box<dyn Codec> {
        self.spec.build_with(Execution { isa, threads: NonZero::<usize>::MIN }).expect("a valid spec")
    }

    /// Values of the shape: any bit patterns, those of the input over and over.
    pub fn tensor(&self, u: Unstructured<'_>) -> Vec<f32> {
        let bytes = u.take_rest();
        let values = bytes.as_chunks().0.iter().cycle().map(|bytes| f32::from_le_bytes(*bytes));
        let mut tensor: Vec<f32> = values.take(self.elements()).collect();
        tensor.resize(self.elements(), 0.0);
        tensor
    }

    /// The number of values.
    pub fn elements(&self) -> usize {
        self.shape.elements().expect("a small shape")
    }
}
