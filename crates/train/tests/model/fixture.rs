//! The models that `tests/fixtures/make_families.py` made, and what `transformers` and PyTorch compute with them.

use std::fs;
use std::path::{Path, PathBuf};

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

/// The Hugging Face folder of a model.
pub(crate) fn folder(model: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/families").join(model)
}

/// What is expected of a model.
pub(crate) struct Fixture(Vec<u8>);

impl Fixture {
    pub(crate) fn read(model: &str) -> Self {
        Self(fs::read(folder(model).join("expected.safetensors")).unwrap())
    }

    /// Shape and values of an f32 tensor.
    pub(crate) fn floats(&self, name: &str) -> (Vec<usize>, Vec<f32>) {
        self.values(name, Dtype::F32, f32::from_le_bytes)
    }

    /// Shape and values of an i64 tensor.
    pub(crate) fn ids(&self, name: &str) -> (Vec<usize>, Vec<i64>) {
        self.values(name, Dtype::I64, i64::from_le_bytes)
    }

    fn values<const N: usize, T>(
        &self,
        name: &str,
        dtype: Dtype,
        parse: fn([u8; N]) -> T,
    ) -> (Vec<usize>, Vec<T>) {
        let tensors = self.tensors();
        let view: TensorView<'_> = tensors.tensor(name).unwrap();
        assert_eq!(view.dtype(), dtype, "{name}");
        (view.shape().to_vec(), view.data().as_chunks().0.iter().map(|&bytes| parse(bytes)).collect())
    }

    fn tensors(&self) -> SafeTensors<'_> {
        SafeTensors::deserialize(&self.0).unwrap()
    }
}
