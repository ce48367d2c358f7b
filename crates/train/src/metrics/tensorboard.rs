//! `TensorBoard` event files.
//!
//! The file is a sequence of `TFRecord`s (`tensorflow/core/lib/io/record_writer.h`): length, masked CRC-32C of the
//! length, data, masked CRC-32C of the data. The data are `tensorflow.Event` messages (`event.proto`), of which four
//! fields are used, few enough to encode here.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::error::MetricsError;

/// An open event file. Each call is one write, so that a killed process tears no record but the last; readers skip
/// a torn one.
#[derive(Debug)]
pub(super) struct EventFile {
    file: File,
    path: PathBuf,
}

impl EventFile {
    /// Starts a new event file in `dir`. With `resume_step`, it tells readers to forget what older files in the
    /// folder say about later steps.
    pub(super) fn create(dir: &Path, resume_step: Option<u64>) -> Result<EventFile, MetricsError> {
        let now = wall_time();
        let (file, path) = new_file(dir, now as u64)?;
        let mut events = EventFile { file, path };
        let mut bytes = record(&version_event(now));
        if let Some(step) = resume_step {
            bytes.extend(record(&session_start_event(now, step + 1)));
        }
        events.write(&bytes)?;
        Ok(events)
    }

    /// Adds scalars of one step.
    pub(super) fn scalars(&mut self, step: u64, scalars: &[(String, f64)]) -> Result<(), MetricsError> {
        self.write(&record(&scalars_event(wall_time(), step, scalars)))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), MetricsError> {
        self.file.write_all(bytes).map_err(MetricsError::io("write", &self.path))
    }
}

/// Readers take a folder's event files in the order of their names: seconds since the epoch first, then a counter
/// for runs started within one second.
fn new_file(dir: &Path, seconds: u64) -> Result<(File, PathBuf), MetricsError> {
    let mut counter = 0;
    loop {
        let path = dir.join(format!("events.out.tfevents.{seconds:010}.thinwire.{counter}"));
        match File::options().append(true).create_new(true).open(&path) {
            Ok(file) => return Ok((file, path)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => counter += 1,
            Err(error) => return Err(MetricsError::io("create", &path)(error)),
        }
    }
}

fn wall_time() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |elapsed| elapsed.as_secs_f64())
}

fn record(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    let mut bytes = Vec::with_capacity(data.len() + 16);
    bytes.extend(length);
    bytes.extend(masked_crc(&length).to_le_bytes());
    bytes.extend(data);
    bytes.extend(masked_crc(data).to_le_bytes());
    bytes
}

/// CRC-32C, rotated and offset so that a checksum of data that holds checksums stays meaningful.
fn masked_crc(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// `Event { wall_time = 1, file_version = 3 }`
fn version_event(now: f64) -> Vec<u8> {
    let mut event = Message::default();
    event.double(1, now).bytes(3, b"brain.Event:2");
    event.0
}

/// `Event { wall_time = 1, step = 2, session_log = 7: SessionLog { status = 1: START = 1 } }`
fn session_start_event(now: f64, step: u64) -> Vec<u8> {
    let mut log = Message::default();
    log.varint(1, 1);
    let mut event = Message::default();
    event.double(1, now).varint(2, step).bytes(7, &log.0);
    event.0
}

/// `Event { wall_time = 1, step = 2, summary = 5: Summary { value = 1: Value { tag = 1, simple_value = 2 } } }`
fn scalars_event(now: f64, step: u64, scalars: &[(String, f64)]) -> Vec<u8> {
    let mut summary = Message::default();
    for (tag, value) in scalars {
        let mut entry = Message::default();
        entry.bytes(1, tag.as_bytes()).float(2, *value as f32);
        summary.bytes(1, &entry.0);
    }
    let mut event = Message::default();
    event.double(1, now).varint(2, step).bytes(5, &summary.0);
    event.0
}

/// A protocol buffer message under construction; the methods append one field each.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, field: u8, value: u64) -> &mut Message {
        self.key(field, 0).raw_varint(value)
    }

    fn double(&mut self, field: u8, value: f64) -> &mut Message {
        self.key(field, 1).0.extend(value.to_le_bytes());
        self
    }

    fn bytes(&mut self, field: u8, value: &[u8]) -> &mut Message {
        self.key(field, 2).raw_varint(value.len() as u64).0.extend(value);
        self
    }

    fn float(&mut self, field: u8, value: f32) -> &mut Message {
        self.key(field, 5).0.extend(value.to_le_bytes());
        self
    }

    fn key(&mut self, field: u8, wire_type: u8) -> &mut Message {
        self.raw_varint(u64::from(field << 3 | wire_type))
    }

    fn raw_varint(&mut self, mut value: u64) -> &mut Message {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
        self
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::tempdir;

    use super::*;

    /// What the writer of the Python package `tensorboard` 2.21 makes of the same three events.
    const GOLDEN: &str = "1800000000000000a37f4b220900002040fc54d9411a0d627261696e2e4576656e743a322b353110\
                          100000000000000095fbfe180900002040fc54d94110ad023a020801596f3f792d00000000000000\
                          3c418afb0900002040fc54d94110ac022a1f0a110a0a747261696e2f6c6f737315000088400a0a0a\
                          036e616e150000c07fcb3c5668";

    #[test]
    fn records_are_those_of_tensorboard() {
        let now = 1_700_000_000.5;
        let scalars = [("train/loss".to_owned(), 4.25), ("nan".to_owned(), f64::NAN)];
        let events = [version_event(now), session_start_event(now, 301), scalars_event(now, 300, &scalars)];
        let bytes = events.map(|event| record(&event)).concat();
        let hex = bytes.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
        assert_eq!(hex, GOLDEN);
    }

    #[test]
    fn checksums_are_castagnoli_and_masked() {
        // The check value of CRC-32C: 0xe3069283 before masking.
        assert_eq!(masked_crc(b"123456789"), 0xc78a_b0e5);
    }

    #[test]
    fn each_start_has_a_file_of_its_own() {
        let dir = tempdir().unwrap();
        let first = EventFile::create(dir.path(), None).unwrap();
        let size = fs::metadata(&first.path).unwrap().len();
        let second = EventFile::create(dir.path(), Some(300)).unwrap();
        assert!(first.path.file_name() < second.path.file_name(), "readers go by the names' order");
        assert_eq!(fs::metadata(&first.path).unwrap().len(), size);
    }
}
