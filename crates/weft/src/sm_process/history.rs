//! The machine's log of what tables were computed from, as a file with one line of JSON for each entry.
//!
//! An entry is in the file before an SMP is sent that follows from it, so the log of a manager that is killed is whole: the next one goes on
//! behind it, and its first entry is what it has found.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;

use anyhow::Context;
use weft_sm::Past;

/// How long the file gets. Each entry of a heavy sweep has the cabling in it: 10 KB of a small tree, 1 MB of 700 nodes.
const BYTES_MAX: u64 = 256 << 20;

/// What the first entry of every log begins with: tables that were computed.
const BEGIN: &str = "{\"routed\":";

/// The last line of a file that is full.
const CUT_OFF: &str = "{\"cut-off\":\"the file is full, and later entries are not in it\"}\n";

/// The file.
#[derive(Debug)]
pub(crate) struct HistoryFile {
    file: File,
    bytes: u64,
    bytes_max: u64,
    /// Nothing more is written.
    is_cut_off: bool,
}

impl HistoryFile {
    /// Opens a file to go on with, without the half of a line that a manager left that was killed.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        Self::bounded(path, BYTES_MAX).with_context(|| format!("cannot keep a log in {}", path.display()))
    }

    fn bounded(path: &Path, bytes_max: u64) -> std::io::Result<Self> {
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        is_log(&file)?;
        let bytes = whole_lines(&mut file)?;
        file.set_len(bytes)?;
        let mut last = vec![0; CUT_OFF.len()];
        let is_cut_off = match bytes.checked_sub(CUT_OFF.len() as u64) {
            Some(at) => {
                file.seek(SeekFrom::Start(at))?;
                file.read_exact(&mut last)?;
                last == CUT_OFF.as_bytes()
            }
            None => false,
        };
        file.seek(SeekFrom::Start(bytes))?;
        Ok(Self { file, bytes, bytes_max, is_cut_off })
    }

    /// Writes entries down. Where that fails the log ends: one with a gap would be worse.
    pub(super) fn append(&mut self, entries: &[Past]) {
        for entry in entries {
            if self.is_cut_off {
                return;
            }
            let line = serde_json::to_vec(entry).map(|mut line| {
                line.push(b'\n');
                line
            });
            let written = line.map_err(Into::into).and_then(|line| self.write(&line));
            if let Err(error) = written {
                self.is_cut_off = true;
                tracing::error!(%error, "the log of what tables are computed from ends here");
                // Half a line would be taken for damage.
                let _ = self.file.set_len(self.bytes);
            }
        }
    }

    fn write(&mut self, line: &[u8]) -> std::io::Result<()> {
        let has_room = self.bytes + (line.len() + CUT_OFF.len()) as u64 <= self.bytes_max;
        if !has_room {
            tracing::warn!(max = self.bytes_max, "the log of what tables are computed from is full");
            self.is_cut_off = true;
        }
        let line = if has_room { line } else { CUT_OFF.as_bytes() };
        self.file.write_all(line)?;
        self.bytes += line.len() as u64;
        Ok(())
    }
}

/// An error where a file is something else: half a line at its end would be cut off.
fn is_log(file: &File) -> std::io::Result<()> {
    let mut begin = Vec::new();
    (&*file).take(BEGIN.len() as u64).read_to_end(&mut begin)?;
    match BEGIN.as_bytes().starts_with(&begin) {
        true => Ok(()),
        false => Err(std::io::Error::new(ErrorKind::InvalidData, "it holds something else")),
    }
}

/// How many bytes of a file are whole lines.
fn whole_lines(file: &mut File) -> std::io::Result<u64> {
    const CHUNK: u64 = 64 << 10;
    let mut end = file.seek(SeekFrom::End(0))?;
    while end > 0 {
        let start = end.saturating_sub(CHUNK);
        let mut chunk = vec![0; (end - start) as usize];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut chunk)?;
        if let Some(last) = chunk.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + last as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use weft_routing::{EngineOptions, Lids, Routes};
    use weft_sm::Computation;
    use weft_topology::{Fabric, NodeIndex};
    use weft_wire::{Lid, PortNum};

    use super::*;

    fn lines(path: &Path) -> Vec<String> {
        std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
    }

    fn repaired() -> Past {
        Past::Repaired { gone: Vec::new(), back: Vec::new() }
    }

    fn routed() -> Past {
        Past::Routed(Box::new(Computation {
            fabric: Fabric::default(),
            lids: Lids::new(),
            given: EngineOptions::default(),
            is_dynamic: true,
            space: Lid(64),
            resting: BTreeSet::from([Lid(3)]),
            standing: Some((Routes::default(), false)),
            away: vec![(NodeIndex(1), Lid(2), PortNum(3))],
        }))
    }

    #[test]
    fn a_log_goes_on_behind_its_last_whole_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        HistoryFile::open(&path).unwrap().append(&[routed(), repaired()]);
        let whole = std::fs::read_to_string(&path).unwrap();
        for half in ["", "{\"repaired\":{\"go", &"x".repeat(100_000)] {
            std::fs::write(&path, format!("{whole}{half}")).unwrap();
            HistoryFile::open(&path).unwrap().append(&[Past::Broken]);
            let found = lines(&path);
            assert_eq!(found.len(), 3, "after half a line of {} bytes", half.len());
            let entries: Vec<Past> = found.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
            assert_eq!(entries, [routed(), repaired(), Past::Broken]);
        }
        std::fs::write(&path, &whole[..5]).unwrap();
        HistoryFile::open(&path).unwrap().append(&[routed()]);
        assert_eq!(lines(&path).len(), 1, "after half of the first line");
    }

    #[test]
    fn a_full_file_says_so_in_its_last_line_and_stays_as_it_is() {
        let max = serde_json::to_vec(&routed()).unwrap().len() as u64 + 180;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        for _ in 0..3 {
            let mut file = HistoryFile::bounded(&path, max).unwrap();
            file.append(&[routed(), repaired(), repaired(), repaired(), repaired(), repaired()]);
            let found = lines(&path);
            // `{"repaired":{"gone":[],"back":[]}}` takes 35 bytes, the last line 64.
            assert_eq!(found.len(), 5, "{found:?}");
            assert_eq!(found[4], CUT_OFF.trim_end());
            assert!(std::fs::metadata(&path).unwrap().len() <= max);
        }
    }

    #[test]
    fn a_log_that_cannot_be_kept_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let error = HistoryFile::open(&folder.path().join("none/log")).unwrap_err();
        assert!(format!("{error:#}").contains("cannot keep a log in"), "{error:#}");
        let path = folder.path().join("letter");
        std::fs::write(&path, "dear sir").unwrap();
        let error = HistoryFile::open(&path).unwrap_err();
        assert!(format!("{error:#}").contains("it holds something else"), "{error:#}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "dear sir");
    }
}
