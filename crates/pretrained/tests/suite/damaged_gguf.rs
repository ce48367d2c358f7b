//! GGUF files that are not what they claim.

use std::fs;

use proptest::prelude::*;
use thinwire_pretrained::{Gguf, Pretrained, TokenizerFiles};

use crate::support::{open_and_read, read_fixture};

/// What opening and reading everything says about `bytes` as a file.
fn open(bytes: &[u8]) -> Result<(), String> {
    let file = tempfile::Builder::new().suffix(".gguf").tempfile().unwrap();
    fs::write(file.path(), bytes).unwrap();
    open_and_read(file.path()).map_err(|error| error.to_string())?;
    Pretrained::open(file.path()).unwrap().tokenizer().map(|_| ()).map_err(|error| error.to_string())
}

/// A file of `tensors` and `pairs`, whose bytes are `rest`.
fn head(tensors: u64, pairs: u64, rest: &[u8]) -> Vec<u8> {
    [b"GGUF", &3_u32.to_le_bytes()[..], &tensors.to_le_bytes(), &pairs.to_le_bytes(), rest].concat()
}

fn string(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat()
}

/// A pair whose value of type `kind` is `value`.
fn pair(key: &str, kind: u32, value: &[u8]) -> Vec<u8> {
    [&string(key)[..], &kind.to_le_bytes(), value].concat()
}

/// A line of the table of tensors.
fn tensor(name: &str, dimensions: &[u64], kind: u32, offset: u64) -> Vec<u8> {
    let count = u32::try_from(dimensions.len()).unwrap();
    let dimensions: Vec<u8> = dimensions.iter().flat_map(|len| len.to_le_bytes()).collect();
    [&string(name)[..], &count.to_le_bytes(), &dimensions, &kind.to_le_bytes(), &offset.to_le_bytes()]
        .concat()
}

#[track_caller]
fn refused(bytes: &[u8], expected: &str) {
    let error = open(bytes).unwrap_err();
    assert!(error.contains(expected), "{error}");
}

#[test]
fn versions() {
    refused(b"GGML....", "first bytes: expected GGUF, found GGML");
    refused(b"GGUF\x01\0\0\0", "`GGUF version` is 1, which is not supported; supported: 2, 3");
    refused(b"GGUF\0\0\0\x03", "`byte order` is big-endian");
    refused(b"GGU", "items of at least 1 bytes, found 3 bytes left");
    let mut version2 = read_fixture("models/gpt2.gguf");
    version2[4] = 2;
    open(&version2).unwrap();
}

#[test]
fn forged_counts_and_lengths() {
    refused(&head(u64::MAX, 0, &[]), "number of tensors: expected at most 1048576");
    refused(
        &head(0, u64::MAX, &[]),
        "expected 18446744073709551615 items of at least 13 bytes, found 0 bytes left",
    );
    refused(
        &head(0, 1, &pair("k", 8, &[&u64::MAX.to_le_bytes()[..], &[0; 8]].concat())),
        "found 8 bytes left",
    );
    let array = |kind: u32, len: u64| [&kind.to_le_bytes()[..], &len.to_le_bytes(), &[0; 64]].concat();
    refused(
        &head(0, 1, &pair("k", 9, &array(8, 9))),
        "expected 9 items of at least 8 bytes, found 64 bytes left",
    );
    refused(
        &head(0, 1, &pair("k", 9, &array(10, 1 << 61))),
        "items of at least 8 bytes, found 64 bytes left",
    );
    refused(&head(0, 1, &pair("k", 9, &array(9, 1))), "element type of metadata `k`");
    refused(&head(0, 1, &pair("k", 13, &[0; 8])), "type of metadata `k`: expected 0 to 12, found 13");
    refused(&head(0, 1, &pair("k", 7, &[2])), "metadata `k`: expected a boolean, 0 or 1, found 2");
    refused(&head(0, 1, &pair("\u{80}", 7, &[1])[..]), "general.architecture");
    let twice = [pair("k", 7, &[1]), pair("k", 7, &[1])].concat();
    refused(&head(0, 2, &twice), "metadata `k`: expected one of this key, found more");
    let not_text = [&3_u64.to_le_bytes()[..], b"a\xff\xfe", &7_u32.to_le_bytes(), &[1]].concat();
    refused(&head(0, 1, &not_text), "string at byte 24: expected UTF-8");
}

#[test]
fn forged_tensors() {
    let one = |rest: &[u8]| head(1, 0, &[rest, &[0; 64]].concat());
    refused(&one(&tensor("t", &[1; 5], 0, 0)), "dimensions of tensor `t`: expected at most 4, found 5");
    refused(&one(&tensor("t", &[1 << 40, 1 << 40], 0, 0)), "expected rows of whole blocks");
    refused(&one(&tensor("t", &[u64::MAX], 0, 0)), "expected rows of whole blocks");
    refused(&one(&tensor("t", &[33], 2, 0)), "expected rows of whole blocks of 32, found shape [33] in Q4_0");
    refused(&one(&tensor("t", &[4], 0, 4)), "an offset that is a multiple of 32, found 4");
    refused(&one(&tensor("t", &[4], 0, u64::MAX - 31)), "to end within the");
    refused(&one(&tensor("t", &[64], 0, 0)), "to end within the");
    refused(
        &one(&tensor("t", &[32], 10, 0)),
        "`tensor t` is Q2_K, which is not supported; supported: F32, F16",
    );
    refused(&one(&tensor("t", &[32], 77, 0)), "`tensor t` is of type 77");
    let twice = [tensor("t", &[4], 0, 0), tensor("t", &[4], 0, 0), vec![0; 64]].concat();
    refused(&head(2, 0, &twice), "tensor `t`: expected one of this name, found more");
    for alignment in [0_u32, 24, 1 << 31] {
        let pairs = pair("general.alignment", 4, &alignment.to_le_bytes());
        refused(&head(0, 1, &pairs), "metadata `general.alignment`: expected a power of two");
    }
}

