//! `trace.json`: a Chrome trace, for Perfetto or `chrome://tracing`.
//!
//! The file is the array form of the format, which viewers accept without its end. Every event is a line that ends
//! in a comma; [`TraceFile::close`] adds a last one without a comma and the closing bracket.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::error::MetricsError;
use super::event::Span;

/// Bytes at the end of a file in which its last whole event is looked for; an event takes about 150.
const TAIL: u64 = 64 * 1024;

/// An open trace. A stage is a process of the trace, a lane one of its threads.
#[derive(Debug)]
pub(super) struct TraceFile {
    file: File,
    path: PathBuf,
    /// Lane names of each stage; a lane's thread number is its position.
    lanes: BTreeMap<usize, Vec<String>>,
}

impl TraceFile {
    /// Starts a new trace, in place of one that may be there.
    pub(super) fn create(path: &Path) -> Result<TraceFile, MetricsError> {
        let file = File::create(path).map_err(MetricsError::io("create", path))?;
        let mut trace = TraceFile { file, path: path.to_owned(), lanes: BTreeMap::new() };
        trace.write(b"[\n")?;
        Ok(trace)
    }

    /// Continues a trace, whether it was closed or cut. Steps that are done again appear twice: a trace shows what
    /// happened when.
    pub(super) fn append(path: &Path) -> Result<TraceFile, MetricsError> {
        if !path.try_exists().map_err(MetricsError::io("find", path))? {
            return TraceFile::create(path);
        }
        let mut file =
            File::options().read(true).write(true).open(path).map_err(MetricsError::io("open", path))?;
        let Some(end) = end_of_events(&mut file).map_err(MetricsError::io("read", path))? else {
            return TraceFile::create(path);
        };
        file.set_len(end).map_err(MetricsError::io("shorten", path))?;
        file.seek(SeekFrom::End(0)).map_err(MetricsError::io("write", path))?;
        Ok(TraceFile { file, path: path.to_owned(), lanes: BTreeMap::new() })
    }

    /// Adds spans of one stage, in one write.
    pub(super) fn spans(&mut self, stage: usize, spans: &[Span]) -> Result<(), MetricsError> {
        let mut lines = Vec::new();
        for span in spans {
            let tid = self.thread(stage, &span.lane, &mut lines);
            push_line(
                &mut lines,
                &json!({
                    "name": span.name, "ph": "X", "pid": stage, "tid": tid,
                    "ts": span.start_us, "dur": span.duration_us,
                    "args": { "step": span.step, "micro_batch": span.micro_batch },
                }),
            );
        }
        self.write(&lines)
    }

    /// Ends the array.
    pub(super) fn close(mut self) -> Result<(), MetricsError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as u64;
        let end = json!({ "name": "end of run", "ph": "i", "s": "g", "pid": 0, "tid": 0, "ts": now });
        self.write(format!("{end}\n]\n").as_bytes())
    }

    /// The lane's thread number; names the lane, and the stage with it, when first seen.
    fn thread(&mut self, stage: usize, lane: &str, out: &mut Vec<u8>) -> usize {
        let lanes = self.lanes.entry(stage).or_insert_with(|| {
            let name = json!({ "name": format!("stage {stage}") });
            push_line(out, &metadata("process_name", stage, 0, &name));
            push_line(out, &metadata("process_sort_index", stage, 0, &json!({ "sort_index": stage })));
            Vec::new()
        });
        if let Some(tid) = lanes.iter().position(|name| name == lane) {
            return tid;
        }
        let tid = lanes.len();
        lanes.push(lane.to_owned());
        push_line(out, &metadata("thread_name", stage, tid, &json!({ "name": lane })));
        tid
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), MetricsError> {
        self.file.write_all(bytes).map_err(MetricsError::io("write", &self.path))
    }
}

fn metadata(name: &str, pid: usize, tid: usize, args: &Value) -> Value {
    json!({ "name": name, "ph": "M", "pid": pid, "tid": tid, "args": args })
}

fn push_line(lines: &mut Vec<u8>, event: &Value) {
    lines.extend(event.to_string().as_bytes());
    lines.extend(b",\n");
}

