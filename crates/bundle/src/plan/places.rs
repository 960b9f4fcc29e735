//! Addresses of agents: on this machine, or on hosts that the user names.

use std::collections::BTreeMap;

use anyhow::Context;
use weft_link::PeerAddress;

use crate::failure::Failure;
use crate::folder::Base;
use crate::place::block::Block;
use crate::place::bunches;
use crate::place::groups::Groups;
use crate::place::hosts::{AgentPlace, Hosts};
use crate::plan::wanted::Wanted;
use crate::ports::{self, Claim, Search, Transport};
use crate::record::{LabRecord, MANAGER_PORTS};

/// The first UDP port of each host where nothing is said.
const FIRST_PORT: u16 = 20_000;

/// Where all of a laboratory's processes listen. The ports of this machine stay claimed until this is dropped.
#[derive(Debug)]
pub struct Places {
    /// Where each agent listens.
    pub agents: Vec<AgentPlace>,
    /// The UDP ports of this machine; none where agents run on hosts that the user named.
    pub udp: Option<Block>,
    /// The TCP ports that serve metrics.
    pub metrics: Option<Block>,
    _claims: Vec<Claim>,
}

impl Places {
    /// Chooses them.
    pub fn choose(base: &Base, wanted: &Wanted<'_>, groups: &Groups, search: Search) -> anyhow::Result<Self> {
        let agents = groups.members().len();
        if let Some(hosts) = &wanted.hosted {
            match (wanted.metrics, hosts) {
                (None, _) | (Some(0), Hosts::Listed(_)) => {}
                (Some(pinned), Hosts::Listed(_)) => {
                    let message = format!("--metrics={pinned} names a port of one machine");
                    return Err(Failure::bad_input(message)
                        .hint("use --metrics: each process serves them at the TCP port with the number of its UDP port, see --udp-port"));
                }
                (Some(_), _) => {
                    return Err(Failure::bad_input("managers have no hosts that metrics could be served on")
                        .hint("list the hosts: --hosts a,b,c; or leave out --metrics"));
                }
            }
            let host_of = hosts.shared().map_or(vec![0; agents], |count| bunches::deal(groups, count));
            let agents = hosts.places(&host_of, wanted.udp_port.unwrap_or(FIRST_PORT))?;
            return Ok(Self { agents, udp: None, metrics: None, _claims: Vec::new() });
        }
        let count = u32::try_from(agents).context("more agents than ports")?;
        let udp = ports::claim(base, Transport::Udp, count, search, wanted.udp_port)?;
        let metrics = wanted.metrics.map(|pinned| {
            let standbys = u32::try_from(wanted.standbys.len()).unwrap_or(u32::MAX);
            let more = wanted.vmms.len() + wanted.pms.len().saturating_sub(1);
            let more = u32::try_from(more).unwrap_or(u32::MAX);
            let count = count.saturating_add(MANAGER_PORTS).saturating_add(standbys).saturating_add(more);
            ports::claim(base, Transport::Tcp, count, search, Some(pinned).filter(|port| *port != 0))
        });
        let metrics = metrics.transpose()?;
        let place = |at| udp.block.place(at).map(|bind| AgentPlace { bind, address: bind.into() });
        Ok(Self {
            agents: (0..count).filter_map(place).collect(),
            udp: Some(udp.block),
            metrics: metrics.as_ref().map(|claim| claim.block),
            _claims: std::iter::once(udp).chain(metrics).collect(),
        })
    }

    /// Claims those that a laboratory was planned with.
    pub fn claim_again(base: &Base, record: &LabRecord) -> anyhow::Result<Vec<Claim>> {
        let again = "plan the laboratory again with `weft plan`";
        let blocks = [(Transport::Udp, record.udp_ports), (Transport::Tcp, record.metrics_ports())];
        let blocks = blocks.into_iter().filter_map(|(transport, block)| Some((transport, block?)));
        blocks.map(|(transport, block)| ports::claim_block(base, transport, block, again)).collect()
    }
}

/// Where managers answer on the hosts of a list: beside their agents, at the UDP ports behind those of the host's agents.
pub fn doors(record: &LabRecord) -> anyhow::Result<BTreeMap<String, PeerAddress>> {
    let mut last: BTreeMap<String, u16> = BTreeMap::new();
    for agent in &record.agents {
        let port = last.entry(agent.address.host()).or_default();
        *port = agent.address.port().max(*port);
    }
    let others = [&record.pms, &record.vmms, &record.opensms].into_iter().flatten();
    let others = others.map(|place| (place.name.clone(), &place.agent));
    let managers = record.subnet_managers().map(|(name, place)| (name, &place.agent)).chain(others);
    let door = |(name, agent): (String, &String)| {
        let agent = record.agents.iter().find(|known| known.name == *agent);
        let host = agent.context("a manager without an agent")?.address.host();
        let port = last.get_mut(&host).context("an agent without a host")?;
        *port = port.checked_add(1).with_context(|| format!("host {host} has no port left for `{name}`"))?;
        Ok((name, PeerAddress::new(&host, *port)?))
    };
    managers.map(door).collect()
}
