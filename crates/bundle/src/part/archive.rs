//! Files of a bundle on their way to another host: a tar archive, which is read into memory.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};

/// What an archive comes to at most.
const ARCHIVE_BYTES_MAX: u64 = 512 << 20;

/// Files by their paths in the bundle.
pub type Files = BTreeMap<String, Vec<u8>>;

/// What is wrong with an archive.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// It cannot be read.
    #[error(transparent)]
    Unreadable(#[from] io::Error),
    /// It has something else than files of a bundle.
    #[error("{} is no file of a bundle", .0.display())]
    Foreign(PathBuf),
    /// A file in it cannot be read.
    #[error("{file}: {source}")]
    File {
        /// The file.
        file: String,
        /// The reason.
        source: io::Error,
    },
    /// A file in it has fewer bytes than announced.
    #[error("{0} is cut short")]
    Short(String),
}

/// Writes them as an archive.
pub fn pack(files: &Files, to: impl Write) -> io::Result<()> {
    let mut archive = tar::Builder::new(to);
    for (file, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o600);
        header.set_size(bytes.len() as u64);
        archive.append_data(&mut header, file, bytes.as_slice())?;
    }
    archive.into_inner()?.flush()
}

/// Reads them, and no further than the archive's end.
pub fn unpack(from: impl Read) -> Result<Files, ArchiveError> {
    let mut archive = tar::Archive::new(from.take(ARCHIVE_BYTES_MAX));
    let mut files = Files::new();
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        let name = name_of(&path).filter(|_| entry.header().entry_type().is_file());
        let Some(name) = name else { return Err(ArchiveError::Foreign(path)) };
        let mut bytes = Vec::new();
        if let Err(source) = entry.read_to_end(&mut bytes) {
            return Err(ArchiveError::File { file: name, source });
        }
        if bytes.len() as u64 != entry.size() {
            return Err(ArchiveError::Short(name));
        }
        files.insert(name, bytes);
    }
    Ok(files)
}

/// The path of a file in a bundle: below its folder, and at most one folder deep.
fn name_of(path: &Path) -> Option<String> {
    let parts: Option<Vec<&str>> = path
        .components()
        .map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect();
    let parts = parts.filter(|parts| (1..=2).contains(&parts.len()))?;
    Some(parts.join("/"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "in a test a panic is the report")]
mod tests {
    use super::*;

    #[test]
    fn no_name_in_an_archive_leads_out_of_the_bundle() {
        for (path, name) in [("lab.json", Some("lab.json")), ("agents/a0.json", Some("agents/a0.json"))] {
            assert_eq!(name_of(Path::new(path)).as_deref(), name);
        }
        for path in ["", "/etc/passwd", "../x", "a/../x", "a/b/c"] {
            assert_eq!(name_of(Path::new(path)), None, "{path}");
        }
    }

    #[test]
    fn an_archive_round_trips() {
        let files = Files::from([("lab.json".to_owned(), b"{}".to_vec()), ("a/b".to_owned(), vec![7; 5000])]);
        let mut archive = Vec::new();
        pack(&files, &mut archive).unwrap();
        assert_eq!(unpack(archive.as_slice()).unwrap(), files);
    }
}
