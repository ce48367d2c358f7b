//! SentencePiece vocabularies of GGUF files, run by the `tokenizers` library, against SentencePiece itself: see
//! `fixtures/sentence_piece.py`.

use std::collections::BTreeMap;

use thinwire_pretrained::{SpecialToken, TokenizerFiles};
use tokenizers::Tokenizer;

use crate::support::{asset, fixture, read_fixture};

const GEMMA: &str = "gemma-3-270m.Q4_K_M.gguf";

/// Compares ids both ways; a space and what stands for one inside tokens are the same.
fn check(name: &str, files: &TokenizerFiles) {
    let tokenizer = Tokenizer::from_bytes(&files.json).unwrap();
    let expected = read_fixture("sentence_piece/tokens.json");
    let expected: BTreeMap<String, Vec<(String, Vec<u32>)>> = serde_json::from_slice(&expected).unwrap();
    assert_eq!(expected[name].len(), 70);
    for (text, ids) in &expected[name] {
        let encoding = tokenizer.encode(text.as_str(), false).unwrap();
        assert_eq!(encoding.get_ids(), ids, "{name} {text:?}");
        let decoded = tokenizer.decode(ids, false).unwrap();
        assert_eq!(decoded, text.replace('\u{2581}', " "), "{name}");
    }
}

fn special(token: Option<&SpecialToken>) -> Option<(u32, &str)> {
    token.map(|token| (token.id, &*token.text))
}

#[test]
fn small_vocabularies_with_a_space_in_front_and_without() {
    for (name, add_bos) in [("prefix", true), ("plain", false)] {
        let files = TokenizerFiles::read(&fixture(&format!("sentence_piece/{name}.gguf"))).unwrap();
        check(name, &files);
        assert_eq!(special(files.bos.as_ref()), Some((1, "<s>")));
        assert_eq!(special(files.eos.as_ref()), Some((2, "</s>")));
        assert_eq!((files.add_bos, &files.stop[..]), (add_bos, &[2][..]), "{name}");
        let tokenizer = Tokenizer::from_bytes(&files.json).unwrap();
        let ids = tokenizer.encode("the", true).unwrap().get_ids().to_vec();
        assert_eq!(ids[0] == 1, add_bos, "{name}");
        let read = tokenizer.encode("<s>the</s>", false).unwrap();
        assert_eq!((read.get_ids()[0], read.get_ids().last()), (1, Some(&2)), "{name}");
    }
}

#[test]
fn gemma() {
    let Some(path) = asset(GEMMA) else { return };
    let files = TokenizerFiles::read(&path).unwrap();
    check(GEMMA, &files);
    assert_eq!(special(files.bos.as_ref()), Some((2, "<bos>")));
    assert_eq!(special(files.eos.as_ref()), Some((1, "<eos>")));
    assert_eq!((files.vocab_size, files.add_bos), (262_144, true));
}
