//! The machine's log of what tables were computed from, as a file with one line of JSON for each entry.
//!
//! An entry is in the file before an SMP is sent that follows from it, so the log of a manager that is killed is whole:
//! the next one goes on behind it, and its first entry is what it has found.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use rustix::fs::Access;
use weft_bundle::failure::Failure;
use weft_sm::Past;

use crate::one_writer;

/// Maximum size of the file. Each entry of a heavy sweep has the cabling in it: 10 KB of a small tree, 1 MB of 700 nodes.
const BYTES_MAX: u64 = 256 << 20;

/// What the first entry of every log begins with: tables that were computed.
const BEGIN: &str = "{\"routed\":";

/// The last line of a file that later entries are not in.
const CUT_OFF: &str = "{\"cut-off\":\"later entries are not in this file\"}\n";

/// The file, with its lock: it has one writer at a time.
#[derive(Debug)]
pub struct HistoryFile {
    path: PathBuf,
    file: File,
    bytes: u64,
    bytes_max: u64,
    end: End,
}

/// Whether the log has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// It goes on.
    Open,
    /// Nothing more is written but the line that says so.
    Unmarked,
    /// The file says so.
    Marked,
}

impl HistoryFile {
    /// Opens a file to go on with, without the half of a line that a manager left that was killed.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        Self::bounded(path, BYTES_MAX)
    }

    fn bounded(path: &Path, bytes_max: u64) -> anyhow::Result<Self> {
        let shown = || cannot(path);
        let mut file = one_writer::open(path).with_context(shown)?;
        is_log(&file, path)?;
        // Before anything is cut off, which may be what another one writes now.
        lock(&file, path)?;
        let bytes = whole_lines(&mut file).with_context(shown)?;
        file.set_len(bytes).with_context(shown)?;
        let end = if is_cut_off(&mut file, bytes).with_context(shown)? { End::Marked } else { End::Open };
        Ok(Self { path: path.to_owned(), file, bytes, bytes_max, end })
    }

    /// Whether a manager could open it. Nothing in it changes, and a file that is not there is not made.
    pub fn check(path: &Path) -> anyhow::Result<()> {
        let may = |path: &Path, what| {
            rustix::fs::access(path, what).map_err(io::Error::from).with_context(|| cannot(path))
        };
        if path.exists() {
            // To open a pipe would wait.
            if !path.is_file() {
                return Err(no_log(path));
            }
            may(path, Access::READ_OK | Access::WRITE_OK)?;
            let file = File::open(path).with_context(|| cannot(path))?;
            is_log(&file, path)?;
            return lock(&file, path);
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        may(folder.unwrap_or(Path::new(".")), Access::WRITE_OK | Access::EXEC_OK)
    }

    /// Writes entries down. Where that fails the log ends, and its last line says so: one with a gap would be worse.
    ///
    /// A disk may have no room for that line either. It is tried again with each later entry; if the manager ends before it
    /// is written, the file does not tell, and the manager's messages do.
    pub(crate) fn append(&mut self, entries: &[Past]) {
        for entry in entries {
            if self.end != End::Open {
                break;
            }
            if let Err(error) = self.write(entry) {
                let file = self.path.display();
                tracing::error!(%error, %file, "the log of what tables are computed from ends here");
                self.end = End::Unmarked;
            }
        }
        if self.end == End::Unmarked
            && !entries.is_empty()
            && let Err(error) = self.mark()
        {
            let file = self.path.display();
            tracing::error!(%error, %file, "the log of what tables are computed from does not say that it has ended");
        }
    }

    fn write(&mut self, entry: &Past) -> io::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        if self.bytes + (line.len() + CUT_OFF.len()) as u64 > self.bytes_max {
            let (max, file) = (self.bytes_max, self.path.display());
            tracing::warn!(max, %file, "the log of what tables are computed from is full");
            self.end = End::Unmarked;
            return Ok(());
        }
        self.file.write_all(&line)?;
        self.bytes += line.len() as u64;
        Ok(())
    }

    /// Writes the last line, in the place of half a line that may be there.
    fn mark(&mut self) -> io::Result<()> {
        self.file.set_len(self.bytes)?;
        self.file.write_all(CUT_OFF.as_bytes())?;
        self.bytes += CUT_OFF.len() as u64;
        self.end = End::Marked;
        Ok(())
    }
}

