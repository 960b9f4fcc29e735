//! Draft of a changed laboratory: its record, its cabling and its agents' configs.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use anyhow::Context;
use weft_agent_config::AgentPart;
use weft_bundle::failure::Failure;
use weft_bundle::folder::{LabFolder, bundle};
use weft_bundle::identity::issue;
use weft_bundle::place::hosts::AgentPlace;
use weft_bundle::record::{AgentRecord, DeviceRecord, LabRecord};
use weft_link::CableEnd;
use weft_topology::{BuildError, Fabric, LinkRate, Node, NodeIndex, PortRef, UPLINK};
use weft_wire::Guid;

use crate::recabling::Turn;
use crate::recabling::change::Change;
use crate::recabling::cords::{Cord, CordEnd};
use crate::recabling::orders::delay_at;

/// A laboratory while its change is being drafted. Nodes keep their places in its cabling.
pub struct Draft {
    folder: LabFolder,
    record: LabRecord,
    fabric: Fabric,
    /// The configurations of the agents concerned. Not known of remote ones.
    parts: BTreeMap<String, AgentPart>,
    taken_out: Vec<Cord>,
    put_in: Vec<Cord>,
    added: Option<String>,
    removed: Option<String>,
    /// Nodes that agents prove to be, where these are remote and their identities out of sight.
    proven: Option<BTreeSet<Guid>>,
}

/// A node that is to be added, with an agent of its own.
pub struct NewNode {
    /// What it is, without cables.
    pub node: Node,
    /// Where its agent listens.
    pub place: AgentPlace,
    /// Where it serves metrics, if it does.
    pub metrics: Option<SocketAddr>,
}

impl Draft {
    /// Nothing has changed yet.
    pub fn new(turn: &Turn, record: LabRecord, fabric: Fabric) -> Self {
        let (parts, taken_out, put_in) = (BTreeMap::new(), Vec::new(), Vec::new());
        let proven = record.agents.iter().flat_map(|agent| &agent.proves).copied();
        let proven = turn.is_written_by_hub().then(|| proven.collect());
        let folder = turn.folder().clone();
        Self { folder, record, fabric, parts, taken_out, put_in, added: None, removed: None, proven }
    }

    /// The cabling as it is so far.
    pub fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// Takes the cable out of a port, and gives the port at its other end and what it was like.
    pub fn take_out(&mut self, port: PortRef) -> anyhow::Result<(PortRef, Cord)> {
        let peer = self.fabric.peer(port).ok_or_else(|| {
            Failure::bad_input(format!("no cable is in {}", self.fabric.port_label(port)))
                .hint("`weft links` lists the cables")
        })?;
        [port, peer].into_iter().try_for_each(|end| self.refuse_inside(end))?;
        let mut cord = Cord::new(self.end(port)?, self.end(peer)?, 0);
        for agent in cord.agents().map(str::to_owned).collect::<Vec<_>>() {
            if let Some(part) = self.part(&agent)? {
                let delay_ns = cord.delay_in(part);
                cord.strike_from(part);
                cord.delay_ns = cord.delay_ns.max(delay_ns);
            }
        }
        if self.proven.is_some() {
            cord.delay_ns = delay_at(&self.folder, &cord.ends[0]).max(delay_at(&self.folder, &cord.ends[1]));
        }
        self.fabric.disconnect(port);
        self.taken_out.push(cord.clone());
        Ok((peer, cord))
    }

    /// Puts a cable between two ports, and gives its rate.
    pub fn put_in(&mut self, a: PortRef, b: PortRef, delay_ns: u64) -> anyhow::Result<LinkRate> {
        [a, b].into_iter().try_for_each(|end| self.refuse_inside(end))?;
        [a, b].into_iter().try_for_each(|end| self.equip(end))?;
        let rate = self.fabric.connect(a, b).map_err(|error| self.refused(error, [a, b]))?;
        let cord = Cord::new(self.end(a)?, self.end(b)?, delay_ns);
        self.refuse_unproven(&cord)?;
        for agent in cord.agents().map(str::to_owned).collect::<Vec<_>>() {
            if let Some(part) = self.part(&agent)? {
                cord.add_to(part);
            }
        }
        self.put_in.push(cord);
        Ok(rate)
    }

