//! The hosts that agents run on, where the user names them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use anyhow::Context;
use weft_link::{PeerAddress, PeerAddressError};

use crate::failure::Failure;
use crate::names::agent_name;

/// What stands for an agent's name in a host's.
const NAME: &str = "{}";

/// The hosts that agents are to run on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hosts {
    /// These, with as many agents each; on each host one port after the other.
    Listed(Vec<String>),
    /// One host for each agent, named with `{}` for the agent's name.
    Named(String),
    /// One address for each agent, from the first of a subnet up.
    Subnet {
        /// The subnet's own address.
        base: Ipv4Addr,
        /// How many addresses it has, its own and the last one among them.
        addresses: u32,
    },
}

/// What is wrong with a list of hosts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostsError {
    /// It is no host's address.
    #[error(transparent)]
    Address(#[from] PeerAddressError),
    /// A subnet begins with something else.
    #[error("`{0}` is no IPv4 address")]
    NoIpv4(String),
    /// A subnet's length is something else.
    #[error("a subnet has /1 to /30")]
    Length,
    /// A subnet does not begin at its first address.
    #[error("{base} is not the first address of a /{bits}")]
    NotFirst {
        /// The address.
        base: Ipv4Addr,
        /// The subnet's length.
        bits: u32,
    },
    /// Agents of two hosts would be at one.
    #[error("`{0}` is named twice")]
    Twice(String),
}

impl FromStr for Hosts {
    type Err = HostsError;

    fn from_str(text: &str) -> Result<Self, HostsError> {
        let check = |host: &str| PeerAddress::new(host, 1).map(drop);
        if text.contains(NAME) {
            check(&text.replace(NAME, "a0000"))?;
            return Ok(Self::Named(text.to_owned()));
        }
        if let Some((base, bits)) = text.split_once('/') {
            let base: Ipv4Addr = base.parse().map_err(|_| HostsError::NoIpv4(base.to_owned()))?;
            let bits: u32 =
                bits.parse().ok().filter(|bits| (1..=30).contains(bits)).ok_or(HostsError::Length)?;
            let addresses = 1 << (32 - bits);
            if u32::from(base) % addresses != 0 {
                return Err(HostsError::NotFirst { base, bits });
            }
            return Ok(Self::Subnet { base, addresses });
        }
        let hosts: Vec<String> = text.split(',').map(str::to_owned).collect();
        hosts.iter().try_for_each(|host| check(host))?;
        let mut seen = BTreeSet::new();
        match hosts.iter().find(|host| !seen.insert(*host)) {
            Some(twice) => Err(HostsError::Twice(twice.clone())),
            None => Ok(Self::Listed(hosts)),
        }
    }
}

/// Where one agent listens, and what its peers dial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentPlace {
    /// Where the agent listens.
    pub bind: SocketAddr,
    /// Where its peers find it.
    pub address: PeerAddress,
}

impl Hosts {
    /// How many there are, where agents share them.
    pub fn shared(&self) -> Option<usize> {
        if let Self::Listed(hosts) = self { Some(hosts.len()) } else { None }
    }

    /// Where agents listen; ports of a host begin at `first_port`. `host_of`: the host of each, where they share hosts.
    pub fn places(&self, host_of: &[usize], first_port: u16) -> anyhow::Result<Vec<AgentPlace>> {
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        let nth = host_of.iter().map(|host| {
            let count = counts.entry(*host).or_default();
            *count += 1;
            (*host, *count - 1)
        });
        let place = |(index, (host, nth))| self.place(index, host_of.len(), host, nth, first_port);
        nth.enumerate().map(place).collect()
    }

