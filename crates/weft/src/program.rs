//! The program itself: it starts its other processes by running itself again, and finds its libraries beside itself.

use std::path::PathBuf;

use anyhow::Context as _;

/// The program's path.
pub(crate) fn path() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("cannot tell which program this is")
}
