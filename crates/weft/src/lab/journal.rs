//! The file of events: one JSON object per line, appended by every process of the laboratory.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::SystemTime;

use serde::Serialize;
use serde_json::{Map, Value};

use super::{LabFolder, Place};
use crate::output;

/// The file grows no further than this; what comes after is lost, and the last line says so.
const BYTES_MAX: u64 = 64 << 20;

/// Appends events of one source.
#[derive(Debug)]
pub(crate) struct Journal {
    file: Option<File>,
    source: &'static str,
    lines: String,
}

impl Journal {
    /// The laboratory's, for `source`.
    pub(crate) fn open(lab: &LabFolder, source: &'static str) -> Self {
        Self::at(&lab.place(Place::Events), source)
    }

    /// The file itself. An absent one is not made: then the laboratory is gone, and nothing is recorded.
    pub(crate) fn at(path: &Path, source: &'static str) -> Self {
        Self { file: File::options().append(true).open(path).ok(), source, lines: String::new() }
    }

    /// Notes one event with what belongs to it, an object.
    pub(crate) fn event(&mut self, event: &str, fields: &Value) {
        let mut object = Map::new();
        if let Value::Object(fields) = fields {
            object.extend(fields.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
        object.insert("time".into(), timestamp().into());
        object.insert("source".into(), self.source.into());
        object.insert("event".into(), event.into());
        self.lines.push_str(&Value::Object(object).to_string());
        self.lines.push('\n');
    }

    /// Notes one event whose own form is an object with the name `event` in it.
    pub(crate) fn event_of(&mut self, event: &impl Serialize) {
        let Ok(mut value) = serde_json::to_value(event) else { return };
        output::name_guids(&mut value);
        let name = value.get("event").and_then(Value::as_str).unwrap_or("unknown").replace('_', "-");
        self.event(&name, &value);
    }

    /// Writes what was noted, in one piece, so that lines of several processes never mix.
    pub(crate) fn flush(&mut self) {
        let lines = std::mem::take(&mut self.lines);
        let Some(file) = &mut self.file else { return };
        if lines.is_empty() {
            return;
        }
        // A full disk must not stop a fabric; the events are lost, and that is all.
        let _ = file.write_all(lines.as_bytes());
        if file.metadata().is_ok_and(|meta| meta.len() > BYTES_MAX) {
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

/// Now, in UTC, as RFC 3339 with milliseconds.
fn timestamp() -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let (seconds, millis) = (since.as_secs(), since.subsec_millis());
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// Year, month and day of a day counted from 1970-01-01, in the Gregorian calendar.
///
/// Years are counted from March, so that the leap day is a year's last, in eras of 400 years = 146 097 days.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468; // From 0000-03-01.
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::civil;

    #[test]
    fn days_have_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(59), (1970, 3, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(11_017), (2000, 3, 1));
        assert_eq!(civil(20_777), (2026, 11, 20));
        assert_eq!(civil(47_540), (2100, 2, 28));
        assert_eq!(civil(47_541), (2100, 3, 1));
    }
}
