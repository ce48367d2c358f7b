use std::fs;

use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use super::*;

/// Conversations as `datasets` and Arrow write them: a list of structs. Row `n` has `n` messages.
fn conversations(rows: usize, compression: Compression) -> Vec<u8> {
    let schema = "message schema {
        optional binary text (STRING);
        optional group messages (LIST) {
            repeated group list {
                optional group element { optional binary role (STRING); optional binary content (STRING); }
            }
        }
    }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = Arc::new(WriterProperties::builder().set_compression(compression).build());
    let mut file = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut file, schema, properties).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut write = |values: &[ByteArray], definition: &[i16], repetition: Option<&[i16]>| {
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<ByteArrayType>().write_batch(values, Some(definition), repetition).unwrap();
        column.close().unwrap();
    };
    let texts: Vec<ByteArray> = (0..rows).map(|row| ByteArray::from(&*format!("text {row}"))).collect();
    write(&texts, &vec![1; rows], None);
    // Present, null, or an empty list; new row or further element.
    let levels: Vec<(i16, i16)> = (0..rows)
        .flat_map(
            |row| if row == 0 { vec![(1, 0)] } else { (0..row).map(|at| (4, i16::from(at > 0))).collect() },
        )
        .collect();
    let (definition, repetition): (Vec<i16>, Vec<i16>) = levels.into_iter().unzip();
    let count = definition.iter().filter(|&&level| level == 4).count();
    for name in ["role", "content"] {
        let values: Vec<ByteArray> = (0..count).map(|at| ByteArray::from(&*format!("{name} {at}"))).collect();
        write(&values, &definition, Some(&repetition));
    }
    group.close().unwrap();
    writer.close().unwrap();
    file
}

fn read_bytes(bytes: &[u8], columns: &[&str]) -> Result<Vec<String>, DataError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.parquet");
    fs::write(&path, bytes).unwrap();
    let columns: Vec<String> = columns.iter().map(|&column| column.to_owned()).collect();
    let mut rows = Vec::new();
    read(&path, &columns, &mut |at, content| {
        let Ok(Content::Record(record)) = content else { panic!("not a record") };
        assert_eq!(at, At::Record(rows.len() as u64 + 1));
        rows.push(serde_json::to_string(&record).unwrap());
        Ok(())
    })?;
    Ok(rows)
}

#[test]
fn rows_of_texts_and_lists_are_read() {
    for compression in
        [Compression::UNCOMPRESSED, Compression::SNAPPY, Compression::ZSTD(ZstdLevel::default())]
    {
        let rows = read_bytes(&conversations(3, compression), &[]).unwrap();
        let expected = [
            r#"{"text":"text 0","messages":[]}"#,
            r#"{"text":"text 1","messages":[{"role":"role 0","content":"content 0"}]}"#,
            r#"{"text":"text 2","messages":[{"role":"role 1","content":"content 1"},{"role":"role 2","content":"content 2"}]}"#,
        ];
        assert_eq!(rows, expected);
    }
}

#[test]
fn only_the_columns_asked_for_are_read() {
    let rows = read_bytes(&conversations(2, Compression::SNAPPY), &["text", "absent"]).unwrap();
    assert_eq!(rows, [r#"{"text":"text 0"}"#, r#"{"text":"text 1"}"#]);
}

#[test]
fn truncated_files_are_refused() {
    let whole = conversations(5, Compression::SNAPPY);
    for end in 0..whole.len() {
        let error = read_bytes(&whole[..end], &[]).unwrap_err();
        assert!(matches!(error, DataError::Parquet { .. }), "{end}: {error}");
    }
}

#[test]
fn pages_that_unpack_to_too_much_are_refused() {
    let schema = Arc::new(parse_message_type("message schema { required binary text (STRING); }").unwrap());
    let zstd = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default()));
    let mut bomb = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bomb, schema, Arc::new(zstd.build())).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let text = ByteArray::from(vec![b'a'; LONGEST_RECORD + 1]);
    column.typed::<ByteArrayType>().write_batch(&[text], None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    assert!(bomb.len() < 1 << 16, "{} bytes", bomb.len());
    let error = chain(&read_bytes(&bomb, &[]).unwrap_err());
    assert!(error.contains(" bytes; at most 67108864 are read"), "{error}");
}

fn chain(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {}", chain(source)))
}

#[test]
fn flipped_bits_are_refused_or_read_and_never_fatal() {
    let whole = conversations(4, Compression::SNAPPY);
    for bit in 0..whole.len() * 8 {
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let _ = read_bytes(&damaged, &[]);
    }
}
