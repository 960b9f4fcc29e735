//! Rooms within a crate: files and folders of a folder name each other in one direction only.
//!
//! A module is named by a `use`, by a path in code, in a macro or in an attribute (`serde(try_from = "…")`), and by a name that another
//! module re-exports: that counts as the module that defines it. A child may name its ancestors, and they may name it. Tests do not count.

mod known;
mod machines;
mod names;
mod paths;
mod rooms;
mod sources;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

pub(crate) use paths::is_for_tests;

use known::Known;
use rooms::{Knot, Rooms};
use sources::Sources;

/// Fails with every knot that the list of known ones has not, and with every line of the list that holds no longer.
pub(crate) fn check(root: &Path) -> Result<()> {
    let list =
        fs::read_to_string(root.join(known::FILE)).with_context(|| format!("cannot read {}", known::FILE))?;
    let mut found: BTreeMap<String, Vec<Knot>> = BTreeMap::new();
    for (name, folder) in crates() {
        let sources = Sources::read(root, &root.join(folder))?;
        found.insert(name.to_owned(), Rooms::of(&sources).knots());
    }
    let wrong = Known::read(&list)?.judge(&found);
    if wrong.is_empty() { Ok(()) } else { bail!("modules that name each other:\n  {}", wrong.join("\n  ")) }
}

/// The crates that are checked, and where their sources are: those of the table of layers, and this one.
fn crates() -> impl Iterator<Item = (&'static str, String)> {
    let crates = crate::layers::rooms().map(|name| (name, format!("crates/{name}/src")));
    crates.chain([("xtask", "xtask/src".to_owned())])
}
