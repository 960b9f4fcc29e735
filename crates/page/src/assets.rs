//! The files of the page, inside the program: all that are in its folder.

/// A file of the page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asset {
    /// Its path in `assets`.
    pub(crate) path: &'static str,
    /// What it holds.
    pub(crate) bytes: &'static [u8],
}

/// All files.
pub(crate) const ASSETS: &[Asset] = include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// The type of a file, by the end of its name; `None` of kinds that the page has not.
pub(crate) fn kind_of(path: &str) -> Option<&'static str> {
    Some(match path.rsplit_once('.')?.1 {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    fn files(folder: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
    }

    #[test]
    fn every_file_of_the_page_is_in_the_program() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets");
        let there = files(&folder);
        for path in &there {
            let name = path.strip_prefix(&folder).unwrap().to_str().unwrap();
            let asset = ASSETS.iter().find(|asset| asset.path == name);
            let asset = asset.unwrap_or_else(|| panic!("{name} is not in the program"));
            assert!(kind_of(name).is_some() && asset.bytes == std::fs::read(path).unwrap(), "{name}");
        }
        assert_eq!(ASSETS.len(), there.len());
    }
}
