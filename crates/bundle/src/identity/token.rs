//! The token that clients of HTTP show, where that is not on loopback.

use anyhow::Context;
use weft_metrics::TokenHash;

use crate::folder;
use crate::folder::bundle::Bundle;

/// Chooses a token and writes it into a bundle; gives its hash, which is no secret.
pub(crate) fn choose_token(bundle: &Bundle) -> anyhow::Result<String> {
    let token: String = rand::random::<[u8; 32]>().iter().map(|byte| format!("{byte:02x}")).collect();
    folder::write(&bundle.http_token(), token.as_bytes()).context("cannot keep the token of HTTP")?;
    Ok(TokenHash::of(&token).to_string())
}
