//! Unsafe code stays where it is looked for.

use super::Finding;
use super::files::Files;
use super::text::{code, word_positions};

/// Files, each with its reason.
const LISTED: [(&str, &str); 18] = [
    ("crates/codec-c/src/lib.rs", "pointers from C"),
    ("crates/codec-c/tests/c_example.rs", "calls what is made for C"),
    ("crates/codec/src/simd/avx2.rs", "vector instructions, each behind a safe wrapper"),
    ("crates/codec/src/simd/avx512.rs", "vector instructions, each behind a safe wrapper"),
    ("crates/codec/src/simd/neon.rs", "vector instructions, each behind a safe wrapper"),
    ("crates/codec/tests/steady_state.rs", "a global allocator that counts"),
    ("crates/collective/src/shared/map.rs", "a mapped file as atomic words"),
    ("crates/collective/tests/allocations.rs", "a global allocator that counts"),
    ("crates/int4/examples/int4_bench.rs", "gemm takes pointers"),
    ("crates/int4/src/gemm/microkernel/amx.rs", "tile instructions and the call that permits them"),
    ("crates/int4/src/gemm/microkernel/avx2.rs", "vector instructions, each behind a safe wrapper"),
    ("crates/int4/src/gemm/microkernel/avx512.rs", "vector instructions, each behind a safe wrapper"),
    ("crates/int4/src/gemm/microkernel/neon.rs", "vector instructions, each behind a safe wrapper"),
    ("crates/int4/src/simd/avx2.rs", "vector instructions, each behind a safe wrapper"),
    ("crates/int4/src/simd/avx512.rs", "vector instructions, each behind a safe wrapper"),
    ("crates/int4/src/simd/neon.rs", "vector instructions, each behind a safe wrapper"),
    ("crates/ops/src/kernel/product.rs", "matrix products take pointers, behind a safe wrapper"),
    ("crates/train/tests/plan/allocator.rs", "a global allocator that counts"),
];

pub(super) fn find(files: &Files) -> Vec<Finding> {
    let listed = |path: &str| LISTED.iter().any(|(place, _)| path == *place);
    let mut findings = Vec::new();
    for file in files.with_extension("rs").filter(|file| file.path != file!() && !listed(&file.path)) {
        for (number, line) in file.lines() {
            if opens_unsafe(code(line)) {
                findings.push(Finding::new(&file.path, number, "unsafe code in a file not listed for it"));
            }
        }
    }
    findings
}

/// Whether `code` has a block, an item or an attribute marked unsafe.
fn opens_unsafe(code: &str) -> bool {
    const NEXT: [&str; 6] = ["{", "(", "fn ", "impl", "extern ", "trait "];
    let word = "unsafe";
    word_positions(code, word).into_iter().any(|at| {
        let rest = code[at + word.len()..].trim_start();
        NEXT.iter().any(|next| rest.starts_with(next))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outside_the_listed_places() {
        let block = "// unsafe\nlet x = unsafe { f() };\n";
        let files = Files::of([
            ("crates/codec/src/simd/avx2.rs", block),
            ("crates/codec/src/simd.rs", block),
            ("crates/codec/src/lib.rs", "#![forbid(unsafe_code)]\nconst RULE: &str = \"unsafe code\";\n"),
            ("crates/link/src/tcp.rs", "#[unsafe(no_mangle)]\nunsafe fn f() {}\n"),
        ]);
        let found: Vec<_> = find(&files).into_iter().map(|finding| (finding.path, finding.line)).collect();
        let expected =
            [("crates/codec/src/simd.rs", 2), ("crates/link/src/tcp.rs", 1), ("crates/link/src/tcp.rs", 2)];
        assert_eq!(found, expected.map(|(path, line)| (path.to_owned(), line)));
    }
}
