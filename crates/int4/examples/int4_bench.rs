#![expect(unsafe_code, reason = "gemm takes pointers")]
#![expect(clippy::print_stdout, reason = "result")]
use std::time::Instant;
use thinwire_int4::*;
fn main() {
    let n: usize = std::env::args().nth(1).unwrap().parse().unwrap();
    let codes: Vec<i8> = (0..n * n).map(|i| ((i * 7919) >> 3) as i8 % 8).collect();
    let a = Int4Matrix::from_codes([n, n], &codes).unwrap();
    let b = Int4Matrix::from_codes([n, n], &codes).unwrap();
    let isa = Isa::choose().unwrap();
    let mut out = vec![0i32; n * n];
    let x: Vec<f32> = codes.iter().map(|&c| f32::from(c)).collect();
    let mut y = vec![0f32; n * n];
    for _ in 0..3 {
        let t = Instant::now();
        product(isa, a.view().into(), b.view().into(), &mut out).unwrap();
        let int = t.elapsed();
        let t = Instant::now();
        product(isa, Operand::from(a.view()).transposed(), Operand::from(b.view()).transposed(), &mut out).unwrap();
        let tr = t.elapsed();
        let t = Instant::now();
        unsafe {
            gemm::gemm(n, n, n, y.as_mut_ptr(), 1, n as isize, false, x.as_ptr(), 1, n as isize, x.as_ptr(), n as isize, 1, 0.0f32, 1.0, false, false, false, gemm::Parallelism::Rayon(0));
        }
        println!("{isa} int {int:?} transposed {tr:?} f32 {:?}", t.elapsed());
    }
}
