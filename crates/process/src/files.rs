//! Files that outlive their process, and a crash of the machine.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Replaces a file as a whole, for its owner alone: after a kill or a crash, too, it has the old content or the new.
///
/// # Errors
/// What the system says; then the file is as it was.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = beside(path);
    let written = write(&temporary, bytes).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written?;
    // The name is on disk when its folder is.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
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
    fn what_cannot_be_overwritten_is_kept_whole_in_a_copy_that_the_error_names() {
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
}
