//! Every instruction set writes the bytes of the portable kernels and decodes to their values, also of what it remembers.

#![no_main]

use arbitrary::{Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use thinwire_codec::{DType, Isa, TensorView, TensorViewMut};
use thinwire_fuzz::Case;

fuzz_target!(|data: &[u8]| {
    let mut u = Unstructured::new(data);
    let Ok(case) = Case::arbitrary(&mut u) else { return };
    let x: Vec<f32> = case.tensor(u).iter().map(|x| if x.is_finite() { *x } else { f32::MAX }).collect();
    let run = |isa| {
        let mut codec = case.codec(isa);
        let mut message = vec![0; codec.packed_size(case.shape, DType::F32).expect("small").bound()];
        let mut visit = |x: &[f32]| {
            let view = TensorView::new(case.shape, x).expect("the shape's length");
            let bytes = codec.encode(view, &mut message).expect("finite values");
            let mut out = vec![0.0_f32; x.len()];
            let view = TensorViewMut::new(case.shape, &mut out[..]).expect("the shape's length");
            codec.decode(&message[..bytes], view).expect("its own message");
            (message[..bytes].to_vec(), out.into_iter().map(f32::to_bits).collect::<Vec<_>>())
        };
        let reversed: Vec<f32> = x.iter().rev().copied().collect();
        [visit(&x), visit(&reversed), visit(&x)]
    };
    let expected = run(Isa::PORTABLE);
    for isa in Isa::available() {
        assert!(run(isa) == expected, "{case:?}: {isa} differs");
    }
});
