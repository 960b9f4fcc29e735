//! Nodes of a laboratory that runs come and go.

use std::net::SocketAddr;

use anyhow::Context;
use weft_bundle::failure::Failure;
use weft_bundle::folder::LabFolder;
use weft_bundle::place::hosts::AgentPlace;
use weft_bundle::ports::{self, Claim, Search, Transport};
use weft_fault::Process;
use weft_lab::recabling::{Change, Draft, NewNode};
use weft_lab::view::{Lab, VM_PREFIX};
use weft_topology::{Fabric, FindError, LinkRate, Node, NodeIndex, NodeType, PortRef};
use weft_wire::{Guid, PortNum, is_unprintable};

use super::recable::{Added, Bench};
use crate::cli::recable::{AddHostArgs, AddSwitchArgs, ChangeArgs, RemoveArgs};

/// Bytes of a NodeDescription (IBA 14.2.5.2).
const DESCRIPTION_BYTES: usize = 64;
/// GUIDs of nodes that are added are given locally (the second bit of an EUI-64's first byte); 32 bits in them come by chance. A
/// host's port n has the node's plus n.
const GUIDS_FROM: u64 = 0x0257_4e00_0000_0000;

/// Adds a node `name` that `draft` drafts.
pub(super) fn node(
    folder: &LabFolder,
    name: &str,
    args: &ChangeArgs,
    draft: impl FnOnce(&mut Bench, &Newcomer) -> anyhow::Result<Change>,
) -> anyhow::Result<()> {
    let bench = begin(folder, name)?;
    // Its agent has its ports when the change is done.
    let newcomer = Newcomer::place(&bench.lab)?;
    bench.change(args, |bench| draft(bench, &newcomer))
}

/// Drafts a host that is added.
pub(super) fn draft_host(
    bench: &mut Bench,
    args: &AddHostArgs,
    newcomer: &Newcomer,
) -> anyhow::Result<Change> {
    let at = bench.lab.port(&args.at)?;
    let rate = rate_of(&bench.lab.fabric, at);
    let node = described(Node::new(NodeType::Hca, newcomer.guid, 1, rate), &args.name);
    let mut draft = bench.draft();
    let index = newcomer.add_to(&mut draft, bench, node, at.node)?;
    cable(&mut draft, bench, [PortRef::new(index, PortNum(1)), at])?;
    Ok(draft.finish(format!("weft topo add-host {}", args.name)))
}

/// Drafts a switch that is added.
pub(super) fn draft_switch(
    bench: &mut Bench,
    args: &AddSwitchArgs,
    newcomer: &Newcomer,
) -> anyhow::Result<Change> {
    let peers = args.connect.iter().map(|(port, peer)| Ok((*port, bench.lab.port(peer)?)));
    let peers: Vec<(u8, PortRef)> = peers.collect::<anyhow::Result<_>>()?;
    if let Some((port, _)) = peers.iter().find(|(port, _)| !(1..=args.ports).contains(port)) {
        let message = format!("`{}` is to have ports 1 to {}, not {port}", args.name, args.ports);
        return Err(Failure::bad_input(message).hint("give more --ports"));
    }
    let best = peers.iter().map(|(_, peer)| rate_of(&bench.lab.fabric, *peer)).max();
    let rate = best.or_else(|| bench.lab.fabric.cables().map(|cable| cable.rate).max()).unwrap_or_default();
    let node = described(Node::new(NodeType::Switch, newcomer.guid, args.ports, rate), &args.name);
    let like = bench.lab.fabric.switches().map(|(index, _)| index).next();
    let like = peers.first().map(|(_, peer)| peer.node).or(like).unwrap_or_default();
    let mut draft = bench.draft();
    let index = newcomer.add_to(&mut draft, bench, node, like)?;
    for (port, peer) in peers {
        cable(&mut draft, bench, [PortRef::new(index, PortNum(port)), peer])?;
    }
    Ok(draft.finish(format!("weft topo add-switch {}", args.name)))
}

/// Drafts a node that is removed.
pub(super) fn draft_removal(bench: &mut Bench, args: &RemoveArgs) -> anyhow::Result<Change> {
    let node = bench.lab.find(&args.node)?;
    let fabric = bench.lab.fabric.clone();
    for (port, peer) in fabric.node(node).cabled_ports() {
        bench.told.taken_out(&fabric, [PortRef::new(node, port), peer]);
    }
    bench.told.removed = Some(fabric.label(node));
    let mut draft = bench.draft();
    draft.remove(node)?;
    Ok(draft.finish(format!("weft topo remove {}", args.node)))
}

/// What a node that comes is given, and the ports of this machine that are claimed for its agent until that has them.
pub(super) struct Newcomer {
    guid: Guid,
    place: AgentPlace,
    metrics: Option<SocketAddr>,
    _claims: Vec<Claim>,
}

