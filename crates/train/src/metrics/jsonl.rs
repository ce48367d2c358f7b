//! `metrics.jsonl`: one [`Record`] a line.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::error::MetricsError;
use super::record::Record;

/// The open file. Every record is one write of one whole line, so that a killed process tears none but the last.
#[derive(Debug)]
pub(super) struct MetricsFile {
    file: File,
    path: PathBuf,
}

impl MetricsFile {
    /// Starts a new file. An empty one is taken over: a run that failed before its first step left it.
    ///
    /// # Errors
    ///
    /// [`MetricsError::Exists`] if `path` holds something already.
    pub(super) fn create(path: &Path) -> Result<MetricsFile, MetricsError> {
        let open = File::options().append(true).create(true).open(path);
        let file = open.map_err(MetricsError::io("create", path))?;
        if file.metadata().map_err(MetricsError::io("read", path))?.len() > 0 {
            return Err(MetricsError::Exists { path: path.to_owned() });
        }
        Ok(MetricsFile { file, path: path.to_owned() })
    }

    /// Continues a file after `resume_step`: what lies past that step, and a torn last line, is dropped. The old
    /// file stays as it is until the new one is complete on disk. A missing file is a new one.
    pub(super) fn append(path: &Path, resume_step: u64) -> Result<MetricsFile, MetricsError> {
        if !path.try_exists().map_err(MetricsError::io("find", path))? {
            return MetricsFile::create(path);
        }
        let partial = path.with_extension("jsonl.partial");
        let file = keep_steps(path, &partial, resume_step).inspect_err(|_| {
            // The first error is the one to report.
            let _ = fs::remove_file(&partial);
        })?;
        fs::rename(&partial, path).map_err(MetricsError::io("replace", path))?;
        Ok(MetricsFile { file, path: path.to_owned() })
    }

    /// Adds a line.
    pub(super) fn write(&mut self, record: &Record) -> Result<(), MetricsError> {
        let line = serde_json::to_vec(record);
        let mut line = line.map_err(|error| MetricsError::io("encode", &self.path)(error.into()))?;
        line.push(b'\n');
        self.file.write_all(&line).map_err(MetricsError::io("write", &self.path))
    }
}

/// Copies the complete lines up to `last_step` into a new file, safely on disk when this returns.
fn keep_steps(from: &Path, to: &Path, last_step: u64) -> Result<File, MetricsError> {
    let mut kept = BufWriter::new(File::create(to).map_err(MetricsError::io("create", to))?);
    for_each_line(from, |line, record| {
        if record.step() <= last_step {
            kept.write_all(line).map_err(MetricsError::io("write", to))?;
        }
        Ok(())
    })?;
    let file = kept.into_inner().map_err(|error| MetricsError::io("write", to)(error.into_error()))?;
    file.sync_all().map_err(MetricsError::io("write", to))?;
    Ok(file)
}

/// Reads the complete lines of a `metrics.jsonl`, of a run that may still be running.
///
/// # Errors
///
/// [`MetricsError::Io`] if the file cannot be read, [`MetricsError::Corrupt`] at a line that is not a record.
pub fn read_records(path: &Path) -> Result<Vec<Record>, MetricsError> {
    let mut records = Vec::new();
    for_each_line(path, |_, record| {
        records.push(record);
        Ok(())
    })?;
    Ok(records)
}

/// Calls `visit` with each line, its newline included, and what it says. A last line without a newline is torn and
/// left out.
fn for_each_line(
    path: &Path,
    mut visit: impl FnMut(&[u8], Record) -> Result<(), MetricsError>,
) -> Result<(), MetricsError> {
    let mut reader = BufReader::new(File::open(path).map_err(MetricsError::io("open", path))?);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        reader.read_until(b'\n', &mut line).map_err(MetricsError::io("read", path))?;
        if line.last() != Some(&b'\n') {
            break;
        }
        let record = serde_json::from_slice(&line).map_err(|source| MetricsError::Corrupt {
            path: path.to_owned(),
            line: number,
            source,
        })?;
        visit(&line, record)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tempfile::tempdir;

    use super::super::record::EvalRecord;
    use super::*;

    fn eval(step: u64) -> Record {
        Record::Eval(EvalRecord { step, loss: f64::NAN, perplexity: f64::INFINITY, tokens: 8, seconds: 0.5 })
    }

    fn steps(path: &Path) -> Vec<u64> {
        read_records(path).unwrap().iter().map(Record::step).collect()
    }

    #[test]
    fn a_resumed_file_has_each_step_once() {
        let dir = tempdir().unwrap();
        let path = dir.path().join("metrics.jsonl");
        let mut file = MetricsFile::create(&path).unwrap();
        (1..=5).for_each(|step| file.write(&eval(step)).unwrap());
        file.file.write_all(br#"{"kind":"eval","st"#).unwrap();
        assert_eq!(steps(&path), [1, 2, 3, 4, 5]);

        let mut file = MetricsFile::append(&path, 3).unwrap();
        file.write(&eval(4)).unwrap();
        assert_eq!(steps(&path), [1, 2, 3, 4]);
        assert!(fs::read(&path).unwrap().ends_with(b"}\n"));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "the partial file is gone");
    }

    #[test]
    fn a_file_with_records_is_not_overwritten_and_a_missing_or_empty_one_is_taken() {
        let dir = tempdir().unwrap();
        let path = dir.path().join("metrics.jsonl");
        drop(MetricsFile::append(&path, 3).unwrap());
        MetricsFile::create(&path).unwrap().write(&eval(4)).unwrap();
        assert!(matches!(MetricsFile::create(&path), Err(MetricsError::Exists { .. })));
        assert_eq!(steps(&path), [4]);
    }

    #[test]
    fn a_corrupt_line_is_named_and_the_file_left_alone() {
        let dir = tempdir().unwrap();
        let path = dir.path().join("metrics.jsonl");
        MetricsFile::create(&path).unwrap().write(&eval(1)).unwrap();
        let mut bytes = fs::read(&path).unwrap();
        bytes.extend_from_slice(b"{\"kind\":\"lunch\"}\n");
        fs::write(&path, &bytes).unwrap();
        let error = MetricsFile::append(&path, 1).unwrap_err();
        assert!(matches!(error, MetricsError::Corrupt { line: 2, .. }), "{error}");
        assert_eq!(fs::read(&path).unwrap(), bytes);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no partial file is left");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_an_error_with_the_path() {
        let file = File::options().write(true).open("/dev/full").unwrap();
        let path = PathBuf::from("run/metrics.jsonl");
        let error = MetricsFile { file, path }.write(&eval(1)).unwrap_err();
        assert_eq!(error.to_string(), "cannot write run/metrics.jsonl");
    }
}
