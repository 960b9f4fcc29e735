//! The laboratory's file of events: one JSON object per line, appended by every process.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use serde_json::{Map, Value};
use weft_wire::printable_json;

use crate::utc_now;

/// More than this waits for no further line.
const GATHERED_BYTES_MAX: usize = 32 * 1024;

/// The file grows no further than this; what comes after is lost, and the last line of each source says so.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Appends events of one source. Gathers lines, so that bringing up a fabric costs a write now and then and not one per event.
#[derive(Debug)]
pub struct Journal {
    file: Option<File>,
    source: String,
    gathered: String,
    /// Events that could not be written.
    lost: u64,
    /// Of these, how many the file does not tell of.
    untold: u64,
}

impl Journal {
    /// Appends to an existing file. Where there is none, the laboratory does not want to know.
    pub fn open(path: Option<&Path>, source: &str) -> Self {
        let file = path.and_then(|path| File::options().append(true).open(path).ok());
        Self { file, source: source.to_owned(), gathered: String::new(), lost: 0, untold: 0 }
    }

    /// Gathers one event with its fields.
    pub fn record(&mut self, event: &str, fields: &[(&str, Value)]) {
        if self.file.is_some() {
            self.record_object(event, fields.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect());
        }
    }

    /// Gathers one event whose fields are an object already.
    pub fn record_object(&mut self, event: &str, mut object: Map<String, Value>) {
        if self.file.is_none() {
            return;
        }
        object.insert("time".into(), utc_now().rfc3339(3).into());
        object.insert("source".into(), self.source.clone().into());
        object.insert("event".into(), event.into());
        self.record_line(&printable_json(&Value::Object(object).to_string()));
    }

    /// Gathers one event that is printable JSON already, as [`EventLog::publish`](crate::EventLog::publish) gives it.
    pub fn record_line(&mut self, line: &str) {
        if self.file.is_none() {
            return;
        }
        self.gathered.push_str(line);
        self.gathered.push('\n');
        if self.gathered.len() > GATHERED_BYTES_MAX {
            self.flush();
        }
    }

    /// Whether lines wait.
    pub fn has_gathered(&self) -> bool {
        !self.gathered.is_empty()
    }

    /// How many events could not be written, as on a full disk.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Writes what was gathered, in one piece, so that lines of several processes never mix. A full disk must not stop a
    /// fabric: what cannot be written is counted, and told of by the next line that can.
    pub fn flush(&mut self) {
        let mut lines = std::mem::take(&mut self.gathered);
        let Some(file) = self.file.as_mut().filter(|_| !lines.is_empty()) else { return };
        let events = lines.lines().count() as u64;
        if self.untold > 0 {
            let (time, source, count) = (utc_now().rfc3339(3), &self.source, self.untold);
            let told = serde_json::json!({
                "time": time, "source": source, "event": "events-lost", "count": count
            });
            lines.insert_str(0, &format!("{told}\n"));
        }
        if file.write_all(lines.as_bytes()).is_err() {
            (self.lost, self.untold) = (self.lost + events, self.untold + events);
            return;
        }
        self.untold = 0;
        if file.metadata().is_ok_and(|meta| meta.len() > FILE_BYTES_MAX) {
            let last = format!("{{\"source\":\"{}\",\"event\":\"journal-full\"}}\n", self.source);
            let _ = file.write_all(last.as_bytes());
            self.file = None;
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_json_and_wait_to_be_written() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut journal = Journal::open(Some(file.path()), "a7");
        journal.record("link-up", &[("port", 3.into())]);
        assert!(journal.has_gathered());
        assert_eq!(std::fs::read_to_string(file.path()).unwrap(), "");
        journal.flush();
        assert!(!journal.has_gathered());
        let line: Value = serde_json::from_str(&std::fs::read_to_string(file.path()).unwrap()).unwrap();
        assert_eq!(
            (&line["source"], &line["event"], &line["port"]),
            (&"a7".into(), &"link-up".into(), &3.into())
        );
    }

    #[test]
    fn what_a_full_disk_loses_is_counted_and_told_of_later() {
        let mut journal = Journal::open(Some(Path::new("/dev/full")), "a7");
        for _ in 0..2 {
            journal.record("link-up", &[]);
            journal.record("link-down", &[]);
            journal.flush();
        }
        assert_eq!(journal.lost(), 4);
        let file = tempfile::NamedTempFile::new().unwrap();
        journal.file = Some(file.reopen().unwrap());
        journal.record("link-up", &[]);
        journal.flush();
        let text = std::fs::read_to_string(file.path()).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((&lines[0]["event"], &lines[0]["count"]), (&"events-lost".into(), &4.into()));
        assert_eq!((lines.len(), &lines[1]["event"]), (2, &"link-up".into()));
        assert_eq!(journal.lost(), 4);
    }

    #[test]
    fn an_absent_file_is_not_made() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events");
        let mut journal = Journal::open(Some(&path), "a7");
        journal.record("link-up", &[]);
        journal.flush();
        assert!(!path.exists());
    }
}
