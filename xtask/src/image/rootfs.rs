//! An image's root folder: files put into it, and the documents that every image has.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::sbom;

/// Where the licences are.
const DOCUMENTS: &str = "usr/share/doc/weft";

/// Takes the symbols out of a program, which are two thirds of it; where there is no `strip`, the image is larger.
pub(super) fn strip(program: &Path) {
    let _ = Command::new("strip").arg(program).status();
}

/// Writes down what is inside an image, and under which terms.
pub(super) fn document(root: &Path, inside: &sbom::Inside, rootfs: &Path) -> Result<()> {
    let documents = rootfs.join(DOCUMENTS);
    for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
        put(&root.join(licence), &documents.join(licence))?;
    }
    write(&documents.join("sbom.cdx.json"), &inside.bill()?)?;
    let licences = documents.join("licences.txt");
    write(&licences, &inside.licences())?;
    // Four hundred kilobytes, and twenty-five compressed; without the name and the time, the same each time.
    let packed = Command::new("gzip").args(["-nf9"]).arg(&licences).status().context("cannot run gzip")?;
    anyhow::ensure!(packed.success(), "gzip failed");
    Ok(())
}

/// Copies a file, and makes the folders that it needs.
pub(super) fn put(from: &Path, to: &Path) -> Result<()> {
    let copied = || {
        fs::create_dir_all(to.parent().unwrap_or(Path::new("/")))?;
        fs::copy(from, to)
    };
    copied().map(drop).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))
}

/// Writes a file, and makes the folders that it needs.
pub(super) fn write(path: &Path, text: &str) -> Result<()> {
    let written = || {
        fs::create_dir_all(path.parent().unwrap_or(Path::new("/")))?;
        fs::write(path, text)
    };
    written().with_context(|| format!("cannot write {}", path.display()))
}