    /// `nth`: among the agents of the host.
    fn place(
        &self,
        index: usize,
        agents: usize,
        host: usize,
        nth: usize,
        first_port: u16,
    ) -> anyhow::Result<AgentPlace> {
        let port = |at: usize| {
            let port = u16::try_from(at).ok().and_then(|at| first_port.checked_add(at));
            port.with_context(|| format!("a host has no {at} ports from {first_port} up"))
        };
        let (bind, host, port) = match self {
            Self::Listed(hosts) => {
                let host = hosts.get(host).context("no host is named")?;
                (listen_at(host), host.clone(), port(nth)?)
            }
            Self::Named(pattern) => {
                (Ipv4Addr::UNSPECIFIED.into(), pattern.replace(NAME, &agent_name(index)), first_port)
            }
            Self::Subnet { base, addresses } => {
                let at = u32::try_from(index).ok().filter(|at| at.saturating_add(2) < *addresses);
                let at = at.ok_or_else(|| {
                    Failure::bad_input(format!(
                        "{agents} agents want an address each, and the subnet has {}",
                        addresses - 2
                    ))
                    .hint("name a larger subnet, or run several devices per agent with --pack")
                })?;
                let ip = Ipv4Addr::from(u32::from(*base) + 1 + at);
                (ip.into(), ip.to_string(), first_port)
            }
        };
        Ok(AgentPlace { bind: SocketAddr::new(bind, port), address: PeerAddress::new(&host, port)? })
    }
}

/// Where an agent on a host listens: everywhere, for its peers come over whatever interface leads to them. What stays on
/// this machine is not opened to others.
pub fn listen_at(host: &str) -> IpAddr {
    match host.trim_start_matches('[').trim_end_matches(']').parse() {
        Ok(IpAddr::V4(ip)) if ip.is_loopback() => ip.into(),
        Ok(IpAddr::V6(ip)) if ip.is_loopback() => ip.into(),
        Ok(IpAddr::V6(_)) => Ipv6Addr::UNSPECIFIED.into(),
        _ if is_local(host) => Ipv4Addr::LOCALHOST.into(),
        _ => Ipv4Addr::UNSPECIFIED.into(),
    }
}

/// Whether a host is this machine, whichever one that is.
pub fn is_local(host: &str) -> bool {
    host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "in a test a panic is the report")]
mod tests {
    use super::*;

    fn shown(hosts: &str, host_of: &[usize]) -> Vec<String> {
        let places = hosts.parse::<Hosts>().unwrap().places(host_of, 7000).unwrap();
        places.iter().map(|place| format!("{} {}", place.bind, place.address)).collect()
    }

    #[test]
    fn hosts_share_the_agents() {
        let five = shown("a,b.example", &[0, 1, 0, 0, 1]);
        let all = ["a:7000", "b.example:7000", "a:7001", "a:7002", "b.example:7001"];
        let expected: Vec<String> =
            all.iter().map(|at| format!("0.0.0.0:{} {at}", at.rsplit_once(':').unwrap().1)).collect();
        assert_eq!(five, expected);
        assert_eq!(
            shown("{}.weft", &[0; 2]),
            ["0.0.0.0:7000 a0000.weft:7000", "0.0.0.0:7000 a0001.weft:7000"]
        );
        assert_eq!(
            shown("10.1.0.0/16", &[0; 2]),
            ["10.1.0.1:7000 10.1.0.1:7000", "10.1.0.2:7000 10.1.0.2:7000"]
        );
        assert_eq!(shown("localhost", &[0]), ["127.0.0.1:7000 localhost:7000"]);
        assert_eq!(shown("[::1],fe80::1", &[0, 1]), ["[::1]:7000 [::1]:7000", "[::]:7000 [fe80::1]:7000"]);
        assert!(is_local("localhost") && is_local("127.3.0.1") && !is_local("10.0.0.1") && !is_local("a"));
    }

    #[test]
    fn invalid_host_lists_are_refused() {
        for wrong in [
            "",
            "a,,b",
            "a b",
            "{}/8",
            "10.0.0.0/31",
            "10.0.0.1/16",
            "x/8",
            "1.2.3",
            "a:7",
            "-oX",
            "a,-b",
            "a,b,a",
        ] {
            assert!(wrong.parse::<Hosts>().is_err(), "{wrong}");
        }
        let small: Hosts = "10.0.0.0/30".parse().unwrap();
        assert_eq!(small.places(&[0; 2], 1).unwrap().len(), 2);
        assert!(small.places(&[0; 3], 1).is_err());
        let one: Hosts = "a".parse().unwrap();
        assert!(one.places(&[0; 2], 65_535).is_err());
    }
}
