//! From a draft to a fabric: names are looked up, and the two ends of every cable compared.

use std::collections::BTreeMap;

use weft_wire::{Guid, Lid, PortNum};

use super::draft::{Draft, NodeDraft, PortDraft, RemoteDraft, Spot};
use super::error::{ParseError, Problem};
use super::settings::UNSAID;
use crate::{BuildError, Fabric, FabricBuilder, LinkMasks, NodeIndex, PortRef};

/// A port: the node's place in the draft, and its number. (Place and number order cables by the file.)
type End = (usize, u8);

/// A cable, first the end whose line came first.
struct Link<'a> {
    here: End,
    there: End,
    remote: &'a RemoteDraft,
}

pub(super) fn resolve(mut draft: Draft) -> Result<Fabric, ParseError> {
    let links = links(&draft)?;
    let ends: Vec<(End, End)> = links.iter().map(|link| (link.here, link.there)).collect();
    let remotes = remote_facts(&draft, &links)?;
    check_port_guids(&draft, &remotes)?;
    set_ports(&mut draft, &remotes, &ends);
    build(draft, &ends)
}

/// Every cable once. Both ends of a cable may have a line for it, and then they agree; one line is enough.
fn links(draft: &Draft) -> Result<Vec<Link<'_>>, ParseError> {
    let mut links = Vec::new();
    // Which line cables a port: its own, or that of the other end where it has none.
    let mut cabled: BTreeMap<End, (End, &Spot)> = BTreeMap::new();
    for (index, node) in draft.nodes.iter().enumerate() {
        for (number, port) in &node.ports {
            let Some(remote) = &port.remote else { continue };
            let here = (index, *number);
            let there = target(draft, remote)?;
            if here == there {
                let problem = Problem::SelfCabled { node: node.node.id.clone(), port: *number };
                return Err(remote.spot.error(problem));
            }
            if let Some((wanted, spot)) = cabled.get(&here)
                && *wanted != there
            {
                return Err(disagreement(draft, (here, there, &remote.spot), (*wanted, here, spot)));
            }
            let own_line = port_draft(draft, there).and_then(|port| port.remote.as_ref());
            if let Some(other) = own_line {
                let back = target(draft, other)?;
                if back != here {
                    return Err(disagreement(draft, (here, there, &remote.spot), (there, back, &other.spot)));
                }
            }
            if cabled.contains_key(&here) {
                continue;
            }
            if let Some((first, spot)) = cabled.get(&there) {
                return Err(disagreement(draft, (here, there, &remote.spot), (*first, there, spot)));
            }
            cabled.insert(here, (there, &remote.spot));
            cabled.insert(there, (here, &remote.spot));
            links.push(Link { here, there, remote });
        }
    }
    Ok(links)
}

fn port_draft(draft: &Draft, (node, port): End) -> Option<&PortDraft> {
    draft.nodes.get(node)?.ports.get(&port)
}

/// The port that a line means.
fn target(draft: &Draft, remote: &RemoteDraft) -> Result<End, ParseError> {
    if remote.name.contains('@') {
        let name = match remote.name.starts_with('@') {
            true => format!("{}{}", remote.module, remote.name),
            false => remote.name.clone(),
        };
        let alias = draft.aliases.get(&name);
        let missing = || remote.spot.error(Problem::MissingAlias(remote.name.clone()));
        return alias.map(|(node, port, _)| (*node, *port)).ok_or_else(missing);
    }
    let in_module = match remote.module.is_empty() || remote.name.contains('#') {
        true => None,
        false => draft.ids.get(&format!("{}#{}", remote.module, remote.name)),
    };
    let Some(node) = in_module.or_else(|| draft.ids.get(&remote.name)).copied() else {
        let error = remote.spot.error(Problem::MissingNode(remote.name.clone()));
        return Err(ParseError { hint: Some("the file may be truncated".to_owned()), ..error });
    };
    let (port, spot) = match &remote.port {
        Some((port, spot)) => (*port, spot),
        None => (1, &remote.spot),
    };
    let (id, count) = (&draft.nodes[node].node.id, draft.nodes[node].node.port_count());
    match u8::try_from(port).ok().filter(|port| (1..=count).contains(port)) {
        Some(port) => Ok((node, port)),
        None => Err(spot.error(Problem::PortOutOfRange { port, node: id.clone(), count })),
    }
}

/// What a line says: this port leads to that one.
type Claim<'a> = (End, End, &'a Spot);

fn disagreement(draft: &Draft, here: Claim<'_>, there: Claim<'_>) -> ParseError {
    let name = |(node, port): End| format!("`{}`[{port}]", draft.nodes[node].node.id);
    let says = |claim: Claim<'_>| format!("{} leads to {}", name(claim.0), name(claim.1));
    let other = there.2.place.clone();
    here.2.error(Problem::Disagreement { here: says(here), there: says(there), other })
}

/// What the line of a port's peer says of the port.
#[derive(Clone, Default)]
struct RemoteFacts {
    guid: Option<(Guid, Spot)>,
    lid: Option<Lid>,
}

