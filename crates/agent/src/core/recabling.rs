//! Cables that come and go while the agent runs.

use weft_control::agent::PortEnd;
use weft_control::event::AgentEvent;
use weft_control::{Answer, Error, ErrorCode, HexGuid};
use weft_link::{Cable, CableEnd, PeerAddress};
use weft_machine::Time;
use weft_node::{PortId, Request};
use weft_wire::PortNum;

use super::Core;
use crate::asked::Asker;
use crate::wiring::Cabled;

/// What `link-down` says of a cable that was taken out.
const TAKEN_OUT: &str = "the cable was taken out";

impl Core {
    /// Puts a cable into one of the agent's ports, or into two.
    pub(crate) fn connect_cable(
        &mut self,
        end: PortEnd,
        peer: PortEnd,
        peer_address: Option<&str>,
        delay_ns: u64,
    ) -> Result<Answer, Error> {
        if end == peer {
            return Err(Error::new(ErrorCode::InvalidRequest, format!("{end} cannot be cabled to itself")));
        }
        let (at, there) = (self.external_port(end)?, cable_end(peer));
        let far = match self.names.find(peer.node.0) {
            Some(_) => Some(self.external_port(peer)?),
            None => None,
        };
        if self.peer(at) == Some(there) {
            return Ok(Answer::Done);
        }
        for at in [Some(at), far].into_iter().flatten() {
            if let Some(taken) = self.peer(at) {
                let message = format!("a cable to {taken} is in {} already", self.names.cable_end(at));
                return Err(Error::new(ErrorCode::Conflict, message).hint("take it out first"));
            }
        }
        match far {
            Some(far) => self.connect_within([at, far], delay_ns),
            None => self.lead_out(at, there, delay_ns, peer_address)?,
        }
        for (at, peer) in std::iter::once((at, peer)).chain(far.map(|far| (far, end))) {
            if let Some((guid, node)) = self.told_name(at) {
                self.recorder.tell(AgentEvent::CableConnected { guid, node, port: at.port, peer });
            }
        }
        self.signals.links.notify_one();
        Ok(Answer::Done)
    }

    fn connect_within(&mut self, ends: [PortId; 2], delay_ns: u64) {
        let [a, b] = ends;
        for (here, there) in [(a, b), (b, a)] {
            let peer = self.names.cable_end(there);
            self.wiring.plug(here, Cabled { link: None, peer, delay_ns });
        }
        self.ask(Asker::Agent, Request::Connect { ends, delay: Time::from_nanos(delay_ns) });
    }

    fn lead_out(
        &mut self,
        at: PortId,
        peer: CableEnd,
        delay_ns: u64,
        peer_address: Option<&str>,
    ) -> Result<(), Error> {
        let invalid = |message: String| Error::new(ErrorCode::InvalidRequest, message);
        let address = peer_address
            .ok_or_else(|| Error::new(ErrorCode::NotFound, format!("node {} is not here", peer.guid)))?;
        let remote_addr: PeerAddress =
            address.parse().map_err(|error| invalid(format!("`{address}` is no address: {error}")))?;
        let links = self.links.clone().ok_or_else(|| Error::new(ErrorCode::Busy, "the agent is starting"))?;
        let (enabled, parameters) = self.node.link_offer(at).ok_or_else(|| {
            Error::new(ErrorCode::NotFound, format!("no port {}", self.names.cable_end(at)))
        })?;
        let local = self.names.cable_end(at);
        let link = links.add(Cable { local, remote: peer, remote_addr, parameters }).ok_or_else(|| {
            Error::new(ErrorCode::Conflict, format!("a cable to {peer} is in {local} already"))
        })?;
        self.wiring.lead_out(at, link, peer, delay_ns);
        links.set_enabled(link, enabled);
        self.ask(Asker::Agent, Request::Lead { at, delay: Time::from_nanos(delay_ns) });
        Ok(())
    }

    /// Takes a cable out of one of the agent's ports, or out of both.
    pub(crate) fn disconnect_cable(&mut self, end: PortEnd, peer: PortEnd) -> Result<Answer, Error> {
        let at = self.external_port(end)?;
        let Some(cabled) = self.wiring.at(at) else {
            return Err(Error::new(ErrorCode::NotFound, format!("no cable at {end}")));
        };
        if cabled.peer != cable_end(peer) {
            let message = format!("the cable in {end} leads to {}, not to {peer}", cabled.peer);
            return Err(Error::new(ErrorCode::Conflict, message));
        }
        let far = match cabled.link {
            Some(_) => None,
            None => Some(self.external_port(peer)?),
        };
        let ends: Vec<(PortId, PortEnd, PortEnd)> =
            std::iter::once((at, end, peer)).chain(far.map(|far| (far, peer, end))).collect();
        for (_, own, _) in &ends {
            self.end_faults_of_cable(*own);
        }
        if let Some(link) = cabled.link
            && self.wiring.is_up(link)
        {
            self.link_went_down(at, &TAKEN_OUT);
        }
        self.ask(Asker::Agent, Request::Disconnect(at));
        for (at, _, other) in ends {
            self.wiring.unplug(at);
            if let Some((guid, node)) = self.told_name(at) {
                let (port, peer) = (at.port, other);
                self.recorder.tell(AgentEvent::CableDisconnected { guid, node, port, peer });
            }
        }
        if let (Some(links), Some(link)) = (&self.links, cabled.link) {
            links.remove(link);
        }
        self.signals.links.notify_one();
        Ok(Answer::Done)
    }

    /// A port into which a cable can be put.
    fn external_port(&self, end: PortEnd) -> Result<PortId, Error> {
        let at = self.port_of(end)?;
        let is_there = end.port != PortNum::ZERO && self.node.link_offer(at).is_some();
        is_there.then_some(at).ok_or_else(|| {
            Error::new(ErrorCode::NotFound, format!("node {} has no port {} for a cable", end.node, end.port))
        })
    }

    fn told_name(&self, at: PortId) -> Option<(HexGuid, String)> {
        Some(self.names.of(at.device)?.who.named())
    }
}

fn cable_end(end: PortEnd) -> CableEnd {
    CableEnd { guid: end.node.0, port: end.port }
}
