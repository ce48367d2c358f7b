//! The codecs as a C library: `include/thinwire_codec.h` declares and documents what is defined here.

#![expect(unsafe_code, reason = "pointers from C")]

mod status;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::num::NonZero;
use std::slice;

use half::{bf16, f16};
use thinwire_codec::{
    Codec, CodecSpec, DType, Execution, Shape, TensorView, TensorViewMut, Values, ValuesMut,
};

use status::{Failure, guard, last_message};

/// `thinwire_codec`
#[derive(Debug)]
pub struct Handle(Box<dyn Codec>);

/// `thinwire_shape`
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct CShape {
    /// Samples of the micro-batch.
    pub samples: usize,
    /// Tokens of a sample.
    pub tokens: usize,
    /// Channels of a token.
    pub channels: usize,
}

impl From<CShape> for Shape {
    fn from(CShape { samples, tokens, channels }: CShape) -> Self {
        Self::new(samples, tokens, channels)
    }
}

/// `thinwire_version`
#[unsafe(no_mangle)]
pub extern "C" fn thinwire_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => panic!("a version without zeros"),
        };
    VERSION.as_ptr()
}

/// `thinwire_format_version`
#[unsafe(no_mangle)]
pub extern "C" fn thinwire_format_version() -> u8 {
    thinwire_codec::FORMAT_VERSION
}

/// `thinwire_codec_new`
///
/// # Safety
/// `spec` is null or ends with a zero; `codec` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thinwire_codec_new(
    spec: *const c_char,
    threads: usize,
    codec: *mut *mut Handle,
) -> c_int {
    guard(|| {
        if spec.is_null() || codec.is_null() {
            return Err(Failure::Null);
        }
        // SAFETY: not null, and by this function's contract it ends with a zero.
        let spec: CodecSpec = unsafe { CStr::from_ptr(spec) }.to_str()?.parse()?;
        let threads = NonZero::new(threads).unwrap_or(NonZero::<usize>::MIN);
        let built = spec.build_with(Execution { threads, ..Execution::choose()? })?;
        // SAFETY: not null, and by this function's contract it can be written.
        unsafe { codec.write(Box::into_raw(Box::new(Handle(built)))) };
        Ok(())
    })
}

/// `thinwire_codec_free`
///
/// # Safety
/// `codec` is null, or comes from [`thinwire_codec_new`] and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thinwire_codec_free(codec: *mut Handle) {
    if !codec.is_null() {
        // SAFETY: by this function's contract it was made by `Box::into_raw` and nobody else has it.
        drop(unsafe { Box::from_raw(codec) });
    }
}

/// `thinwire_packed_size`
///
/// # Safety
/// `codec` is null or a codec; `bytes` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thinwire_packed_size(
    codec: *const Handle,
    shape: CShape,
    dtype: c_int,
    bytes: *mut usize,
) -> c_int {
    guard(|| {
        // SAFETY: by this function's contract it is null or a codec that nobody changes meanwhile.
        let codec = unsafe { codec.as_ref() }.ok_or(Failure::Null)?;
        // SAFETY: by this function's contract it is null or can be written.
        let bytes = unsafe { bytes.as_mut() }.ok_or(Failure::Null)?;
        *bytes = codec.0.packed_size(shape.into(), format(dtype)?)?.bound();
        Ok(())
    })
}

/// `thinwire_encode`
///
/// # Safety
/// Each pointer is null, or: `codec` a codec, `values` as many values as the shape says, `message` can be written for
/// `capacity` bytes, `bytes` can be written; nobody else uses any of them meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thinwire_encode(
    codec: *mut Handle,
    shape: CShape,
    dtype: c_int,
    values: *const c_void,
    message: *mut u8,
    capacity: usize,
    bytes: *mut usize,
) -> c_int {
    guard(|| {
        let shape = Shape::from(shape);
        let len = shape.elements()?;
        // SAFETY: by this function's contract each is null or can be read and written.
        let (codec, bytes) = unsafe { (codec.as_mut(), bytes.as_mut()) };
        let (codec, bytes) = codec.zip(bytes).ok_or(Failure::Null)?;
        // SAFETY: by this function's contract there are `capacity` bytes and `len` values.
        let message = unsafe { slice_mut(message, capacity) }?;
        let values = match format(dtype)? {
            // SAFETY: as above.
            DType::F32 => Values::F32(unsafe { slice_of::<f32>(values, len) }?),
            // SAFETY: as above.
            DType::F16 => Values::F16(unsafe { slice_of::<f16>(values, len) }?),
            // SAFETY: as above.
            DType::BF16 => Values::BF16(unsafe { slice_of::<bf16>(values, len) }?),
        };
        *bytes = codec.0.encode(TensorView::new(shape, values)?, message)?;
        Ok(())
    })
}

