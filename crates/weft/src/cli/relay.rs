//! The options of `weft relay`.

use clap::Args;
use weft_bundle::names::HUB;

/// `relay`
#[derive(Debug, Args)]
pub(crate) struct RelayArgs {
    /// Process to talk to, as `weft ps` lists them
    #[arg(default_value = HUB, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) process: String,
}
