//! Finding peers by name, with the system's resolver.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;

use tokio::net::lookup_host;
use tokio::sync::Semaphore;

use crate::peer::PeerAddress;

/// Names looked up at once. The system's resolver blocks, so each takes a thread.
const LOOKUPS_MAX: usize = 2;

/// What is the matter with a name, if that has changed since it was looked up last.
pub(crate) type News = Option<Option<String>>;

/// Looks names up, a few at a time, and remembers which of them fail.
#[derive(Debug)]
pub(crate) struct Resolver {
    turns: Semaphore,
    /// Why names do not resolve; at most one entry for each cable.
    failing: RefCell<BTreeMap<PeerAddress, String>>,
}

impl Resolver {
    pub(crate) fn new() -> Self {
        Self { turns: Semaphore::new(LOOKUPS_MAX), failing: RefCell::default() }
    }

    /// The address of a peer that an endpoint at `local` can reach. Of several, `attempt` chooses.
    pub(crate) async fn find(
        &self,
        peer: &PeerAddress,
        local: SocketAddr,
        attempt: u32,
    ) -> (Option<SocketAddr>, News) {
        if let Some(literal) = peer.literal() {
            return (Some(literal), None);
        }
        let found = self.look_up(peer, local).await;
        let news = self.note(peer, found.as_ref().err());
        let pick = |found: Vec<SocketAddr>| found.get(attempt as usize % found.len().max(1)).copied();
        (found.ok().and_then(pick), news)
    }

    async fn look_up(&self, peer: &PeerAddress, local: SocketAddr) -> Result<Vec<SocketAddr>, String> {
        // It is never closed.
        let _turn = self.turns.acquire().await.map_err(|error| error.to_string())?;
        let found = lookup_host(peer.to_string()).await.map_err(|error| error.to_string())?;
        let found: Vec<SocketAddr> = found.filter(|found| found.is_ipv4() || local.is_ipv6()).collect();
        match found.is_empty() {
            true => Err("it has no IPv4 address".to_owned()),
            false => Ok(found),
        }
    }

    fn note(&self, peer: &PeerAddress, failure: Option<&String>) -> News {
        let mut failing = self.failing.borrow_mut();
        if failing.get(peer) == failure {
            return None;
        }
        match failure {
            Some(failure) => failing.insert(peer.clone(), failure.clone()),
            None => failing.remove(peer),
        };
        Some(failure.cloned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCAL: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED), 1);

    #[tokio::test]
    async fn a_name_is_found_and_a_literal_is_not_looked_up() {
        let resolver = Resolver::new();
        let literal = SocketAddr::from(([192, 0, 2, 1], 9));
        assert_eq!(resolver.find(&literal.into(), LOCAL, 0).await, (Some(literal), None));
        let named = "localhost:9".parse().unwrap();
        let (found, news) = resolver.find(&named, LOCAL, 3).await;
        assert_eq!((found, news), (Some(SocketAddr::from(([127, 0, 0, 1], 9))), None));
    }

    #[tokio::test]
    async fn a_failure_is_news_once() {
        let resolver = Resolver::new();
        // Reserved never to resolve (RFC 6761).
        let nowhere: PeerAddress = "nowhere.invalid:9".parse().unwrap();
        let (found, news) = resolver.find(&nowhere, LOCAL, 0).await;
        assert!(found.is_none() && matches!(news, Some(Some(_))), "{found:?} {news:?}");
        assert_eq!(resolver.note(&nowhere, None), Some(None), "it resolves again");
        assert_eq!(resolver.note(&nowhere, None), None);
        let why = "gone".to_owned();
        assert_eq!(resolver.note(&nowhere, Some(&why)), Some(Some(why.clone())));
        assert_eq!(resolver.note(&nowhere, Some(&why)), None);
    }
}
