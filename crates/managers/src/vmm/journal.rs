//! The journal's file: a change is on disk when [`JournalFile::sync`] says so.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use weft_bundle::failure::Failure;
use weft_vm::journal::{self, Writer};
use weft_vm::{Change, JOURNAL_BYTES_MAX, JournalError, Record, Write};

use crate::one_writer;

/// The journal of a VM manager, with its lock: it has one writer at a time.
#[derive(Debug)]
pub(crate) struct JournalFile {
    path: PathBuf,
    /// `None` once a write has failed: what is in the file then is not known.
    file: Option<File>,
    writer: Writer,
    bytes: u64,
    waiting: Vec<Write>,
    /// The kind of record with which the process dies once it is on disk: tests kill the manager at each step by name.
    pub(crate) die_after: Option<String>,
}

impl JournalFile {
    /// Opens the journal of a laboratory. Records: `None` without a file, and none of them in an empty one, which is that of a
    /// laboratory that has just been made.
    pub(crate) fn open(path: &Path, lab: &str) -> anyhow::Result<(Self, Option<Vec<Record>>)> {
        let shown = || format!("the journal {}", path.display());
        let is_there = path.exists();
        let mut file = one_writer::open(path).with_context(shown)?;
        lock(&file, path)?;
        let mut bytes = Vec::new();
        let most = JOURNAL_BYTES_MAX as u64 + 1;
        (&mut file).take(most).read_to_end(&mut bytes).with_context(shown)?;
        let read = journal::read(&bytes, lab).map_err(|error| in_words(path, &error))?;
        let (records, length) = match read {
            Some(journal) => (Some(journal.records), journal.bytes as u64),
            None => (is_there.then(Vec::new), 0),
        };
        // A line that a dying writer has left is cut off.
        file.set_len(length).with_context(shown)?;
        let writer = Writer::new(lab, records.as_ref().map_or(0, Vec::len));
        let (path, waiting, die_after) = (path.to_owned(), Vec::new(), None);
        Ok((Self { path, file: Some(file), writer, bytes: length, waiting, die_after }, records))
    }

    /// Takes a change that is to be written.
    pub(crate) fn push(&mut self, write: Write) {
        self.waiting.push(write);
    }

    /// Its size in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Writes what was taken, all of it with one sync; the number of the last write, `None` when there was none.
    ///
    /// # Errors
    /// The system's words. Nothing of what was taken counts as written, and nothing more is.
    pub(crate) fn sync(&mut self) -> io::Result<Option<u64>> {
        let Some(last) = self.waiting.last().map(|write| write.number) else { return Ok(None) };
        let is_last = self.waiting.iter().any(|write| self.die_after.as_deref() == Some(write.change.name()));
        let written = self.write_all();
        match &written {
            Ok(()) if is_last => die(),
            Ok(()) => {}
            Err(_) => self.file = None,
        }
        self.waiting.clear();
        written.map(|()| Some(last))
    }

    fn write_all(&mut self) -> io::Result<()> {
        let mut appended = String::new();
        for write in std::mem::take(&mut self.waiting) {
            let text = self.writer.bytes(&write.change);
            match write.change {
                Change::Append(_) => appended += &text,
                // It has everything that was to be appended before.
                Change::Replace(_) => {
                    appended.clear();
                    self.replace(&text)?;
                }
            }
        }
        if appended.is_empty() {
            return Ok(());
        }
        let file = self.file.as_mut().ok_or_else(|| io::Error::other("an earlier write has failed"))?;
        file.write_all(appended.as_bytes())?;
        file.sync_data()?;
        self.bytes += appended.len() as u64;
        Ok(())
    }

    /// Writes a second file and gives it the first one's name.
    fn replace(&mut self, text: &str) -> io::Result<()> {
        if self.file.is_none() {
            return Err(io::Error::other("an earlier write has failed"));
        }
        let mut name = self.path.clone().into_os_string();
        name.push(".new");
        let second = PathBuf::from(name);
        let mut file = one_writer::open(&second)?;
        if !one_writer::lock(&file)? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        file.set_len(0)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&second, &self.path)?;
        // The name is on disk when its folder is.
        File::open(self.path.parent().unwrap_or(Path::new("/")))?.sync_all()?;
        (self.file, self.bytes) = (Some(file), text.len() as u64);
        Ok(())
    }
}

