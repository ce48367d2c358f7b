use half::{bf16, f16};

use crate::{CodecError, DType, Shape};

/// Borrowed values of one of the three number formats.
#[derive(Debug, Clone, Copy)]
pub enum Values<'a> {
    /// 32-bit values.
    F32(&'a [f32]),
    /// 16-bit values, IEEE half precision.
    F16(&'a [f16]),
    /// 16-bit values, bfloat16.
    BF16(&'a [bf16]),
}

/// Mutably borrowed values of one of the three number formats.
#[derive(Debug)]
pub enum ValuesMut<'a> {
    /// 32-bit values.
    F32(&'a mut [f32]),
    /// 16-bit values, IEEE half precision.
    F16(&'a mut [f16]),
    /// 16-bit values, bfloat16.
    BF16(&'a mut [bf16]),
}

macro_rules! values_methods {
    ($values:ident, $($mutable:ident)?) => {
        impl $values<'_> {
            /// The number of values.
            pub fn len(&self) -> usize {
                match self {
                    Self::F32(values) => values.len(),
                    Self::F16(values) => values.len(),
                    Self::BF16(values) => values.len(),
                }
            }

            /// Whether there are no values.
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// The number format.
            pub const fn dtype(&self) -> DType {
                match self {
                    Self::F32(_) => DType::F32,
                    Self::F16(_) => DType::F16,
                    Self::BF16(_) => DType::BF16,
                }
            }
        }

        impl<'a> From<&'a $($mutable)? [f32]> for $values<'a> {
            fn from(values: &'a $($mutable)? [f32]) -> Self {
                Self::F32(values)
            }
        }

        impl<'a> From<&'a $($mutable)? [f16]> for $values<'a> {
            fn from(values: &'a $($mutable)? [f16]) -> Self {
                Self::F16(values)
            }
        }

        impl<'a> From<&'a $($mutable)? [bf16]> for $values<'a> {
            fn from(values: &'a $($mutable)? [bf16]) -> Self {
                Self::BF16(values)
            }
        }
    };
}

values_methods!(Values,);
values_methods!(ValuesMut, mut);

/// A tensor to encode: a shape and as many values.
#[derive(Debug, Clone, Copy)]
pub struct TensorView<'a> {
    shape: Shape,
    values: Values<'a>,
}

impl<'a> TensorView<'a> {
    /// A view of `values` as a contiguous row-major tensor of `shape`.
    ///
    /// # Errors
    /// [`CodecError::Length`] if there are not exactly `shape.elements()` values,
    /// [`CodecError::TooLarge`] if that product overflows.
    pub fn new(shape: Shape, values: impl Into<Values<'a>>) -> Result<Self, CodecError> {
        let values = values.into();
        check_length(shape, values.len())?;
        Ok(Self { shape, values })
    }

    /// The extent.
    pub const fn shape(&self) -> Shape {
        self.shape
    }

    /// The values, row-major.
    pub const fn values(&self) -> Values<'a> {
        self.values
    }

    /// The number format of the values.
    pub const fn dtype(&self) -> DType {
        self.values.dtype()
    }
}

/// A tensor to decode into: a shape and room for as many values.
#[derive(Debug)]
pub struct TensorViewMut<'a> {
    shape: Shape,
    values: ValuesMut<'a>,
}

impl<'a> TensorViewMut<'a> {
    /// A view of `values` as a contiguous row-major tensor of `shape`.
    ///
    /// # Errors
    /// As [`TensorView::new`].
    pub fn new(shape: Shape, values: impl Into<ValuesMut<'a>>) -> Result<Self, CodecError> {
        let values = values.into();
        check_length(shape, values.len())?;
        Ok(Self { shape, values })
    }

    /// The extent.
    pub const fn shape(&self) -> Shape {
        self.shape
    }

    /// The number format of the values.
    pub const fn dtype(&self) -> DType {
        self.values.dtype()
    }

    /// The values, row-major.
    pub fn into_values(self) -> ValuesMut<'a> {
        self.values
    }
}

fn check_length(shape: Shape, got: usize) -> Result<(), CodecError> {
    let expected = shape.elements()?;
    if expected == got { Ok(()) } else { Err(CodecError::Length { shape, expected, got }) }
}