/// `thinwire_decode`
///
/// # Safety
/// Each pointer is null, or: `codec` a codec, `message` `bytes` bytes, `values` can be written for as many values as the
/// shape says; nobody else uses any of them meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thinwire_decode(
    codec: *mut Handle,
    message: *const u8,
    bytes: usize,
    shape: CShape,
    dtype: c_int,
    values: *mut c_void,
) -> c_int {
    guard(|| {
        let shape = Shape::from(shape);
        let len = shape.elements()?;
        // SAFETY: by this function's contract it is null or a codec that nobody else uses.
        let codec = unsafe { codec.as_mut() }.ok_or(Failure::Null)?;
        // SAFETY: by this function's contract there are `bytes` bytes and room for `len` values.
        let message = unsafe { slice_of::<u8>(message.cast(), bytes) }?;
        let values = match format(dtype)? {
            // SAFETY: as above.
            DType::F32 => ValuesMut::F32(unsafe { slice_mut(values.cast(), len) }?),
            // SAFETY: as above.
            DType::F16 => ValuesMut::F16(unsafe { slice_mut(values.cast(), len) }?),
            // SAFETY: as above.
            DType::BF16 => ValuesMut::BF16(unsafe { slice_mut(values.cast(), len) }?),
        };
        Ok(codec.0.decode(message, TensorViewMut::new(shape, values)?)?)
    })
}

/// `thinwire_error_message`
///
/// # Safety
/// `text` is null or can be written for `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thinwire_error_message(text: *mut c_char, capacity: usize) -> usize {
    let message = last_message();
    if !text.is_null() && capacity > 0 {
        // SAFETY: not null, and by this function's contract there are `capacity` bytes.
        let text = unsafe { slice::from_raw_parts_mut(text.cast::<u8>(), capacity) };
        let len = message.len().min(capacity - 1);
        text[..len].copy_from_slice(&message.as_bytes()[..len]);
        text[len] = 0;
    }
    message.len()
}

fn format(dtype: c_int) -> Result<DType, Failure> {
    usize::try_from(dtype).ok().and_then(|i| DType::ALL.get(i).copied()).ok_or(Failure::DType(dtype))
}

/// `len` values from C. A null pointer is fine for none.
///
/// # Safety
/// `values` is null or points to `len` values that nobody changes during `'a`.
unsafe fn slice_of<'a, T>(values: *const c_void, len: usize) -> Result<&'a [T], Failure> {
    let values = values.cast::<T>();
    check(values, len)?;
    // SAFETY: aligned and not null by `check`; the rest is this function's contract.
    Ok(if len == 0 { &[] } else { unsafe { slice::from_raw_parts(values, len) } })
}

/// [`slice_of`] for writing.
///
/// # Safety
/// `values` is null or points to `len` values that nobody else uses during `'a`.
unsafe fn slice_mut<'a, T>(values: *mut T, len: usize) -> Result<&'a mut [T], Failure> {
    check(values, len)?;
    // SAFETY: aligned and not null by `check`; the rest is this function's contract.
    Ok(if len == 0 { &mut [] } else { unsafe { slice::from_raw_parts_mut(values, len) } })
}

/// Also that there can be so many values in memory.
fn check<T>(values: *const T, len: usize) -> Result<(), Failure> {
    match len {
        0 => Ok(()),
        _ if values.is_null() => Err(Failure::Null),
        _ if !values.is_aligned() => Err(Failure::Misaligned),
        _ if len > isize::MAX as usize / size_of::<T>() => Err(Failure::TooLong),
        _ => Ok(()),
    }
}
