//! `weft sim`
use crate::cli::SimArgs;
pub(super) fn run(_args: &SimArgs) -> anyhow::Result<()> {
    anyhow::bail!("not yet")
}