#[test]
fn metadata_that_describes_another_computation() {
    let whole = read_fixture("models/qwen2.gguf");
    let replaced = |from: &[u8], to: &[u8]| {
        let at = whole.windows(from.len()).position(|bytes| bytes == from).unwrap();
        [&whole[..at], to, &whole[at + from.len()..]].concat()
    };
    refused(&replaced(&string("qwen2"), &string("mamba")), "`general.architecture` is \"mamba\"");
    refused(
        &replaced(
            &pair("tokenizer.ggml.pre", 8, &string("qwen2")),
            &pair("tokenizer.ggml.pre", 8, &string("other")),
        ),
        "`tokenizer.ggml.pre` is \"other\", which is not supported",
    );
    refused(
        &replaced(
            &pair("tokenizer.ggml.model", 8, &string("gpt2")),
            &pair("tokenizer.ggml.model", 8, &string("bert")),
        ),
        "`tokenizer.ggml.model` is \"bert\"",
    );
    let epsilon = string("qwen2.attention.layer_norm_rms_epsilon");
    refused(
        &replaced(&epsilon, &string("qwen2.attention.layer_norm_rms_epsilom")),
        "rms_epsilon`: expected a value",
    );
    refused(
        &replaced(&string("blk.1.attn_q.bias"), &string("blk.1.attn_q.bios")),
        "unexpected: blk.1.attn_q.bios",
    );
}

/// A file with a SentencePiece vocabulary of three tokens, one of them unknown, and `pairs`.
fn vocabulary(pairs: &[Vec<u8>]) -> Result<TokenizerFiles, String> {
    let array = |kind: u32, items: Vec<u8>| [&kind.to_le_bytes()[..], &3_u64.to_le_bytes(), &items].concat();
    let tokens = pair("tokenizer.ggml.tokens", 9, &array(8, ["a", "b", "ab"].map(string).concat()));
    let model = pair("tokenizer.ggml.model", 8, &string("llama"));
    let bytes = head(0, 2 + pairs.len() as u64, &[model, tokens, pairs.concat()].concat());
    let file = tempfile::Builder::new().suffix(".gguf").tempfile().unwrap();
    fs::write(file.path(), bytes).unwrap();
    TokenizerFiles::read(file.path()).map_err(|error| error.to_string())
}

#[test]
fn sentence_piece_vocabularies() {
    let scores = |scores: &[f32]| {
        let items: Vec<u8> = scores.iter().flat_map(|score| score.to_le_bytes()).collect();
        let len = scores.len() as u64;
        pair("tokenizer.ggml.scores", 9, &[&6_u32.to_le_bytes()[..], &len.to_le_bytes(), &items].concat())
    };
    let unknown = |id: u32| pair("tokenizer.ggml.unknown_token_id", 4, &id.to_le_bytes());
    let whole = scores(&[0.0, 0.0, -1.0]);
    vocabulary(&[unknown(0), whole.clone()]).unwrap();
    let flag = |key: &str, value: u8| pair(&format!("tokenizer.ggml.{key}"), 7, &[value]);
    for (pairs, expected) in [
        (vec![unknown(0)], "metadata `tokenizer.ggml.scores`: expected a value, found none"),
        (vec![whole.clone()], "metadata `tokenizer.ggml.unknown_token_id`: expected a value, found none"),
        (vec![unknown(3), whole.clone()], "unknown_token_id`: expected below 3, found 3"),
        (
            vec![unknown(0), scores(&[0.0; 2])],
            "length of metadata `tokenizer.ggml.scores`: expected 3, found 2",
        ),
        (vec![unknown(0), scores(&[f32::NAN; 3])], "`tokenizer.ggml.scores`: expected numbers, found NaN"),
        (
            vec![unknown(0), whole.clone(), flag("remove_extra_whitespaces", 1)],
            "`tokenizer.ggml.remove_extra_whitespaces` is true, which is not supported; supported: false",
        ),
        (
            vec![unknown(0), whole.clone(), flag("precompiled_charsmap", 1)],
            "`tokenizer.ggml.precompiled_charsmap` is true, which is not supported; supported: none",
        ),
        (vec![unknown(0), whole, flag("add_eos_token", 1)], "`tokenizer.ggml.add_eos_token` is true"),
    ] {
        let error = vocabulary(&pairs).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn truncated_anywhere() {
    let whole = read_fixture("models/smollm.gguf");
    open(&whole).unwrap();
    for len in (0..whole.len()).step_by(61).chain([whole.len() - 1]) {
        open(&whole[..len]).unwrap_err();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Opening damaged files never panics, and never takes more than the file can hold.
    #[test]
    fn mutated_head(model in 0..5_usize, changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut bytes = read_fixture(&format!("models/{}.gguf", crate::support::SMALL[model]));
        // The head is what matters: values have no wrong bits.
        let head = bytes.len() / 2;
        for (at, byte) in changes {
            bytes[at.index(head)] = byte;
        }
        let _ = open(&bytes); // either is fine
    }
}

#[test]
fn any_architecture_can_be_looked_into() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let bytes = head(1, 0, &[tensor("t", &[2, 1], 0, 0), vec![0; 64]].concat());
    fs::write(file.path(), bytes).unwrap();
    let file = Gguf::open(file.path()).unwrap();
    assert_eq!(file.shape("t"), Some(&[1, 2][..]));
    assert_eq!(file.read("t").unwrap(), [0.0, 0.0]);
    assert!(file.read("u").unwrap_err().to_string().contains("tensor `u`: expected one, found none"));
}
