//! Reading files: never more of one than a fabric can need, so that a device or a stray file cannot fill the memory.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use anyhow::Context;

use crate::failure::Failure;

/// The most that is read of one file: some hundred times the largest cabling known.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// A file's bytes. Fails with [`ErrorKind::FileTooLarge`] where there are more than 256 MiB.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_at_most(path, FILE_BYTES_MAX)
}

/// The same of a text; fails with [`ErrorKind::InvalidData`] where it is not UTF-8.
pub fn read_to_string(path: &Path) -> io::Result<String> {
    let invalid =
        |error: std::string::FromUtf8Error| io::Error::new(ErrorKind::InvalidData, error.utf8_error());
    String::from_utf8(read(path)?).map_err(invalid)
}

/// A file's text; the error says which file cannot be read.
///
/// # Errors
/// When the file is not there, is too large, is no text or cannot be read.
pub fn text(path: &Path) -> anyhow::Result<String> {
    read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// A file's bytes, likewise; `None` where there is no file.
///
/// # Errors
/// When the file is there and cannot be read.
pub fn read_if_any(path: &Path) -> anyhow::Result<Option<Vec<u8>>> {
    match read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        read => read.map(Some).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// The text of a file that the user has named: one that cannot be read is bad input.
///
/// # Errors
/// When it cannot be read.
pub fn given(path: &Path) -> anyhow::Result<String> {
    let bad = |error| Failure::bad_input(format!("cannot read {}: {error}", path.display()));
    Ok(read_to_string(path).map_err(bad)?)
}

fn read_at_most(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    // A device says 0 or nonsense: its length is a guess at the room needed, and no more.
    let length = file.metadata()?.len();
    let mut bytes = Vec::with_capacity(usize::try_from(length.min(max)).unwrap_or(0));
    let read = file.by_ref().take(max).read_to_end(&mut bytes)? as u64;
    // One byte beyond tells a file of just that length from a longer one.
    if read == max && file.read(&mut [0])? > 0 {
        let limit = format!("longer than the {} MiB that weft reads of a file", max >> 20);
        return Err(io::Error::new(ErrorKind::FileTooLarge, limit));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_up_to_the_limit_and_no_further() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for (length, fits) in [(0, true), (4095, true), (4096, true), (4097, false)] {
            std::fs::write(&path, vec![b'x'; length]).unwrap();
            let read = read_at_most(&path, 4096);
            assert_eq!(read.as_ref().map(Vec::len).ok(), fits.then_some(length));
            assert!(fits || read.unwrap_err().kind() == ErrorKind::FileTooLarge);
        }
        assert_eq!(read_at_most(Path::new("/dev/zero"), 4096).unwrap_err().kind(), ErrorKind::FileTooLarge);
        std::fs::write(&path, [b'x', 0xff]).unwrap();
        assert_eq!(read_to_string(&path).unwrap_err().kind(), ErrorKind::InvalidData);
    }
}
