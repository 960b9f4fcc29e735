//! A cable between two agents, or within one, and the orders to them about it.

use serde::{Deserialize, Serialize};
use weft_agent_config::{AgentPart, CableConfig};
use weft_control::agent::PortEnd;
use weft_control::{HexGuid, Request};
use weft_link::{CableEnd, PeerAddress};

/// A cable with what its agents must know of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cord {
    /// Its ends; the first is the lower one, whose agent dials.
    pub ends: [CordEnd; 2],
    /// How long its data lanes take, in nanoseconds.
    pub delay_ns: u64,
}

/// One end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CordEnd {
    /// The port.
    pub port: CableEnd,
    /// Its agent.
    pub agent: String,
    /// Where that agent listens.
    pub address: PeerAddress,
}

/// An order to one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) agent: String,
    pub(crate) request: Request,
    /// What undoes it.
    pub(crate) undo: Request,
}

fn port_end(end: CableEnd) -> PortEnd {
    PortEnd { node: HexGuid(end.guid), port: end.port }
}

impl Cord {
    pub(crate) fn new(a: CordEnd, b: CordEnd, delay_ns: u64) -> Self {
        let ends = if a.port < b.port { [a, b] } else { [b, a] };
        Self { ends, delay_ns }
    }

    /// Its ends as the control protocol names them.
    pub(crate) fn port_ends(&self) -> [PortEnd; 2] {
        self.ends.each_ref().map(|end| port_end(end.port))
    }

    /// Whether both of its ends are at one agent.
    fn is_inside(&self) -> bool {
        self.ends[0].agent == self.ends[1].agent
    }

    /// The names of its agents, each once.
    pub(crate) fn agents(&self) -> impl Iterator<Item = &str> {
        let second = (!self.is_inside()).then_some(&self.ends[1]);
        std::iter::once(&self.ends[0]).chain(second).map(|end| end.agent.as_str())
    }

    /// The orders that put it in: first to the agent that is dialled, so that it accepts the other.
    pub(crate) fn put_in(&self) -> Vec<Order> {
        let mut orders: Vec<Order> = self.orders().collect();
        orders.reverse();
        orders
    }

    /// The orders that take it out: first to the agent that dials, so that it is not refused.
    pub(crate) fn take_out(&self) -> Vec<Order> {
        let undone = |order: Order| Order { request: order.undo, undo: order.request, ..order };
        self.orders().map(undone).collect()
    }

    fn orders(&self) -> impl Iterator<Item = Order> {
        let [a, b] = &self.ends;
        let second = (!self.is_inside()).then_some((b, a));
        std::iter::once((a, b)).chain(second).map(|(here, there)| {
            let (end, peer) = (port_end(here.port), port_end(there.port));
            let peer_address = (here.agent != there.agent).then(|| there.address.to_string());
            Order {
                agent: here.agent.clone(),
                request: Request::ConnectCable { end, peer, peer_address, delay_ns: self.delay_ns },
                undo: Request::DisconnectCable { end, peer },
            }
        })
    }

    /// Whether an agent's cable is this one.
    fn is(&self, cable: &CableConfig) -> bool {
        let [a, b] = [self.ends[0].port, self.ends[1].port];
        [(a, b), (b, a)].contains(&(cable.local, cable.remote))
    }

    /// The delay of the same cable in an agent's configuration.
    pub(crate) fn delay_in(&self, part: &AgentPart) -> u64 {
        part.cables.iter().find(|cable| self.is(cable)).map_or(0, |cable| cable.delay_ns)
    }

    /// Takes it out of an agent's configuration.
    pub(crate) fn strike_from(&self, part: &mut AgentPart) {
        part.cables.retain(|cable| !self.is(cable));
    }

    /// Puts it into an agent's configuration.
    pub(crate) fn add_to(&self, part: &mut AgentPart) {
        let [a, b] = &self.ends;
        for (here, there) in [(a, b), (b, a)] {
            if here.agent == part.name {
                part.cables.push(CableConfig {
                    local: here.port,
                    remote: there.port,
                    remote_addr: (there.agent != here.agent).then(|| there.address.clone()),
                    delay_ns: self.delay_ns,
                });
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "in a test a panic is the report")]
mod tests {
    use weft_wire::{Guid, PortNum};

    use super::*;

    fn end(guid: u64, agent: &str) -> CordEnd {
        let port = CableEnd { guid: Guid(guid), port: PortNum(1) };
        CordEnd { port, agent: agent.to_owned(), address: "127.0.0.1:20000".parse().unwrap() }
    }

    fn told(orders: &[Order]) -> Vec<(&str, &str)> {
        orders.iter().map(|order| (order.agent.as_str(), order.request.name())).collect()
    }

    #[test]
    fn the_dialler_connects_last_and_disconnects_first() {
        let cord = Cord::new(end(2, "b"), end(1, "a"), 7);
        assert_eq!(told(&cord.put_in()), [("b", "connect-cable"), ("a", "connect-cable")]);
        assert_eq!(told(&cord.take_out()), [("a", "disconnect-cable"), ("b", "disconnect-cable")]);
        assert_eq!(cord.agents().collect::<Vec<_>>(), ["a", "b"]);
        for order in cord.put_in() {
            let Request::ConnectCable { peer_address, delay_ns, .. } = order.request else { panic!() };
            assert_eq!((peer_address.as_deref(), delay_ns), (Some("127.0.0.1:20000"), 7));
            assert!(matches!(order.undo, Request::DisconnectCable { .. }));
        }
    }

    #[test]
    fn one_agent_is_told_once() {
        let cord = Cord::new(end(1, "a"), end(2, "a"), 0);
        let [Order { request: Request::ConnectCable { peer_address: None, .. }, .. }] = &cord.put_in()[..]
        else {
            panic!("{cord:?}")
        };
        assert_eq!(cord.agents().collect::<Vec<_>>(), ["a"]);
    }
}
