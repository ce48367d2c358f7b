//! Data that is much larger than the memory it takes: tokenizing it, and taking batches of it.
#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::io::{BufWriter, Write};

use thinwire_data::{BatchSize, Batches, Cache, DataSettings, Dataset, Tokenizer, TokenizerSource};

/// The most memory that this process has had resident, in bytes.
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

#[test]
fn neither_tokenizing_nor_training_holds_the_data() {
    const RECORDS: usize = 40_000;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.jsonl");
    let mut file = BufWriter::new(File::create(&path).unwrap());
    let sentence = "It goes on like this, and on, and on. ".repeat(26);
    for record in 0..RECORDS {
        writeln!(file, "{{\"text\": \"{record}: {sentence}\"}}").unwrap();
    }
    drop(file);

    let tokenizer = Tokenizer::load(&TokenizerSource::Byte).unwrap();
    let cache = folder.path().join("tokens");
    let cache = Cache::IfLarge(&cache);
    let size = BatchSize { sequence: 512, micro_batch: 4, micro_batches: 8 };
    let before = peak_memory();
    let dataset =
        Dataset::open(&[path], &DataSettings::default(), &tokenizer, size.sequence, cache, &mut |_| {})
            .unwrap();
    let bytes = 4 * dataset.summary().tokens;
    assert_eq!(dataset.summary().documents, RECORDS as u64);
    let mut batches = Batches::new(dataset, size, 0);
    for step in (0..2000).step_by(7) {
        assert_eq!(batches.step(step).unwrap().len(), size.micro_batches);
    }
    let taken = peak_memory() - before;
    // 160 MB of tokens of 40 MB of text.
    assert!(bytes > 150 << 20, "{bytes}");
    assert!(taken < 16 << 20, "{taken} bytes for {bytes} bytes of tokens");
}