fn cannot(path: &Path) -> String {
    format!("cannot keep a log in {}", path.display())
}

fn lock(file: &File, path: &Path) -> anyhow::Result<()> {
    if one_writer::lock(file).with_context(|| cannot(path))? {
        return Ok(());
    }
    Err(Failure::new(format!("another subnet manager writes its log to {}", path.display()))
        .hint("name another file with --history, or end that manager; `weft ps` shows those of a laboratory"))
}

/// An error where a file is something else: half a line at its end would be cut off.
fn is_log(file: &File, path: &Path) -> anyhow::Result<()> {
    let mut begin = Vec::new();
    if file.metadata().with_context(|| cannot(path))?.is_file() {
        file.take(BEGIN.len() as u64).read_to_end(&mut begin).with_context(|| cannot(path))?;
        if BEGIN.as_bytes().starts_with(&begin) {
            return Ok(());
        }
    }
    Err(no_log(path))
}

fn no_log(path: &Path) -> anyhow::Error {
    Failure::bad_input(format!("{} is not a log of --history", path.display())).hint("name another file")
}

/// Whether the last whole line says that the log has ended.
fn is_cut_off(file: &mut File, bytes: u64) -> io::Result<bool> {
    let Some(at) = bytes.checked_sub(CUT_OFF.len() as u64) else { return Ok(false) };
    let mut last = vec![0; CUT_OFF.len()];
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(&mut last)?;
    Ok(last == CUT_OFF.as_bytes())
}

/// How many bytes of a file are whole lines.
fn whole_lines(file: &mut File) -> io::Result<u64> {
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
            // `{"repaired":{"gone":[],"back":[]}}` takes 35 bytes, the last line 49.
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
        let error = HistoryFile::check(&folder.path().join("none/log")).unwrap_err();
        assert!(format!("{error:#}").contains("cannot keep a log in"), "{error:#}");
        let path = folder.path().join("letter");
        std::fs::write(&path, "dear sir").unwrap();
        for error in [HistoryFile::open(&path).unwrap_err(), HistoryFile::check(&path).unwrap_err()] {
            let words = weft_bundle::failure::in_words(&error);
            assert!(words.ends_with("letter is not a log of --history (hint: name another file)"), "{words}");
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "dear sir");
        assert!(HistoryFile::check(folder.path()).is_err(), "a folder");
    }

    #[test]
    fn a_log_has_one_writer_and_a_check_leaves_it_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        HistoryFile::check(&path).unwrap();
        assert!(!path.exists());
        let mut first = HistoryFile::open(&path).unwrap();
        first.append(&[routed()]);
        // The first one is in the middle of a line.
        first.file.write_all(b"{\"repaired\":{\"go").unwrap();
        let before = std::fs::read(&path).unwrap();
        for error in [HistoryFile::open(&path).unwrap_err(), HistoryFile::check(&path).unwrap_err()] {
            let words = weft_bundle::failure::in_words(&error);
            assert!(words.starts_with("another subnet manager writes its log to "), "{words}");
            assert!(words.contains("(hint: name another file"), "{words}");
        }
        drop(first);
        HistoryFile::check(&path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), before);
        HistoryFile::open(&path).unwrap().append(&[repaired()]);
        assert_eq!(lines(&path).len(), 2);
    }

    /// /dev/full takes no byte, as a full disk.
    #[test]
    fn a_log_with_a_gap_ends_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut log = HistoryFile::open(&path).unwrap();
        log.append(&[routed()]);
        let disk = std::mem::replace(&mut log.file, File::options().write(true).open("/dev/full").unwrap());
        log.append(&[repaired(), repaired()]);
        assert_eq!(log.end, End::Unmarked);
        log.file = disk;
        // There is room again, but not for what comes behind the gap.
        log.file.write_all(b"{\"repai").unwrap();
        log.append(&[]);
        log.append(&[repaired()]);
        drop(log);
        HistoryFile::open(&path).unwrap().append(&[routed()]);
        let found = lines(&path);
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(found[1], CUT_OFF.trim_end());
    }
}