    /// Adds a node with an agent of its own, otherwise configured like the agent of another node.
    pub fn add(&mut self, new: NewNode, like: NodeIndex) -> anyhow::Result<NodeIndex> {
        let like = self.agent_of(like)?.name.clone();
        let like = self.part(&like)?.context("the laboratory is remote")?;
        let (hosts, later_hosts) = (like.hosts.clone(), like.later_hosts.clone());
        let link_timeout_ms = like.link_timeout_ms;
        let options = like.devices.first().map(|device| device.options.clone()).unwrap_or_default();
        let (fabric, index) =
            self.fabric.with(new.node).map_err(|error| Failure::bad_input(error.to_string()))?;
        self.fabric = fabric;
        let name = self.record.name_next();
        let device = DeviceRecord::of(&self.fabric, index, false);
        let part = AgentPart {
            name: name.clone(),
            lab: self.record.lab.clone(),
            devices: vec![weft_node::device_config(&self.fabric, index, &options)],
            slots: Vec::new(),
            cables: Vec::new(),
            bind: new.place.bind,
            link_timeout_ms,
            hosts,
            later_hosts,
            metrics: new.metrics,
            http_token: self.record.http_token.clone(),
        };
        let (address, metrics) = (new.place.address, new.metrics);
        let proves = vec![device.guid];
        self.record.agents.push(AgentRecord {
            name: name.clone(),
            address,
            devices: vec![device],
            proves,
            metrics,
        });
        self.parts.insert(name.clone(), part);
        self.added = Some(name);
        Ok(index)
    }

    /// Removes a node and its cables, and ends its agent, which must run no other.
    pub fn remove(&mut self, node: NodeIndex) -> anyhow::Result<()> {
        let label = self.fabric.label(node);
        let agent = self.agent_of(node)?;
        let name = agent.name.clone();
        if let Some(other) = agent.devices.iter().find(|other| other.guid != self.fabric.node(node).guid) {
            let message = format!("`{label}` shares its agent {name} with `{}` and others", other.label);
            return Err(Failure::bad_input(message)
                .hint(format!("take its cables out instead: `weft topo disconnect '{label}:PORT'`")));
        }
        if let Some(manager) = self.record.manager_at(&name) {
            let message = format!("{manager} sits at `{label}`, which cannot be removed");
            return Err(
                Failure::bad_input(message).hint("start the laboratory with the manager at another node")
            );
        }
        for (port, _) in self.fabric.node(node).cabled_ports().collect::<Vec<_>>() {
            // A cable from the node to itself goes with the first of its ends.
            if self.fabric.peer(PortRef::new(node, port)).is_some() {
                self.take_out(PortRef::new(node, port))?;
            }
        }
        self.fabric = self.fabric.without(node)?;
        self.record.forget(&name);
        self.parts.remove(&name);
        self.removed = Some(name);
        Ok(())
    }

    /// The change, and how people call it.
    pub fn finish(mut self, what: String) -> Change {
        for agent in &mut self.record.agents {
            // What is issued names what the one before names, too.
            let now =
                self.parts.get(&agent.name).and_then(|part| issue::proves(part).ok()).unwrap_or_default();
            agent.proves.extend(now);
            agent.proves.sort_unstable();
            agent.proves.dedup();
        }
        let Self { fabric, record, parts, taken_out, put_in, added, removed, .. } = self;
        let (topology, parts) = (fabric.write_ibnetdiscover(), parts.into_values().collect());
        Change { what, taken_out, put_in, added, removed, topology, record, parts }
    }

    fn agent_of(&self, node: NodeIndex) -> anyhow::Result<&AgentRecord> {
        let guid = self.fabric.node(node).guid;
        let (agent, _) = self.record.device(guid).with_context(|| format!("no agent runs node {guid}"))?;
        Ok(agent)
    }