/// Where the last event that is followed by a comma ends; `None` if there is none.
fn end_of_events(file: &mut File) -> std::io::Result<Option<u64>> {
    let length = file.seek(SeekFrom::End(0))?;
    let start = length.saturating_sub(TAIL);
    file.seek(SeekFrom::Start(start))?;
    let mut tail = Vec::new();
    file.take(TAIL).read_to_end(&mut tail)?;
    let last = tail.windows(3).rposition(|window| window == b"},\n");
    Ok(last.map(|index| start + index as u64 + 3))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::tempdir;

    use super::super::samples;
    use super::*;

    /// The events of a file, closed or cut after a whole line.
    fn read(path: &Path) -> Vec<Value> {
        let text = fs::read_to_string(path).unwrap();
        let closed = if text.ends_with("]\n") {
            text
        } else {
            text.strip_suffix(",\n").expect("events end in a comma").to_owned() + "]"
        };
        serde_json::from_str(&closed).unwrap()
    }

    fn spans(events: &[Value]) -> Vec<u64> {
        let spans = events.iter().filter(|event| event["ph"] == "X");
        spans.map(|event| event["args"]["step"].as_u64().unwrap()).collect()
    }

    #[test]
    fn stages_are_processes_and_lanes_threads() {
        let dir = tempdir().unwrap();
        let path = dir.path().join("trace.json");
        let mut trace = TraceFile::create(&path).unwrap();
        let send =
            Span { name: "say \"hi\"".into(), lane: "send".into(), micro_batch: None, ..samples::span(2) };
        trace.spans(1, &[samples::span(1), send, samples::span(2)]).unwrap();
        assert_eq!(spans(&read(&path)), [1, 2, 2], "readable before it is closed");
        trace.close().unwrap();

        let events: Vec<Value> = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let named = |name: &str, tid: u64| {
            let found = events.iter().find(|event| event["name"] == name && event["tid"] == tid).unwrap();
            assert_eq!((&found["ph"], &found["pid"]), (&json!("M"), &json!(1)));
            found["args"]["name"].clone()
        };
        assert_eq!(named("process_name", 0), "stage 1");
        assert_eq!((named("thread_name", 0), named("thread_name", 1)), (json!("compute"), json!("send")));
        let send = events.iter().find(|event| event["name"] == "say \"hi\"").unwrap();
        assert_eq!((&send["tid"], &send["dur"]), (&json!(1), &json!(7)));
        assert_eq!(send["ts"], 1_700_000_000_000_002_u64);
    }

    #[test]
    fn a_closed_a_cut_and_a_torn_trace_can_be_continued() {
        let dir = tempdir().unwrap();
        let path = dir.path().join("trace.json");
        let mut trace = TraceFile::create(&path).unwrap();
        trace.spans(0, &[samples::span(1)]).unwrap();
        trace.close().unwrap();
        let mut trace = TraceFile::append(&path).unwrap();
        trace.spans(0, &[samples::span(2)]).unwrap();
        drop(trace);
        let mut trace = TraceFile::append(&path).unwrap();
        trace.spans(0, &[samples::span(3)]).unwrap();
        trace.write(br#"{"name":"forw"#).unwrap();
        drop(trace);
        let mut trace = TraceFile::append(&path).unwrap();
        trace.spans(0, &[samples::span(4)]).unwrap();
        trace.close().unwrap();
        assert!(fs::read_to_string(&path).unwrap().ends_with("]\n"));
        assert_eq!(spans(&read(&path)), [1, 2, 3, 4]);
    }

    #[test]
    fn a_missing_or_empty_trace_starts_anew() {
        let dir = tempdir().unwrap();
        for (name, content) in [("missing", None), ("empty", Some("")), ("begun", Some("[\n"))] {
            let path = dir.path().join(name);
            if let Some(content) = content {
                fs::write(&path, content).unwrap();
            }
            let mut trace = TraceFile::append(&path).unwrap();
            trace.spans(0, &[samples::span(1)]).unwrap();
            trace.close().unwrap();
            assert_eq!(spans(&read(&path)), [1], "{name}");
        }
    }
}
