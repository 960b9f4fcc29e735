//! docs/control.schema.json and the tables of docs/control.md, from the types of `weft-control`.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// The tables stand behind this line, up to the end of the page.
const MARK: &str = "<!-- Made by `cargo xtask schema`; nothing below is written by hand. -->\n";

const SCHEMA: &str = "docs/control.schema.json";
const PAGE: &str = "docs/control.md";

/// Writes both files.
pub(crate) fn write(root: &Path) -> Result<()> {
    for (name, text) in files(root)? {
        let place = root.join(name);
        fs::write(&place, text).with_context(|| format!("cannot write {}", place.display()))?;
    }
    Ok(())
}

/// Both files as they have to be.
fn files(root: &Path) -> Result<[(&'static str, String); 2]> {
    let schema = serde_json::to_string_pretty(&weft_control::schema::schema())? + "\n";
    let place = root.join(PAGE);
    let page = fs::read_to_string(&place).with_context(|| format!("cannot read {}", place.display()))?;
    let (written, _) = page.split_once(MARK).with_context(|| format!("{PAGE} has no line {MARK}"))?;
    Ok([(SCHEMA, schema), (PAGE, format!("{written}{MARK}\n{}", weft_control::schema::tables()))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_schema_matches_the_types() {
        let root = crate::root();
        for (name, text) in files(&root).unwrap() {
            let found = fs::read_to_string(root.join(name)).unwrap();
            assert!(found == text, "{name} is out of date\nhint: cargo xtask schema");
        }
    }
}
