//! Locks by which a laboratory knows its processes: each holds a POSIX lock on a file of its own for as long as it lives.
//!
//! The kernel drops the lock with the process, however it ends, and names the holder to whoever asks. A pid
//! written into a file would outlive its process and come to name another.
//!
//! POSIX locks belong to the process and end when it closes *any* descriptor of the file, so a process must
//! never open its own lock file a second time.
//!
//! The file says how the last holder ended ([`LastWord`]): a holder writes that it runs, and when
//! asked to stop that it stops. So a supervisor that was away knows it too.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode, OFlags, fcntl_lock, fstat};
use rustix::process::{Flock, FlockType, Pid, fcntl_getlk};

/// Why a lock was not taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// The file cannot be opened or locked.
    #[error("cannot lock {}", path.display())]
    Io {
        /// The lock file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Another process holds it.
    #[error("{} is locked by another process", path.display())]
    Held {
        /// The lock file.
        path: PathBuf,
    },
    /// The file was removed meanwhile: its laboratory is gone.
    #[error("{} was removed while it was being locked", path.display())]
    Removed {
        /// The lock file.
        path: PathBuf,
    },
}

/// A lock held until dropped or until the process ends.
#[derive(Debug)]
pub struct ProcessLock {
    file: File,
}

impl ProcessLock {
    /// Locks an existing file, without waiting.
    pub fn take(path: &Path) -> Result<Self, LockError> {
        Self::lock(path, FlockOperation::NonBlockingLockExclusive)
    }

    /// Locks an existing file, waiting until its holder lets go.
    pub fn wait(path: &Path) -> Result<Self, LockError> {
        Self::lock(path, FlockOperation::LockExclusive)
    }

    fn lock(path: &Path, operation: FlockOperation) -> Result<Self, LockError> {
        let io = |source| LockError::Io { path: path.to_owned(), source };
        let file = open(path).map_err(io)?;
        match fcntl_lock(&file, operation) {
            Ok(()) => {}
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::ACCESS) => {
                return Err(LockError::Held { path: path.to_owned() });
            }
            Err(error) => return Err(io(error.into())),
        }
        // Between open and lock the laboratory may have been taken down.
        if file.metadata().map_err(io)?.nlink() == 0 {
            return Err(LockError::Removed { path: path.to_owned() });
        }
        write_word(&file, LastWord::Runs);
        Ok(Self { file })
    }

    /// Notes that its holder ends in order.
    pub fn note_stop(&self) {
        write_word(&self.file, LastWord::Stopped);
    }
}

/// The pause between two looks at whether a folder is there.
const LOOK: Duration = Duration::from_secs(3);

/// The folder in which a process's lock lies: whoever removes it wants no process of it any more. One that is moved is still there.
#[derive(Debug)]
pub struct LockFolder(OwnedFd);

impl LockFolder {
    /// Of a lock.
    ///
    /// # Errors
    /// When the folder cannot be opened.
    pub fn of(lock: &Path) -> io::Result<Self> {
        let folder = lock.parent().unwrap_or(Path::new("."));
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::open(folder, flags, Mode::empty())?))
    }

    /// Returns once it has been removed.
    pub async fn removed(&self) {
        let mut looks = tokio::time::interval(LOOK);
        while !fstat(&self.0).is_ok_and(|found| found.st_nlink == 0) {
            looks.tick().await;
        }
        tracing::warn!("the laboratory's folder is gone, and this process ends with it");
    }
}

/// What a lock's file says of its last holder. It means something once the lock is not held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastWord {
    /// It was never taken.
    Nothing,
    /// It was taken. If it is held no more, the holder has ended without a word.
    Runs,
    /// The holder was asked to stop, or had done its work.
    Stopped,
    /// The holder was killed on purpose.
    Killed,
}

/// All of one length, so that one write replaces another.
const WORDS: [(LastWord, &[u8; 8]); 3] =
    [(LastWord::Runs, b"running\n"), (LastWord::Stopped, b"stopped\n"), (LastWord::Killed, b"killed \n")];

fn write_word(file: &File, word: LastWord) {
    let word = WORDS.iter().find(|(of, _)| *of == word);
    // On a full disk a process works all the same; only its restart would miss the word.
    let _ = word.map(|(_, text)| file.write_all_at(*text, 0));
}

/// What the file of a lock says of its last holder. Must not be asked by the holder itself.
///
/// # Errors
/// When the file cannot be read.
pub fn last_word(path: &Path) -> io::Result<LastWord> {
    let file = match open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(LastWord::Nothing),
        opened => opened?,
    };
    let mut text = [0; 8];
    match file.read_exact_at(&mut text, 0) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(LastWord::Nothing),
        read => read?,
    }
    Ok(WORDS.iter().find(|(_, word)| **word == text).map_or(LastWord::Nothing, |(word, _)| *word))
}

/// Notes that the holder of a lock is killed on purpose; another process's lock is not touched.
///
/// # Errors
/// When the file cannot be written.
pub fn note_kill(path: &Path) -> io::Result<()> {
    let file = open(path)?;
    if last_word(path)? != LastWord::Nothing {
        write_word(&file, LastWord::Killed);
    }
    Ok(())
}

/// Opens a lock file itself and no other file that it may link to: that is not this laboratory's.
fn open(path: &Path) -> io::Result<File> {
    let no_follow = OFlags::NOFOLLOW.bits().cast_signed();
    File::options().read(true).write(true).custom_flags(no_follow).open(path)
}

/// The process that holds the lock of a file; `None` when no one does or the file is absent.
///
/// Must not be asked by the holder itself: it would lose its lock.
pub fn holder(path: &Path) -> io::Result<Option<Pid>> {
    let file = match open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let found = fcntl_getlk(&file, &Flock::from(FlockType::WriteLock))?;
    Ok(found.and_then(|lock| lock.pid))
}
