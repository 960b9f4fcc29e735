//! The files of a crate as a tree of modules.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::paths::{Module, Scan, scan};

/// The sources of a crate, without tests and other programs.
pub(super) struct Sources {
    /// The scans of each module that is a file. A crate may have two roots.
    pub(super) files: BTreeMap<Module, Vec<Scan>>,
}

impl Sources {
    /// Reads all sources in a folder; `root` is what names of files are relative to.
    pub(super) fn read(root: &Path, folder: &Path) -> Result<Self> {
        let mut texts = Vec::new();
        for file in crate::files::rust_files(folder)? {
            let within = file.strip_prefix(folder).unwrap_or(&file);
            let shown = file.strip_prefix(root).unwrap_or(&file).display().to_string();
            let text = fs::read_to_string(&file).with_context(|| format!("cannot read {shown}"))?;
            texts.extend(module(within).map(|module| (module, shown, text)));
        }
        Self::of(&texts)
    }

    /// The sources given as modules, names of files, and texts.
    pub(super) fn of(texts: &[(Module, String, String)]) -> Result<Self> {
        let mut files: BTreeMap<Module, Vec<Scan>> = BTreeMap::new();
        for (module, name, text) in texts {
            let parsed = syn::parse_file(text).with_context(|| format!("invalid Rust in {name}"))?;
            files.entry(module.clone()).or_default().push(scan(module, name, &parsed));
        }
        let tests: BTreeSet<Module> =
            files.values().flatten().flat_map(|scan| scan.tests.iter().cloned()).collect();
        files.retain(|module, _| !tests.iter().any(|test| module.starts_with(test)));
        Ok(Self { files })
    }

    /// The file that a module stands in: itself, or an ancestor whose file holds it.
    pub(super) fn file(&self, module: &[String]) -> Module {
        let mut file = module.to_vec();
        while !file.is_empty() && !self.files.contains_key(&file) {
            file.pop();
        }
        file
    }
}

/// The module of a file; none for another program.
pub(super) fn module(file: &Path) -> Option<Module> {
    let name = file.with_extension("");
    let mut path: Module = name.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if path.first().is_some_and(|first| first == "bin") {
        return None;
    }
    if path.last().is_some_and(|last| ["lib", "main", "mod"].contains(&last.as_str())) {
        path.pop();
    }
    Some(path)
}