/// What lines say of the ports at their other ends, checked against what those ports say themselves.
fn remote_facts(draft: &Draft, links: &[Link<'_>]) -> Result<BTreeMap<End, RemoteFacts>, ParseError> {
    let mut facts: BTreeMap<End, RemoteFacts> = BTreeMap::new();
    for link in links {
        let back = port_draft(draft, link.there).and_then(|port| port.remote.as_ref());
        for (of, remote) in [(link.there, Some(link.remote)), (link.here, back)] {
            let Some(remote) = remote else { continue };
            if draft.nodes[of.0].node.is_switch() {
                continue;
            }
            let own = port_draft(draft, of).and_then(|port| Some((port.guid?, &port.spot)));
            if let (Some((own, at)), Some((said, spot))) = (own, &remote.guid)
                && own != *said
            {
                let (here, there) = (format!("its GUID is {said}"), format!("{own}"));
                let other = at.place.clone();
                return Err(spot.error(Problem::Disagreement { here, there, other }));
            }
            facts.insert(of, RemoteFacts { guid: remote.guid.clone(), lid: remote.lid.lid });
        }
    }
    Ok(facts)
}

/// No GUID that the file gives to a port is given to another.
fn check_port_guids(draft: &Draft, facts: &BTreeMap<End, RemoteFacts>) -> Result<(), ParseError> {
    let mut owners: BTreeMap<Guid, (End, &Spot)> = BTreeMap::new();
    for (index, node) in draft.nodes.iter().enumerate() {
        if node.node.is_switch() {
            continue;
        }
        for number in 1..=node.node.port_count() {
            let end = (index, number);
            let own = port_draft(draft, end).and_then(|port| Some((port.guid?, &port.spot)));
            let said = facts.get(&end).and_then(|facts| facts.guid.as_ref());
            let Some((guid, spot)) = own.or_else(|| said.map(|(guid, spot)| (*guid, spot))) else { continue };
            if let Some((first, at)) = owners.insert(guid, (end, spot)) {
                let owner = format!("port {} of `{}`", first.1, draft.nodes[first.0].node.id);
                return Err(spot.error(Problem::DuplicateGuid { guid, owner, other: at.place.clone() }));
            }
        }
    }
    Ok(())
}

/// Writes into the nodes what the port lines say.
fn set_ports(draft: &mut Draft, facts: &BTreeMap<End, RemoteFacts>, links: &[(End, End)]) {
    for (index, node) in draft.nodes.iter_mut().enumerate() {
        let NodeDraft { node, ports, masks, .. } = node;
        for number in 1..=node.port_count() {
            let (said, own) = (facts.get(&(index, number)), ports.get(&number));
            let is_switch = node.is_switch();
            let port = &mut node.ports[usize::from(number)];
            port.enabled = own.and_then(|own| own.masks).or(*masks).unwrap_or(UNSAID);
            if is_switch {
                continue;
            }
            let said_guid = said.and_then(|said| said.guid.as_ref()).map(|(guid, _)| *guid);
            port.guid = own.and_then(|own| own.guid).or(said_guid).unwrap_or(port.guid);
            if port.lid == Lid(0) {
                port.lid = said.and_then(|said| said.lid).unwrap_or_default();
            }
        }
    }
    // An end of which nothing is said is whatever the other end says that the cable is.
    for (here, there) in links {
        for (of, like) in [(*here, *there), (*there, *here)] {
            if said_masks(draft, of).is_none() {
                let masks = said_masks(draft, like).unwrap_or(UNSAID);
                draft.nodes[of.0].node.ports[usize::from(of.1)].enabled = masks;
            }
        }
    }
}

/// What the file says of a port's width and speed, on its own line or before its node.
fn said_masks(draft: &Draft, end: End) -> Option<LinkMasks> {
    port_draft(draft, end).and_then(|port| port.masks).or(draft.nodes[end.0].masks)
}

fn build(draft: Draft, links: &[(End, End)]) -> Result<Fabric, ParseError> {
    let mut builder = FabricBuilder::new();
    let mut lines = Vec::with_capacity(draft.nodes.len());
    for NodeDraft { node, spot, ports, .. } in draft.nodes {
        builder.add_node(node).map_err(|error| spot.error(Problem::Build(error)))?;
        lines.push((ports, spot));
    }
    for (here, there) in links {
        let end = |end: &End| PortRef::new(NodeIndex(end.0 as u32), PortNum(end.1));
        builder.connect(end(here), end(there)).map_err(|error| {
            let (ports, node_spot) = &lines[here.0];
            let remote = ports.get(&here.1).and_then(|port| port.remote.as_ref());
            let spot = remote.map_or(node_spot, |remote| &remote.spot);
            spot.error(match error {
                BuildError::NoCommonRate { .. } => Problem::NoCommonRate,
                error => Problem::Build(error),
            })
        })?;
    }
    Ok(builder.build())
}