/// Ends the process as a kill from outside does: without a word, and with nothing flushed.
fn die() -> ! {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    std::process::abort()
}

fn lock(file: &File, path: &Path) -> anyhow::Result<()> {
    let shown = path.display();
    if one_writer::lock(file).with_context(|| format!("cannot lock the journal {shown}"))? {
        return Ok(());
    }
    Err(Failure::new(format!("another VM manager has the journal {shown}"))
        .hint("a laboratory has one; `weft ps` shows it"))
}

fn in_words(path: &Path, error: &JournalError) -> anyhow::Error {
    Failure::new(format!("{}: {error}", path.display())).hint(error.hint())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "in a test a panic is the report")]
mod tests {
    use weft_vm::{HostName, Slot};

    use super::*;

    const LAB: &str = "lab";

    fn started(generation: u64) -> Record {
        let (scheme, next_guid) = (weft_vm::Scheme::Dynamic, weft_wire::Guid(7));
        Record::Started { generation, scheme, adopts: false, epoch: 0, next_guid }
    }

    fn tomb(vf: u8) -> Record {
        Record::Tomb(Slot { host: "host-0".parse::<HostName>().unwrap(), vf })
    }

    fn write(journal: &mut JournalFile, number: u64, change: Change) {
        journal.push(Write { number, change });
    }

    #[test]
    fn synced_journal_records_are_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vms.journal");
        let (mut journal, records) = JournalFile::open(&path, LAB).unwrap();
        assert_eq!(records, None, "there was none");
        assert_eq!(journal.sync().unwrap(), None);
        write(&mut journal, 1, Change::Replace(vec![started(1)]));
        write(&mut journal, 2, Change::Append(tomb(1)));
        write(&mut journal, 3, Change::Append(tomb(2)));
        assert_eq!(journal.sync().unwrap(), Some(3));
        assert_eq!(journal.bytes(), std::fs::metadata(&path).unwrap().len());
        drop(journal);
        // A writer that died in the middle of a line.
        File::options().append(true).open(&path).unwrap().write_all(b"12345678 4 {\"to").unwrap();
        let (mut journal, records) = JournalFile::open(&path, LAB).unwrap();
        assert_eq!(records, Some(vec![started(1), tomb(1), tomb(2)]));
        write(&mut journal, 1, Change::Append(tomb(3)));
        write(&mut journal, 2, Change::Replace(vec![started(2)]));
        write(&mut journal, 3, Change::Append(tomb(4)));
        assert_eq!(journal.sync().unwrap(), Some(3));
        drop(journal);
        assert_eq!(JournalFile::open(&path, LAB).unwrap().1, Some(vec![started(2), tomb(4)]));
        assert!(!path.with_extension("journal.new").exists());
    }

    #[test]
    fn it_has_one_writer_and_keeps_its_laboratory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vms.journal");
        File::create(&path).unwrap();
        let (mut journal, records) = JournalFile::open(&path, LAB).unwrap();
        assert_eq!(records, Some(Vec::new()), "an empty one is that of a new laboratory");
        write(&mut journal, 1, Change::Replace(vec![started(1)]));
        journal.sync().unwrap();
        let second = JournalFile::open(&path, LAB).unwrap_err();
        assert!(second.to_string().contains("another VM manager has the journal"), "{second}");
        drop(journal);
        let other = JournalFile::open(&path, "other").unwrap_err();
        assert!(other.to_string().contains("laboratory `lab`, and this is `other`"), "{other}");
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, [&bytes[..bytes.len() - 3], b"x}\n", &bytes[..]].concat()).unwrap();
        assert!(JournalFile::open(&path, LAB).is_err());
    }

    /// /dev/full takes no byte, as a full disk.
    #[test]
    fn records_refused_by_a_full_disk_do_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let (mut journal, _) = JournalFile::open(&folder.path().join("vms.journal"), LAB).unwrap();
        journal.file = Some(File::options().write(true).open("/dev/full").unwrap());
        write(&mut journal, 1, Change::Append(tomb(1)));
        let error = journal.sync().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        write(&mut journal, 2, Change::Append(tomb(2)));
        assert!(journal.sync().is_err(), "what is in the file is not known any more");
        assert!(journal.waiting.is_empty());
    }
}