    fn end(&self, port: PortRef) -> anyhow::Result<CordEnd> {
        let agent = self.agent_of(port.node)?;
        let port = CableEnd { guid: self.fabric.node(port.node).guid, port: port.port };
        Ok(CordEnd { port, agent: agent.name.clone(), address: agent.address.clone() })
    }

    /// An agent's configuration; none where the agent is remote.
    fn part(&mut self, agent: &str) -> anyhow::Result<Option<&mut AgentPart>> {
        // The folder of a hub that watches remote processes has none either.
        if self.proven.is_some() || !self.folder.bundle().agents().exists() {
            return Ok(None);
        }
        if !self.parts.contains_key(agent) {
            let part = bundle::load(&self.folder.bundle().agent(agent))?;
            self.parts.insert(agent.to_owned(), part);
        }
        Ok(self.parts.get_mut(agent))
    }

    /// The cabling learns of a port without a cable what its agent knows.
    fn equip(&mut self, at: PortRef) -> anyhow::Result<()> {
        let (agent, guid) = (self.agent_of(at.node)?.name.clone(), self.fabric.node(at.node).guid);
        let Some(part) = self.part(&agent)? else { return Ok(()) };
        let device = part.devices.iter().find(|device| device.guid == guid);
        let port = device.and_then(|device| device.ports.get(usize::from(at.port.0).checked_sub(1)?));
        if let Some(port) = port.copied() {
            self.fabric.equip(at, port.guid, port.link.into());
        }
        Ok(())
    }

    /// No identity is issued for a remote agent.
    fn refuse_unproven(&self, cord: &Cord) -> anyhow::Result<()> {
        let Some(proven) = self.proven.as_ref().filter(|_| cord.agents().count() > 1) else { return Ok(()) };
        let unproven = |end: &&CordEnd| !proven.contains(&end.port.guid);
        let Some(end) = cord.ends.iter().find(unproven) else { return Ok(()) };
        let message = format!(
            "agent {} would need an identity that names {}, which none of its cables to other agents has shown",
            end.agent, end.port.guid
        );
        Err(Failure::new(message).hint("recable it where the laboratory's processes are started"))
    }

    /// Cables inside of virtualised adapters stay as they are.
    fn refuse_inside(&self, end: PortRef) -> anyhow::Result<()> {
        if self.record.vfs.is_none() {
            return Ok(());
        }
        let fabric = &self.fabric;
        let mut vswitches = fabric.hosts().flat_map(|(_, host)| fabric.vswitches_of(host));
        let ends = [Some(end), fabric.peer(end)];
        let inside =
            |vswitch: NodeIndex| ends.iter().flatten().any(|end| end.node == vswitch && end.port != UPLINK);
        let Some(vswitch) = vswitches.find(|vswitch| inside(*vswitch)) else { return Ok(()) };
        let uplink = fabric.port_label(PortRef::new(vswitch, UPLINK));
        let message = format!("{} is inside of a virtualised adapter", fabric.port_label(end));
        Err(Failure::bad_input(message).hint(format!("name the adapter's port to the fabric, `{uplink}`")))
    }

    fn refused(&self, error: BuildError, ends: [PortRef; 2]) -> anyhow::Error {
        let label = |end| self.fabric.port_label(end);
        match error {
            BuildError::PortTaken { .. } => {
                let taken = ends.into_iter().find_map(|end| Some((end, self.fabric.peer(end)?)));
                let (end, peer) = taken.unwrap_or((ends[0], ends[1]));
                Failure::bad_input(format!("a cable to {} is in {} already", label(peer), label(end)))
                    .hint(format!("take it out with `weft topo disconnect '{}'`", label(end)))
            }
            BuildError::SelfLoop { .. } => {
                Failure::bad_input(format!("{} cannot be cabled to itself", label(ends[0])))
                    .hint("name two ports")
            }
            BuildError::NoCommonRate { .. } => {
                let [a, b] = ends.map(label);
                Failure::bad_input(format!("{a} and {b} have no width and speed in common")).into()
            }
            other => Failure::bad_input(other.to_string()).into(),
        }
    }
}
