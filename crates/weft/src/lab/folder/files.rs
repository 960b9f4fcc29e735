//! Files of a laboratory: only their owner can read them, and a reader finds them whole.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// Writes a file that only its owner can read.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    fs::File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(bytes))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Makes a file if it is not there.
pub(in crate::lab) fn touch(path: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let opened = fs::File::options().append(true).create(true).mode(0o600).open(path);
    opened.map(drop).with_context(|| format!("cannot write {}", path.display()))
}

/// A path named from the root.
pub(crate) fn absolute(path: &Path) -> anyhow::Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("cannot find {}", path.display()))
}

/// Puts other content into a file that containers may have mounted.
pub(crate) fn rewrite(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    weft_process::rewrite(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

/// Replaces a file as a whole: a reader sees the old content or the new.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    weft_process::replace(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}
