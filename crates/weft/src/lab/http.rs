//! Pages over HTTP: who may look at them, and the token of those who may.

use std::net::SocketAddr;

use anyhow::Context;
use weft_link::Credentials;
use weft_metrics::{Guard, TokenHash};

use super::{Bundle, folder};
use crate::failure::Failure;

/// What a port asks of clients: nothing on loopback, and elsewhere the laboratory's token, over TLS.
pub(crate) fn guard(
    address: SocketAddr,
    credentials: Option<&Credentials>,
    token: Option<&str>,
) -> anyhow::Result<Guard> {
    if address.ip().is_loopback() {
        return Ok(Guard::loopback());
    }
    let token = token.map(str::parse::<TokenHash>).transpose().map_err(Failure::new)?;
    let https = credentials.map(Credentials::https).transpose()?;
    Guard::at(address, https.zip(token)).map_err(|error| {
        Failure::new(error.to_string())
            .hint("plan the laboratory with this version of weft, or serve on 127.0.0.1")
            .into()
    })
}

/// Chooses a token and writes it into a bundle; gives its hash, which is no secret.
pub(super) fn choose_token(bundle: &Bundle) -> anyhow::Result<String> {
    let token: String = rand::random::<[u8; 32]>().iter().map(|byte| format!("{byte:02x}")).collect();
    folder::write(&bundle.http_token(), token.as_bytes()).context("cannot keep the token of HTTP")?;
    Ok(TokenHash::of(&token).to_string())
}
