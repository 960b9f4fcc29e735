//! Wiring: ports and their cables.

use weft_link::{Cable, CableEnd, LinkIndex};
use weft_machine::Time;
use weft_node::{PortId, Request};
use weft_wire::{Guid, LinkParameters};

use crate::names::Names;
use weft_agent_config::{AgentPart, CableConfig};

/// A cable as one of the agent's ports sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cabled {
    /// The link to another agent; none for a cable within this one.
    pub(crate) link: Option<LinkIndex>,
    /// The port at the other end.
    pub(crate) peer: CableEnd,
    /// How long its data lanes take beside what QUIC takes, in nanoseconds.
    pub(crate) delay_ns: u64,
}

/// The agent's cabling.
#[derive(Debug, Default)]
pub(crate) struct Wiring {
    /// By device and port number.
    ports: Vec<Vec<Option<Cabled>>>,
    /// By link index, and whether the node last saw it up; none where the cable was taken out.
    links: Vec<Option<(PortId, bool)>>,
    count: usize,
}

impl Wiring {
    /// Lays the cables of a checked configuration. Also returns the requests that bring them to the
    /// node, and the cables that leave the agent.
    pub(crate) fn lay(part: &AgentPart, names: &Names) -> (Self, Vec<Request>, Vec<Cable>) {
        let mut wiring = Self::default();
        let (mut requests, mut cables) = (Vec::new(), Vec::new());
        let place = |end: CableEnd| names.find(end.guid).map(|device| PortId::new(device, end.port));
        for cable in part.distinct_cables() {
            let CableConfig { local: local_end, remote, remote_addr, delay_ns } = cable;
            let (Some(local), delay) = (place(local_end), Time::from_nanos(delay_ns)) else { continue };
            match (remote_addr, place(remote)) {
                (Some(remote_addr), _) => {
                    let link = Some(LinkIndex(cables.len()));
                    wiring.plug(local, Cabled { link, peer: remote, delay_ns });
                    wiring.links.push(Some((local, false)));
                    let parameters = parameters_at_first(part, local_end);
                    cables.push(Cable { local: local_end, remote, remote_addr, parameters });
                    requests.push(Request::Lead { at: local, delay });
                }
                (None, Some(far)) => {
                    wiring.plug(local, Cabled { link: None, peer: remote, delay_ns });
                    wiring.plug(far, Cabled { link: None, peer: local_end, delay_ns });
                    requests.push(Request::Connect { ends: [local, far], delay });
                }
                (None, None) => {}
            }
        }
        (wiring, requests, cables)
    }

    /// A cable to another agent is in a port from now on.
    pub(crate) fn lead_out(&mut self, at: PortId, link: LinkIndex, peer: CableEnd, delay_ns: u64) {
        if self.links.len() <= link.0 {
            self.links.resize(link.0 + 1, None);
        }
        self.links[link.0] = Some((at, false));
        self.plug(at, Cabled { link: Some(link), peer, delay_ns });
    }

    /// No cable is in a port any more.
    pub(crate) fn unplug(&mut self, at: PortId) {
        let ports = self.ports.get_mut(at.device.0 as usize);
        let cabled = ports.and_then(|ports| ports.get_mut(usize::from(at.port.0))?.take());
        let Some(cabled) = cabled else { return };
        self.count -= 1;
        if let Some(known) = cabled.link.and_then(|link| self.links.get_mut(link.0)) {
            *known = None;
        }
    }

    /// A cable is in a port from now on.
    pub(crate) fn plug(&mut self, at: PortId, cabled: Cabled) {
        let (device, port) = (at.device.0 as usize, usize::from(at.port.0));
        if self.ports.len() <= device {
            self.ports.resize_with(device + 1, Vec::new);
        }
        let ports = &mut self.ports[device];
        if ports.len() <= port {
            ports.resize(port + 1, None);
        }
        ports[port] = Some(cabled);
        self.count += 1;
    }

    /// The device at the other end of the cable in a port has another GUID.
    pub(crate) fn rename_peer(&mut self, at: PortId, guid: Guid) {
        let ports = self.ports.get_mut(at.device.0 as usize);
        let cabled = ports.and_then(|ports| ports.get_mut(usize::from(at.port.0))?.as_mut());
        if let Some(cabled) = cabled {
            cabled.peer.guid = guid;
        }
    }

    /// The cable at a port.
    #[inline]
    pub(crate) fn at(&self, at: PortId) -> Option<Cabled> {
        *self.ports.get(at.device.0 as usize)?.get(usize::from(at.port.0))?
    }

    /// The port that a link is at.
    #[inline]
    pub(crate) fn of_link(&self, link: LinkIndex) -> Option<PortId> {
        self.links.get(link.0)?.map(|(at, _)| at)
    }

    /// Notes that the node was informed that a link came up or went down.
    pub(crate) fn tell_up(&mut self, link: LinkIndex, up: bool) {
        if let Some(Some((_, told))) = self.links.get_mut(link.0) {
            *told = up;
        }
    }

    /// Whether the node was last informed that a link is up.
    pub(crate) fn is_up(&self, link: LinkIndex) -> bool {
        self.links.get(link.0).is_some_and(|link| link.is_some_and(|(_, up)| up))
    }

    /// How many links the node believes to be up.
    pub(crate) fn up_count(&self) -> usize {
        self.links.iter().flatten().filter(|(_, up)| *up).count()
    }

    /// The ports that have a cable.
    pub(crate) fn cabled_count(&self) -> usize {
        self.count
    }
}

fn parameters_at_first(part: &AgentPart, end: CableEnd) -> LinkParameters {
    let device = part.devices.iter().find(|device| device.guid == end.guid);
    let port = device.and_then(|device| device.ports.get(usize::from(end.port.0).checked_sub(1)?));
    port.map(|port| port.link).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use weft_node::DeviceId;
    use weft_wire::PortNum;

    use super::*;

    #[test]
    fn a_thousand_cables_that_come_and_go_leave_tables_as_they_were() {
        let mut wiring = Wiring::default();
        let at = |port| PortId::new(DeviceId(0), PortNum(port));
        let peer = CableEnd { guid: Guid(7), port: PortNum(1) };
        wiring.lead_out(at(1), LinkIndex(0), peer, 0);
        wiring.lead_out(at(2), LinkIndex(1), peer, 0);
        let sizes = |wiring: &Wiring| (wiring.ports[0].len(), wiring.links.len(), wiring.cabled_count());
        let before = sizes(&wiring);
        for _ in 0..1000 {
            wiring.unplug(at(2));
            assert_eq!((wiring.of_link(LinkIndex(1)), wiring.cabled_count()), (None, 1));
            wiring.lead_out(at(2), LinkIndex(1), peer, 5);
            wiring.tell_up(LinkIndex(1), true);
        }
        assert_eq!(sizes(&wiring), before);
        assert_eq!((wiring.of_link(LinkIndex(1)), wiring.up_count()), (Some(at(2)), 1));
    }
}
