//! Files of a laboratory: only their owner can read them, and a reader finds them whole.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context;
use weft_process::{Files, SystemFiles};

use crate::failure::Failure;

/// `path` with `suffix` behind the stem of its name.
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(suffix);
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// Writes a file that only its owner can read.
pub fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    write_as(path, bytes, 0o600)
}

/// Writes a file that others can read, as far as the umask lets them.
pub fn write_shared(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    write_as(path, bytes, 0o666)
}

/// A new file of which a full disk takes only a part does not stay.
fn write_as(path: &Path, bytes: &[u8], mode: u32) -> anyhow::Result<()> {
    let is_new = !path.exists();
    let opened = fs::File::options().write(true).create(true).truncate(true).mode(mode).open(path);
    let written = opened.and_then(|mut file| file.write_all(bytes));
    if written.is_err() && is_new {
        drop(fs::remove_file(path));
    }
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// Makes a file if it is not there.
pub fn touch(path: &Path) -> anyhow::Result<()> {
    let opened = fs::File::options().append(true).create(true).mode(0o600).open(path);
    opened.map(drop).with_context(|| format!("cannot write {}", path.display()))
}

/// A path named from the root.
pub fn absolute(path: &Path) -> anyhow::Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("cannot find {}", path.display()))
}

/// Puts other content into a file that containers may have mounted.
pub fn rewrite(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let shown = path.display();
    weft_process::rewrite(path, bytes).map_err(|error| {
        let hint = match error.kind() {
            ErrorKind::PermissionDenied => {
                format!("run this as the owner of the file and of its folder, after `chmod u+w {shown}`")
            }
            ErrorKind::ReadOnlyFilesystem => {
                "run this where the folder can be written to: containers have it read-only".to_owned()
            }
            _ => return anyhow::Error::from(error).context(format!("cannot write {shown}")),
        };
        Failure::new(format!("cannot write {shown}: {error}")).hint(hint)
    })
}

/// Replaces a file as a whole: a reader sees the old content or the new.
pub fn replace(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    replace_on(&SystemFiles, path, bytes)
}

/// The same of any files.
pub fn replace_on(files: &dyn Files, path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    weft_process::replace_on(files, path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "in a test a panic is the report")]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::failure;

    /// The error and its hint, from a thread that is no one in particular, as root may write to everything.
    fn refusal(path: &Path) -> String {
        let path = path.to_owned();
        let rewrites = move || {
            if rustix::process::geteuid().is_root() {
                rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(65_534)).unwrap();
            }
            failure::in_words(&rewrite(&path, b"second").unwrap_err())
        };
        std::thread::spawn(rewrites).join().unwrap()
    }

    #[test]
    fn a_file_that_is_read_only_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a0000.pem");
        fs::write(&path, b"first").unwrap();
        let set_mode =
            |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        set_mode(folder.path(), 0o777);
        set_mode(&path, 0o444);
        let said = refusal(&path);
        let shown = path.display();
        assert!(said.starts_with(&format!("cannot write {shown}: Permission denied")), "{said}");
        assert!(
            said.contains(&format!(
                "hint: run this as the owner of the file and of its folder, after `chmod u+w {shown}`"
            )),
            "{said}"
        );
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing of it is left");
    }
}
