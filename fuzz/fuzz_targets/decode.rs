//! No message makes a decoder panic or write a value that is not finite.

#![no_main]

use arbitrary::{Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use thinwire_codec::{DType, Isa, TensorViewMut};
use thinwire_fuzz::Case;

fuzz_target!(|data: &[u8]| {
    let mut u = Unstructured::new(data);
    let Ok(case) = Case::arbitrary(&mut u) else { return };
    let needed = case.codec(Isa::PORTABLE).packed_size(case.shape, DType::F32).expect("small").bound();
    // Of the right length, or what is left of the input; with a right header, or not.
    let (fit, head) = (u.arbitrary().unwrap_or(true), u.arbitrary().unwrap_or(true));
    let mut message = u.take_rest().to_vec();
    if fit {
        message.resize(needed, 0);
    }
    if let (true, Some(header)) = (head, message.first_chunk_mut::<2>()) {
        *header = [thinwire_codec::FORMAT_VERSION, case.spec.sent_as(case.shape, DType::F32).into()];
    }
    for isa in Isa::available() {
        let mut out = vec![0.0_f32; case.elements()];
        let view = TensorViewMut::new(case.shape, &mut out[..]).expect("the shape's length");
        let _ = case.codec(isa).decode(&message, view); // either is fine
        assert!(out.iter().all(|value| value.is_finite()), "{case:?} {isa}");
    }
});
