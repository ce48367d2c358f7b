use std::mem;
use std::sync::{Arc, Mutex, MutexGuard};

use burn::backend::Flex;
use burn::tensor::Tensor;

use crate::kernel::lanes::map;
use crate::kernel::product::Output;
use crate::kernel::sum::Add;
use crate::tensor::{FlexTensor, contiguous, from_values, primitive, values};

/// The gradients of one parameter, summed over several graphs.
///
/// An operator that is given one adds its weight's gradient to it in its backward pass, and registers none with Burn: no
/// pass has a gradient of its own in memory, and nothing is added afterwards. The storage serves again after
/// [`GradientSum::take`]. Clones are the same sum; additions round in the order in which they are made.
#[derive(Clone, Debug, Default)]
pub struct GradientSum(Arc<Mutex<Sum>>);

#[derive(Debug, Default)]
struct Sum {
    /// Contiguous, of one dimension.
    storage: Option<FlexTensor>,
    /// Whether the storage holds a sum, and not one that was taken.
    current: bool,
}

impl GradientSum {
    /// Adds a gradient that Burn has registered.
    ///
    /// # Panics
    /// When it is not `f32` on the CPU, or of another length than what was added before.
    pub fn add(&self, gradient: Tensor<1>) {
        let gradient = contiguous(primitive(gradient));
        let mut sum = self.lock();
        if sum.current {
            let (len, gradient) = (values(&gradient).len(), values(&gradient));
            sum.update(len, |sum, _| map(Add, [gradient], [sum]));
        } else {
            *sum = Sum { storage: Some(gradient), current: true };
        }
    }

    /// The sum, flat; `None` when nothing was added since the last time. The next addition starts from nothing, in the
    /// same storage if the result has been dropped by then.
    pub fn take(&self) -> Option<Tensor<1>> {
        let mut sum = self.lock();
        let taken = sum.storage.clone().filter(|_| sum.current);
        sum.current = false;
        taken.map(Tensor::from_primitive::<Flex>)
    }

    /// Has `add` add to, or replace, the `len` values of the sum.
    ///
    /// # Panics
    /// When a sum of another length is there.
    pub(crate) fn update(&self, len: usize, add: impl FnOnce(&mut [f32], Output)) {
        self.lock().update(len, add);
    }

    fn lock(&self) -> MutexGuard<'_, Sum> {
        self.0.lock().expect("no holder panics")
    }
}

impl Sum {
    fn update(&mut self, len: usize, add: impl FnOnce(&mut [f32], Output)) {
        let mode = if mem::replace(&mut self.current, true) { Output::Add } else { Output::Replace };
        // What somebody still holds would be copied, only to be overwritten.
        let kept = self.storage.take().filter(|kept| mode == Output::Add || kept.is_unique());
        let mut storage = kept.unwrap_or_else(|| from_values(vec![0.0; len], [len]));
        let values = storage.storage_mut();
        assert_eq!(values.len(), len, "a sum of gradients of different lengths");
        add(values, mode);
        self.storage = Some(storage);
    }
}
