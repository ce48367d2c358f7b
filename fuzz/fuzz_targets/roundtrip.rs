//! Whatever is encoded can be decoded, and raw f32 comes back to the bit.

#![no_main]

use arbitrary::{Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use thinwire_codec::{CodecId, DType, EncodeError, Isa, TensorView, TensorViewMut};
use thinwire_fuzz::Case;

fuzz_target!(|data: &[u8]| {
    let mut u = Unstructured::new(data);
    let Ok(case) = Case::arbitrary(&mut u) else { return };
    let x = case.tensor(u);
    for isa in Isa::available() {
        let mut codec = case.codec(isa);
        let size = codec.packed_size(case.shape, DType::F32).expect("small");
        let mut message = vec![0; size.bound()];
        match codec.encode(TensorView::new(case.shape, &x[..]).expect("the shape's length"), &mut message) {
            Ok(bytes) => {
                assert!(size.admits(bytes), "{case:?} {isa}");
                message.truncate(bytes);
            }
            Err(EncodeError::NonFinite { index, .. }) => {
                assert_eq!(x.iter().position(|value| !value.is_finite()), Some(index));
                continue;
            }
            Err(error) => panic!("{case:?}: {error}"),
        }
        let mut out = vec![f32::NAN; x.len()];
        let view = TensorViewMut::new(case.shape, &mut out[..]).expect("the shape's length");
        codec.decode(&message, view).expect("its own message");
        assert!(out.iter().all(|value| value.is_finite()), "{case:?} {isa}");
        if case.spec.sent_as(case.shape, DType::F32) == CodecId::RawF32 {
            assert!(out.iter().zip(&x).all(|(out, x)| out.to_bits() == x.to_bits()), "{case:?} {isa}");
        }
    }
});
