//! A peer's address: an IP address or a host's name, and a port.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

/// The longest name that DNS knows (RFC 1035, 2.3.4), and the longest of its parts.
const NAME_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;

/// Where a peer listens, as `host:port`. A name is resolved at each dial, so a peer may move to another IP address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerAddress(Host);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Host {
    Literal(SocketAddr),
    Named(Box<str>, u16),
}

/// Why a text is no peer's address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PeerAddressError {
    /// No port.
    #[error("`{0}` has no port: write HOST:PORT")]
    NoPort(String),
    /// The port is no number from 1 to 65535.
    #[error("`{0}` is no port: use 1 to 65535")]
    Port(String),
    /// Neither an IP address nor a name.
    #[error("`{0}` is neither an IP address nor a host name")]
    Host(String),
}

impl PeerAddress {
    /// An address from its parts. An IPv6 address may have its brackets or not.
    pub fn new(host: &str, port: u16) -> Result<Self, PeerAddressError> {
        if port == 0 {
            return Err(PeerAddressError::Port("0".to_owned()));
        }
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if let Ok(address) = bare.parse() {
            return Ok(Self(Host::Literal(SocketAddr::new(address, port))));
        }
        match is_name(host) {
            true => Ok(Self(Host::Named(host.into(), port))),
            false => Err(PeerAddressError::Host(host.to_owned())),
        }
    }

    /// The address, unless it has to be looked up.
    pub fn literal(&self) -> Option<SocketAddr> {
        match self.0 {
            Host::Literal(address) => Some(address),
            Host::Named(..) => None,
        }
    }

    /// The port.
    pub fn port(&self) -> u16 {
        match self.0 {
            Host::Literal(address) => address.port(),
            Host::Named(_, port) => port,
        }
    }

    /// The host without its port; an IPv6 address without brackets.
    pub fn host(&self) -> String {
        match &self.0 {
            Host::Literal(address) => address.ip().to_string(),
            Host::Named(name, _) => name.to_string(),
        }
    }
}

/// Whether a resolver could know this name. What ends in a number is a mistyped IP address (RFC 1123, 2.1).
fn is_name(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host);
    let good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let label = |label: &str| {
        (1..=LABEL_BYTES_MAX).contains(&label.len())
            && label.chars().all(good)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let is_number =
        host.rsplit('.').next().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()));
    host.len() <= NAME_BYTES_MAX && host.split('.').all(label) && !is_number
}

impl From<SocketAddr> for PeerAddress {
    fn from(address: SocketAddr) -> Self {
        Self(Host::Literal(address))
    }
}

impl FromStr for PeerAddress {
    type Err = PeerAddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (host, port) = text.rsplit_once(':').ok_or_else(|| PeerAddressError::NoPort(text.to_owned()))?;
        let number = port.parse().map_err(|_| PeerAddressError::Port(port.to_owned()))?;
        // Without brackets the last group of an IPv6 address would pass for a port.
        if host.contains(':') && !host.starts_with('[') {
            return Err(PeerAddressError::Host(host.to_owned()));
        }
        Self::new(host, number)
    }
}

weft_wire::serde_as_text!(PeerAddress);

impl fmt::Display for PeerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Host::Literal(address) => address.fmt(f),
            Host::Named(name, port) => write!(f, "{name}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_survive_their_text() {
        for text in
            ["127.0.0.1:20000", "[::1]:1", "a0007:20000", "a0007.weft.svc.cluster.local:65535", "x_1.:7"]
        {
            let address: PeerAddress = text.parse().unwrap();
            assert_eq!(address.to_string(), text);
            let json = serde_json::to_string(&address).unwrap();
            assert_eq!(serde_json::from_str::<PeerAddress>(&json).unwrap(), address);
        }
        let literal = |text: &str| text.parse::<PeerAddress>().unwrap().literal();
        assert_eq!(literal("127.0.0.1:9"), Some(SocketAddr::from(([127, 0, 0, 1], 9))));
        assert_eq!(literal("localhost:9"), None);
        assert_eq!(PeerAddress::new("::1", 9), "[::1]:9".parse());
    }

    #[test]
    fn invalid_peer_addresses_are_refused() {
        let error = |text: &str| text.parse::<PeerAddress>().unwrap_err();
        assert_eq!(error("host"), PeerAddressError::NoPort("host".into()));
        for port in ["", "0", "65536", "-1", "x"] {
            assert_eq!(error(&format!("host:{port}")), PeerAddressError::Port(port.into()));
        }
        let long = "x".repeat(64);
        let longer = ["x".repeat(63).as_str(); 4].join(".");
        for host in
            ["", "1.2.3", "300.1.1.1", "a..b", "-a", "a-", "a b", "ä", "::1", "a/b", "[a]", &long, &longer]
        {
            assert_eq!(error(&format!("{host}:9")), PeerAddressError::Host(host.into()));
        }
    }
}
