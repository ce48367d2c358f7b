//! No GGUF file makes the reader panic or take more memory than the file accounts for.

#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;
use thinwire_pretrained::{Gguf, Pretrained};

fuzz_target!(|data: &[u8]| {
    let file = tempfile::Builder::new().suffix(".gguf").tempfile().expect("a place for temporary files");
    fs::write(file.path(), data).expect("space for a temporary file");
    if let Ok(gguf) = Gguf::open(file.path()) {
        for name in gguf.names() {
            let _ = gguf.read(name); // either is fine
        }
    }
    if let Ok(model) = Pretrained::open(file.path()) {
        let _ = model.tokenizer();
    }
});
