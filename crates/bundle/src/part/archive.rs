//! Files of a bundle on their way to another host: a tar archive, which is read into memory.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::{Component, Path};

/// What an archive comes to at most.
const ARCHIVE_BYTES_MAX: u64 = 512 << 20;

/// Files by their paths in the bundle.
pub type Files = BTreeMap<String, Vec<u8>>;

/// Writes them as an archive.
pub fn pack(files: &Files, to: impl Write) -> std::io::Result<()> {
    let mut archive = tar::Builder::new(to);
    for (file, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o600);
        header.set_size(bytes.len() as u64);
        archive.append_data(&mut header, file, bytes.as_slice())?;
    }
    archive.into_inner()?.flush()
}

/// Reads them, and no further than the archive's end; else says what is wrong with it.
pub fn unpack(from: impl Read) -> Result<Files, String> {
    let mut archive = tar::Archive::new(from.take(ARCHIVE_BYTES_MAX));
    let mut files = Files::new();
    for entry in archive.entries().map_err(|error| error.to_string())? {
        let mut entry = entry.map_err(|error| error.to_string())?;
        let path = entry.path().map_err(|error| error.to_string())?.into_owned();
        let name = name_of(&path).filter(|_| entry.header().entry_type().is_file());
        let name = name.ok_or_else(|| format!("{} is no file of a bundle", path.display()))?;
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).map_err(|error| format!("{name}: {error}"))?;
        if bytes.len() as u64 != entry.size() {
            return Err(format!("{name} is cut short"));
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
    fn what_is_packed_comes_out_again() {
        let files = Files::from([("lab.json".to_owned(), b"{}".to_vec()), ("a/b".to_owned(), vec![7; 5000])]);
        let mut archive = Vec::new();
        pack(&files, &mut archive).unwrap();
        assert_eq!(unpack(archive.as_slice()), Ok(files));
    }
}
