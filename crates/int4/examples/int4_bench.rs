#![expect(unsafe_code, reason = "gemm takes pointers")]
#![expect(clippy::print_stdout, reason = "result")]
use std::time::Instant;
use thinwire_int4::*;
fn main() {
    let n: usize = std::env::args().nth(1).unwrap().parse().unwrap();
    let isa = Isa::choose().unwrap();
    let x: Vec<f32> = (0..n * n).map(|i| ((i * 7919 % 1000) as f32 - 500.0) * 0.01).collect();
    let mut y = vec![0f32; n * n];
    let mut dx = vec![0f32; n * n];
    let block = Block::new(32, n).unwrap();
    let step = Step::initial(isa, &x, [n, n], block).unwrap();
    for _ in 0..3 {
        let t = Instant::now();
        let qx = Quantized::new(isa, &x, [n, n], block, step).unwrap();
        let qw = Quantized::new(isa, &x, [n, n], block, step).unwrap();
        let quant = t.elapsed();
        forward(isa, &qx, &qw, &mut y).unwrap();
        let int = t.elapsed();
        let t = Instant::now();
        let s = SplitGradient::new(isa, &x, [n, n], Key::new(1)).unwrap();
        let split = t.elapsed();
        let t = Instant::now();
        weight_gradient(isa, &s, &qx, &qw, (Sampling::Sample, Key::new(1)), &mut dx).unwrap();
        let wg = t.elapsed();
        let t = Instant::now();
        input_gradient(isa, &s, &qx, &qw, (Sampling::Sample, Key::new(1)), &mut dx).unwrap();
        let ig = t.elapsed();
        let t = Instant::now();
        unsafe {
            gemm::gemm(
                n,
                n,
                n,
                y.as_mut_ptr(),
                1,
                n as isize,
                false,
                x.as_ptr(),
                1,
                n as isize,
                x.as_ptr(),
                n as isize,
                1,
                0.0f32,
                1.0,
                false,
                false,
                false,
                gemm::Parallelism::Rayon(0),
            );
        }
        println!(
            "{isa} forward {int:?} (quantize {quant:?}) split {split:?} wg {wg:?} ig {ig:?} f32 {:?}",
            t.elapsed()
        );
    }
}
