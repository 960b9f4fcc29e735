//! Pages over HTTP: who may look at them, and the token of those who may.

use std::net::SocketAddr;

use weft_bundle::failure::Failure;
use weft_link::Credentials;
use weft_metrics::{Guard, TokenHash};

/// What a port asks of clients: nothing on loopback, else the laboratory's token, over TLS.
pub fn guard(
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
    })
}
