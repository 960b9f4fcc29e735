//! Files that outlive their process, and a crash of the machine.

use std::cell::Cell;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// What is done to files, so that a test can have each operation fail, or end in its middle.
pub trait Files {
    /// Writes a file for its owner alone, and waits until it is on disk.
    ///
    /// # Errors
    /// What the system says; then the file may be there in part.
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;

    /// Gives a file the name of another one, which goes.
    ///
    /// # Errors
    /// What the system says; then both are as they were.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// What the system says; then it is as it was.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Waits until the names in a folder are on disk.
    ///
    /// # Errors
    /// What the system says; then names may be the old ones after a crash.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;
}

/// The system's files.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemFiles;

impl Files for SystemFiles {
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        write(path, bytes)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        File::open(folder)?.sync_all()
    }
}

/// Files of which one operation fails, a write with half of its bytes on disk: for tests of what must survive that.
#[derive(Debug)]
pub struct FailingFiles {
    operations: Cell<u32>,
    fails_at: u32,
    dies: bool,
}

impl FailingFiles {
    /// The operation of this number fails, from 0; if the process dies by that, no later one is done.
    pub fn new(fails_at: u32, dies: bool) -> Self {
        Self { operations: Cell::new(0), fails_at, dies }
    }

    fn does(&self, operation: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let number = self.operations.replace(self.operations.get() + 1);
        let works = number < self.fails_at || number > self.fails_at && !self.dies;
        if works { operation() } else { Err(io::ErrorKind::StorageFull.into()) }
    }
}

impl Files for FailingFiles {
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let tears = self.operations.get() == self.fails_at;
        let written = self.does(|| SystemFiles.write(path, bytes));
        if tears {
            SystemFiles.write(path, &bytes[..bytes.len() / 2])?;
        }
        written
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.does(|| SystemFiles.rename(from, to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.does(|| SystemFiles.remove(path))
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.does(|| SystemFiles.sync_folder(folder))
    }
}

/// Replaces a file as a whole, for its owner alone: after a kill or a crash, too, it has the old content or the new.
///
/// # Errors
/// What the system says; then the file is as it was, or as wanted where only its name is not known to be on disk.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_on(&SystemFiles, path, bytes)
}

/// The same of any files.
///
/// # Errors
/// As [`replace`].
pub fn replace_on(files: &dyn Files, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = beside(path);
    let written = files.write(&temporary, bytes).and_then(|()| files.rename(&temporary, path));
    if written.is_err() {
        let _ = files.remove(&temporary);
    }
    written?;
    // The name is on disk when its folder is.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    files.sync_folder(folder.unwrap_or(Path::new(".")))
}

/// Puts other content into a file, which stays the same file: a container that has it mounted alone would not see another one of its name.
/// All of the content is on disk beside it before it is touched, so a full disk changes nothing, and a kill nearly never. A file that is
/// not there is made as by [`replace`].
///
/// # Errors
/// What the system says. Where that leaves the file with a part of the content, all of it is in the copy that the error names.
pub fn rewrite(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = match File::options().write(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return replace(path, bytes),
        opened => opened?,
    };
    let copy = beside(path);
    if let Err(error) = write(&copy, bytes) {
        let _ = fs::remove_file(&copy);
        return Err(error);
    }
    let overwritten =
        file.write_all(bytes).and_then(|()| file.set_len(bytes.len() as u64)).and_then(|()| file.sync_all());
    overwritten.map_err(|error| {
        let words = format!("{error}; it is incomplete, and its content is whole in {}", copy.display());
        io::Error::new(error.kind(), words)
    })?;
    // It holds what may be a key.
    fs::remove_file(&copy)
        .map_err(|error| io::Error::new(error.kind(), format!("cannot remove {}: {error}", copy.display())))
}

/// The name of a file that is about to be.
fn beside(path: &Path) -> PathBuf {
    let mut temporary = path.as_os_str().to_owned();
    // Another process may be about to write it, too.
    temporary.push(format!(".new-{}", std::process::id()));
    PathBuf::from(temporary)
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    use super::*;

    #[test]
    fn a_file_gets_other_content_and_stays_the_same_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mounted");
        rewrite(&path, b"first, and longer").unwrap();
        let mounted = File::open(&path).unwrap().metadata().unwrap().ino();
        for content in [&b"second"[..], b"third, and longer than the first"] {
            rewrite(&path, content).unwrap();
            let now = fs::metadata(&path).unwrap();
            assert_eq!((fs::read(&path).unwrap().as_slice(), now.ino()), (content, mounted));
            assert_eq!(now.permissions().mode() & 0o777, 0o600);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        rewrite(&folder.path().join("none/file"), b"x").unwrap_err();
    }

    #[test]
    fn a_failed_overwrite_leaves_a_copy_named_in_the_error() {
        let folder = tempfile::tempdir().unwrap();
        // It can be opened, and has room for nothing; the folder has.
        let path = folder.path().join("mounted");
        std::os::unix::fs::symlink("/dev/full", &path).unwrap();
        let error = rewrite(&path, b"the new key").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        let copy = beside(&path);
        assert!(error.to_string().contains(copy.to_str().unwrap()), "{error}");
        assert_eq!(fs::read(&copy).unwrap(), b"the new key");
        assert_eq!(fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_file_is_not_touched_where_the_copy_cannot_be_made() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mounted");
        rewrite(&path, b"first").unwrap();
        fs::create_dir(beside(&path)).unwrap();
        rewrite(&path, b"second").unwrap_err();
        assert_eq!(fs::read(&path).unwrap(), b"first");
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kept");
        for content in [&b"first"[..], b"second, and longer"] {
            replace(&path, content).unwrap();
            assert_eq!(fs::read(&path).unwrap(), content);
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        // A file cannot take the place of a folder; nothing of it stays.
        let taken = folder.path().join("taken");
        fs::create_dir(&taken).unwrap();
        replace(&taken, b"third").unwrap_err();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    /// The stages of a change, one after the other, as a journal has them; whether an operation broke.
    fn stages(path: &Path, files: &FailingFiles) -> bool {
        let mut before = fs::read(path).ok();
        for stage in [&b"telling"[..], b"undoing", b"writing"] {
            let replaced = replace_on(files, path, stage);
            let now = fs::read(path).ok();
            if replaced.is_err() {
                assert!(now == before || now.as_deref() == Some(stage), "{now:?} after {before:?}");
                return true;
            }
            assert_eq!(now.as_deref(), Some(stage));
            before = now;
        }
        false
    }

    #[test]
    fn a_broken_write_leaves_the_old_content_or_the_new() {
        let mut broken = 0;
        for (breaks_at, dies) in (0..12).flat_map(|at| [(at, false), (at, true)]) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("recabling.json");
            let files = FailingFiles::new(breaks_at, dies);
            broken += u32::from(stages(&path, &files));
            let names = fs::read_dir(folder.path()).unwrap().count();
            assert!(dies || names <= 1, "a part of a file is left, and the process lives");
            // The next process goes on with what is there.
            assert!(!stages(&path, &FailingFiles::new(u32::MAX, dies)));
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        }
        assert_eq!(broken, 18, "each of nine operations broke in two ways");
    }
}
