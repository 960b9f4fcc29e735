//! Files to append to that have one writer at a time.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

/// Opens a file to read it and to append to it. It is made if it is not there.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    File::options().read(true).append(true).create(true).mode(0o600).open(path)
}

/// Takes the lock of a file, until it is closed. False: another one has it.
pub(crate) fn lock(file: &File) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
