//! An agent that begins again where its files can only be read has the cabling of its bundle. The hub tells it what is written down.

use std::collections::BTreeSet;

use weft_bundle::folder::LabFolder;
use weft_bundle::record::{AgentRecord, LabRecord};
use weft_control::Request;
use weft_control::agent::PortEnd;
use weft_process::ClientError;

use crate::recabling::orders::{ask, is_out};

/// A port in which an agent has something else than is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lapse {
    pub(crate) at: PortEnd,
    /// The other end of the cable that it has now.
    pub(crate) has: Option<PortEnd>,
    /// That of the cable that is written down, and the cable's delay.
    pub(crate) had: Option<(PortEnd, u64)>,
}

/// Tells agents what they have forgotten. One that does not take it is named in the log. Gives back who has not answered.
pub(crate) fn remind(lab: &LabFolder, record: &LabRecord, lapses: &[Lapse]) -> BTreeSet<String> {
    let mut late = BTreeSet::new();
    for (agent, request) in orders(record, lapses) {
        let (name, what) = (agent.name.as_str(), request.name());
        match ask(lab, name, &request) {
            Ok(()) => tracing::info!(agent = name, what, "an agent that began again is told what it had"),
            Err(error) if is_out(&request, &error) => {}
            // It is met again when it is back.
            Err(ClientError::Connect { .. }) => {}
            Err(ClientError::TimedOut(_)) => drop(late.insert(agent.name.clone())),
            Err(error) => tracing::warn!(
                agent = name,
                what,
                %error,
                "an agent that began again does not take the cabling that it had; `weft topo diff` tells what differs"
            ),
        }
    }
    late
}

/// First all that is taken out, so that ports are free.
fn orders<'a>(record: &'a LabRecord, lapses: &[Lapse]) -> Vec<(&'a AgentRecord, Request)> {
    let agent = |end: PortEnd| record.device(end.node.0).map(|(agent, _)| agent);
    let out = lapses.iter().filter_map(|lapse| {
        let request = Request::DisconnectCable { end: lapse.at, peer: lapse.has? };
        Some((agent(lapse.at)?, request))
    });
    let back = lapses.iter().filter_map(|lapse| {
        let (end, (peer, delay_ns)) = (lapse.at, lapse.had?);
        let (own, far) = (agent(end)?, agent(peer)?);
        let is_inside = own.name == far.name;
        // Both ends of a cable inside of an agent are put in at once.
        let is_second = is_inside && peer < end && lapses.iter().any(|lapse| lapse.at == peer);
        let peer_address = (!is_inside).then(|| far.address.to_string());
        let request = Request::ConnectCable { end, peer, peer_address, delay_ns };
        (!is_second).then_some((own, request))
    });
    out.chain(back).collect()
}