impl Newcomer {
    /// One whose agent is never started.
    #[cfg(test)]
    pub(super) fn of(guid: Guid, place: AgentPlace) -> Self {
        Self { guid, place, metrics: None, _claims: Vec::new() }
    }

    /// Finds a place for its agent.
    fn place(lab: &Lab) -> anyhow::Result<Self> {
        let record = &lab.record;
        let base = crate::front::base();
        let claim = |transport| {
            let (own, came) = ports::of_record(record, transport);
            let Some(own) = own else { return Ok(None) };
            let behind = ports::claim_behind(transport, own, &came)?;
            behind.map_or_else(|| ports::claim(&base, transport, 1, Search::NOW, None), Ok).map(Some)
        };
        let Some(udp) = claim(Transport::Udp)? else {
            return Err(Failure::new("the agents of this laboratory run on hosts that were named")
                .hint("nodes can be added where all agents run on this machine"));
        };
        let bind = udp.block.place(0).context("a port was claimed")?;
        let tcp = claim(Transport::Tcp)?;
        let metrics = tcp.as_ref().and_then(|tcp| tcp.block.place(0));
        let place = AgentPlace { bind, address: bind.into() };
        let guid = fresh_guid(&lab.fabric, rand::random);
        Ok(Self { guid, place, metrics, _claims: std::iter::once(udp).chain(tcp).collect() })
    }

    fn add_to(
        &self,
        draft: &mut Draft,
        bench: &mut Bench,
        node: Node,
        like: NodeIndex,
    ) -> anyhow::Result<NodeIndex> {
        let told = Added { node: node.description.clone(), guid: node.guid, agent: String::new() };
        let new = NewNode { node, place: self.place.clone(), metrics: self.metrics };
        let index = draft.add(new, like)?;
        bench.told.added = Some(told);
        Ok(index)
    }
}

/// Waits for the turn, for a node of this name.
pub(super) fn begin(folder: &LabFolder, name: &str) -> anyhow::Result<Bench> {
    check(name)?;
    let bench = Bench::begin(folder)?;
    match bench.lab.fabric.find(name) {
        Err(FindError::NotFound(_)) => Ok(bench),
        _ => Err(Failure::bad_input(format!("`{name}` names a node already")).hint("choose another name")),
    }
}

/// Whether a name can be a description that verbs find a node by.
fn check(name: &str) -> anyhow::Result<()> {
    let is_process = !matches!(name.parse::<Process<String>>(), Ok(Process::Agent(_)));
    let problem = if name.is_empty() || name.len() > DESCRIPTION_BYTES {
        "a description has 1 to 64 bytes"
    } else if name.contains(|c: char| is_unprintable(c) || "\\\"#".contains(c)) || name.trim() != name {
        "a description that can be written down has no control characters, quotes, `#` or spaces around it"
    } else if is_process || name.starts_with(VM_PREFIX) || name.starts_with('-') {
        "verbs would take it for something else"
    } else {
        return Ok(());
    };
    Err(Failure::bad_input(format!("`{name}` cannot name a node: {problem}")).hint("choose another name"))
}

fn described(node: Node, name: &str) -> Node {
    Node { description: name.to_owned(), ..node }
}

/// What a free port can do at best.
fn rate_of(fabric: &Fabric, at: PortRef) -> LinkRate {
    fabric.port(at).and_then(|port| port.enabled.best()).unwrap_or_default()
}

/// GUIDs that no node and no port has; 32 bits of them are drawn.
pub(super) fn fresh_guid(fabric: &Fabric, mut draw: impl FnMut() -> u32) -> Guid {
    let taken = |guid: Guid| {
        let has = |node: &Node| node.guid == guid || node.ports.iter().any(|port| port.guid == guid);
        fabric.nodes().iter().any(has)
    };
    loop {
        let guid = Guid(GUIDS_FROM | u64::from(draw()) << 8);
        if (0..=1).all(|port| !taken(Guid(guid.0 + port))) {
            return guid;
        }
    }
}

fn cable(draft: &mut Draft, bench: &mut Bench, ends: [PortRef; 2]) -> anyhow::Result<()> {
    let rate = draft.put_in(ends[0], ends[1], 0)?;
    bench.told.put_in(draft.fabric(), ends, rate);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn a_name_leads_to_its_node_and_to_nothing_else() {
        for good in ["new1", "rack 3 leaf:2", "H-1", "größe"] {
            assert!(check(good).is_ok(), "{good}");
        }
        let long = "x".repeat(65);
        for bad in [
            "", "sm", "sm-2", "hub", "pm", "vmm", "ibsim", "vm:web1", "-x", "a\nb", "a\"b", " a", "a\\b",
            &long,
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
