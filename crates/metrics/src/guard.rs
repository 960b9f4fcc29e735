//! Access to pages over HTTP.
//!
//! | listens on | who may look |
//! |---|---|
//! | loopback | who asks by address or as `localhost`: a page of another site, which reaches the port under a name of its own (DNS rebinding), may not |
//! | any other address | who shows the token, over TLS alone |
//!
//! The token stands in the header `Authorization: Bearer TOKEN` (RFC 6750, 2.1), and nowhere else. The process knows its SHA-256, not
//! the token. No page may be read by another site's: there is no CORS, and a request that names another origin is refused.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;

use hyper::StatusCode;
use hyper::header::{AUTHORIZATION, HOST, HeaderMap, HeaderName, ORIGIN};
use ring::digest::{SHA256, digest};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use crate::wire::Wire;

/// The SHA-256 of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenHash([u8; 32]);

/// Pages are to be shown on an address other than loopback, without a token or a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("HTTP at {0} takes a certificate and a token, as only loopback goes without")]
pub struct Unguarded(pub SocketAddr);

/// What a port asks of clients.
#[derive(Clone)]
pub struct Guard(Option<(TlsAcceptor, TokenHash)>);

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Guard(TLS, token)" } else { "Guard(loopback)" })
    }
}

impl TokenHash {
    /// That of a token. One that is chosen by chance needs no salt.
    pub fn of(token: &str) -> Self {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
        Self(hash)
    }

    /// In a time that does not depend on where they differ.
    pub fn is_that_of(&self, token: &str) -> bool {
        let pairs = self.0.iter().zip(Self::of(token).0);
        pairs.fold(0, |differs, (own, shown)| differs | (own ^ shown)) == 0
    }
}

impl fmt::Display for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for TokenHash {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "the hash of a token is 64 hexadecimal digits";
        let mut hash = [0; 32];
        if text.len() != 64 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(WRONG);
        }
        for (byte, pair) in hash.iter_mut().zip(text.as_bytes().chunks(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| WRONG)?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| WRONG)?;
        }
        Ok(Self(hash))
    }
}

impl Guard {
    /// That of a port of the loopback.
    pub fn loopback() -> Self {
        Self(None)
    }

    /// That of a port at any address: its certificate and the token's hash count where the address is not loopback.
    ///
    /// # Errors
    /// [`Unguarded`] when there are none and the address is not loopback.
    pub fn at(address: SocketAddr, tls: Option<(Arc<ServerConfig>, TokenHash)>) -> Result<Self, Unguarded> {
        if address.ip().is_loopback() {
            return Ok(Self::loopback());
        }
        let (config, token) = tls.ok_or(Unguarded(address))?;
        Ok(Self(Some((TlsAcceptor::from(config), token))))
    }

    /// Makes the handshake that the port asks for, which takes as long as the client wants it to.
    pub(crate) async fn shake_hands(&self, stream: TcpStream) -> io::Result<Wire> {
        Ok(match &self.0 {
            Some((acceptor, _)) => Wire::of(acceptor.accept(stream).await?),
            None => Wire::of(stream),
        })
    }

    /// Why a request with these headers is not answered, if it is not.
    pub fn refuses(&self, headers: &HeaderMap) -> Option<(StatusCode, &'static str)> {
        let host = text(headers, HOST).unwrap_or_default();
        if let Some(origin) = text(headers, ORIGIN)
            && origin.split_once("://").is_none_or(|(_, other)| !other.eq_ignore_ascii_case(host))
        {
            return Some((StatusCode::FORBIDDEN, "pages of other sites may not read this one\n"));
        }
        let Some((_, token)) = &self.0 else {
            let own = is_local(host);
            return (!own).then_some((StatusCode::FORBIDDEN, "ask by address or as localhost\n"));
        };
        let shown = text(headers, AUTHORIZATION).and_then(|value| {
            let (scheme, shown) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then_some(shown.trim())
        });
        let known = shown.is_some_and(|shown| token.is_that_of(shown));
        (!known).then_some((StatusCode::UNAUTHORIZED, "show the token: Authorization: Bearer TOKEN\n"))
    }
}

/// A header that is there once and is text; one that is not is as an empty one.
fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    if values.next().is_some() { Some("") } else { Some(first.to_str().unwrap_or_default()) }
}

/// Whether a Host header names this machine in a way that no other site has.
fn is_local(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let is_address = name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    is_address || name.eq_ignore_ascii_case("localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(HeaderName, &str)]) -> HeaderMap {
        lines.iter().map(|(name, value)| (name.clone(), value.parse().expect("a header"))).collect()
    }

    #[test]
    fn a_hash_is_written_as_it_is_read() {
        let hash = TokenHash::of("abc");
        let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!((hash.to_string().as_str(), text.parse()), (text, Ok(hash)), "the example of FIPS 180-2");
        for wrong in ["", "ba", &text[1..], &text.replace('b', "g"), &text.replace("ba", "é")] {
            assert!(wrong.parse::<TokenHash>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn loopback_is_for_who_asks_by_address() {
        let guard = Guard::loopback();
        for host in ["localhost", "LOCALHOST:9100", "127.0.0.1:9100", "[::1]:9100", "[::1]", "10.0.0.1"] {
            assert_eq!(guard.refuses(&headers(&[(HOST, host)])), None, "{host}");
        }
        for host in
            ["", "evil.example", "localhost.evil.example:9100", "127.0.0.1.evil.example", "localhost:x"]
        {
            let refused = guard.refuses(&headers(&[(HOST, host)])).expect(host);
            assert_eq!(refused.0, StatusCode::FORBIDDEN);
        }
        assert!(guard.refuses(&HeaderMap::new()).is_some(), "no Host at all");
        assert!(guard.refuses(&headers(&[(HOST, "localhost"), (HOST, "localhost")])).is_some(), "twice");
    }

    #[test]
    fn another_origin_is_refused() {
        let guard = Guard::loopback();
        let from = |origin| guard.refuses(&headers(&[(HOST, "127.0.0.1:9100"), (ORIGIN, origin)]));
        assert_eq!(from("http://127.0.0.1:9100"), None);
        for origin in ["http://evil.example", "http://127.0.0.1:9101", "null", "", "http://localhost:9100"] {
            assert_eq!(from(origin).expect(origin).0, StatusCode::FORBIDDEN);
        }
    }

    #[test]
    fn elsewhere_the_token_is_asked_for() {
        let address: SocketAddr = ([10, 0, 0, 1], 9100).into();
        assert_eq!(Guard::at(address, None).err(), Some(Unguarded(address)));
        assert!(Guard::at(([127, 0, 0, 1], 9100).into(), None).expect("loopback").0.is_none());
        let token = TokenHash::of("secret");
        assert!(token.is_that_of("secret"));
        for wrong in ["", "Secret", "secret ", "secretsecret"] {
            assert!(!token.is_that_of(wrong), "{wrong}");
        }
    }
}
