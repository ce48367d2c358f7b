//! The models that `tests/fixtures/make_families.py` made, and what `transformers` and PyTorch compute with them.

use std::fs;
use std::path::Path;

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

/// A file of tensors.
pub(crate) struct Fixture(Vec<u8>);

impl Fixture {
    /// `model.safetensors` or `expected.safetensors` of a model.
    pub(crate) fn read(model: &str, file: &str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/families");
        Self(fs::read(folder.join(model).join(file)).unwrap())
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.tensors().names().into_iter().map(str::to_owned).collect()
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
