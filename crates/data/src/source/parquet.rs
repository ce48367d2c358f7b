//! Rows of a Parquet file.

use std::fs::File;
use std::io::{BufReader, Read};
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use minijinja::Value;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, FileReader, Length, SerializedFileReader};
use parquet::record::{Field, Row};
use parquet::schema::types::Type;

use super::{At, Content, LONGEST_RECORD, Visit};
use crate::DataError;

/// Reads every row, of the given columns alone (all, if there are none given).
pub(super) fn read(path: &Path, columns: &[String], visit: &mut Visit<'_>) -> Result<(), DataError> {
    let unusable = |source| DataError::Parquet { path: path.into(), source };
    let file = File::open(path).map_err(|source| DataError::Read { path: path.into(), source })?;
    let reader = caught(|| SerializedFileReader::new(BoundedPages(file))).map_err(unusable)?;
    let projection = project(reader.metadata().file_metadata().schema(), columns).map_err(unusable)?;
    let mut rows = caught(|| reader.get_row_iter(projection)).map_err(unusable)?;
    for number in 1.. {
        match caught(|| rows.next().transpose()).map_err(unusable)? {
            Some(row) => visit(At::Record(number), Ok(Content::Record(row_value(row))))?,
            None => break,
        }
    }
    Ok(())
}

/// The reader's own checks do not cover every damaged file; it panics on some.
fn caught<T>(read: impl FnOnce() -> ParquetResult<T>) -> ParquetResult<T> {
    panic::catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(ParquetError::General("the file is damaged".to_owned())))
}

/// The schema with only the columns that are needed: others are not even decoded.
fn project(schema: &Type, columns: &[String]) -> ParquetResult<Option<Type>> {
    if columns.is_empty() {
        return Ok(None);
    }
    let wanted = |field: &&Arc<Type>| columns.iter().any(|column| column == field.name());
    let fields = schema.get_fields().iter().filter(wanted).cloned().collect();
    Type::group_type_builder(schema.name()).with_fields(fields).build().map(Some)
}

fn row_value(row: Row) -> Value {
    Value::from_pairs(row.into_columns().into_iter().map(|(name, field)| (name, value(field))))
}

fn value(field: Field) -> Value {
    match field {
        Field::Null => Value::from(()),
        Field::Bool(value) => value.into(),
        Field::Byte(value) => value.into(),
        Field::Short(value) => value.into(),
        Field::Int(value) | Field::Date(value) | Field::TimeMillis(value) => value.into(),
        Field::Long(value)
        | Field::TimeMicros(value)
        | Field::TimestampMillis(value)
        | Field::TimestampMicros(value) => value.into(),
        Field::UByte(value) => value.into(),
        Field::UShort(value) => value.into(),
        Field::UInt(value) => value.into(),
        Field::ULong(value) => value.into(),
        Field::Float(value) => value.into(),
        Field::Double(value) => value.into(),
        Field::Str(text) => text.into(),
        // Writers without a string type leave text as bytes.
        Field::Bytes(bytes) => match bytes.as_utf8() {
            Ok(text) => text.into(),
            Err(_) => Value::from_bytes(bytes.data().to_vec()),
        },
        Field::Group(row) => row_value(row),
        Field::ListInternal(list) => list.elements().iter().cloned().map(value).collect(),
        Field::MapInternal(map) => {
            Value::from_pairs(map.entries().iter().cloned().map(|(key, entry)| (value(key), value(entry))))
        }
        other => other.to_string().into(),
    }
}

/// A file that refuses pages of more than [`LONGEST_RECORD`] bytes once unpacked: a few bytes could claim 2 GiB.
struct BoundedPages(File);

impl Length for BoundedPages {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl ChunkReader for BoundedPages {
    type T = BufReader<File>;

    /// What is read this way begins with the header of a page.
    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        let mut head = Vec::new();
        self.0.get_read(start)?.take(16).read_to_end(&mut head)?;
        match unpacked_size(&head) {
            Some(size) if size > LONGEST_RECORD as u64 => Err(ParquetError::General(format!(
                "a page of {size} bytes; at most {LONGEST_RECORD} are read"
            ))),
            _ => self.0.get_read(start),
        }
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        // Checked first: the length comes from the file, and memory would be taken for it.
        if start.checked_add(length as u64).is_none_or(|end| end > self.len()) {
            return Err(ParquetError::EOF(format!("{length} bytes at {start}: behind the end of the file")));
        }
        self.0.get_bytes(start, length)
    }
}

/// `uncompressed_page_size` of a `PageHeader` in Thrift's compact protocol: two i32 fields, 1 and 2, come first.
fn unpacked_size(head: &[u8]) -> Option<u64> {
    const NEXT_FIELD_I32: u8 = 0x15;
    let mut bytes = head.iter().copied();
    let mut field = || {
        if bytes.next()? != NEXT_FIELD_I32 {
            return None;
        }
        let mut varint = 0u64;
        for shift in (0..35).step_by(7) {
            let byte = bytes.next()?;
            varint |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(varint);
            }
        }
        None
    };
    field()?;
    field().map(|zigzag| zigzag >> 1) // a negative size is refused by the reader itself
}

#[cfg(test)]
mod tests;
