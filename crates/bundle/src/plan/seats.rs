//! Places of programs in a laboratory: a node, or one of its ports, by the names that people give them.

use std::path::Path;

use weft_topology::{Fabric, FindError, NodeIndex, PortRef};
use weft_wire::PortNum;

use crate::failure::Failure;

/// The node of that id, GUID or description.
pub fn find(fabric: &Fabric, name: &str) -> anyhow::Result<NodeIndex> {
    fabric.find(name).map_err(|error| {
        Failure::bad_input(error.to_string())
            .hint("nodes are named by description, GUID (0x…) or id, as `weft ps` lists them")
    })
}

/// A node by its name, and its port where one is named: `NODE` or `NODE:PORT`. A node's name may itself contain colons.
pub fn find_with_port(fabric: &Fabric, text: &str) -> anyhow::Result<(NodeIndex, Option<PortNum>)> {
    if let Err(FindError::NotFound(_)) = fabric.find(text)
        && let Some((name, port)) = text.rsplit_once(':')
        && let Ok(port) = port.parse().map(PortNum)
    {
        return Ok((find(fabric, name)?, Some(port)));
    }
    Ok((find(fabric, text)?, None))
}

/// The port of that name that a program can attach to, which `option` asks for: the first one with a cable where none is named.
pub fn named(
    fabric: &Fabric,
    node: NodeIndex,
    port: Option<PortNum>,
    option: &str,
) -> anyhow::Result<PortRef> {
    let (known, label) = (fabric.node(node), fabric.label(node));
    let Some(port) = port else {
        let port = known.attach_port().ok_or_else(|| {
            Failure::bad_input(format!("`{label}` has no cable"))
                .hint(format!("choose another node with {option}"))
        })?;
        return Ok(PortRef::new(node, port));
    };
    let seat = PortRef::new(node, port);
    if known.is_switch() && port != PortNum::ZERO {
        let message = format!("{option}: programs at the switch `{label}` sit at its port 0, not {port}");
        return Err(Failure::bad_input(message).hint(format!("use {option} {label}")));
    }
    if !known.is_switch() && fabric.peer(seat).is_none() {
        let cabled: Vec<String> = known.cabled_ports().map(|(port, _)| port.to_string()).collect();
        let message = format!("{option}: no cable is in `{label}` port {port}");
        let hint = match cabled.is_empty() {
            true => format!("choose another node with {option}"),
            false => format!("its ports with a cable: {}", cabled.join(", ")),
        };
        return Err(Failure::bad_input(message).hint(hint));
    }
    Ok(seat)
}

/// The default place of the subnet manager.
pub fn usual(fabric: &Fabric, file: &Path) -> anyhow::Result<PortRef> {
    let place = fabric.attach_place().ok_or_else(|| {
        Failure::bad_input(format!("{}: no node has a cable", file.display()))
            .hint("add the cables to the file; `weft topo show FILE` lists its nodes")
    })?;
    Ok(place)
}

/// Where subnet managers sit, each in a piece of its own: `--sm-at`, or the usual place.
pub fn of_managers(fabric: &Fabric, file: &Path, named: &[String]) -> anyhow::Result<Vec<PortRef>> {
    let seats = of_several(fabric, file, named)?;
    let hint = "name one port in each piece; --standby 1 adds a manager that stands by";
    are_apart(fabric, &seats, "--sm-at", hint)?;
    Ok(seats)
}

/// Fails where two of the ports that an option names are in the same piece of the fabric.
pub fn are_apart(fabric: &Fabric, seats: &[PortRef], option: &str, hint: &str) -> anyhow::Result<()> {
    let pieces = fabric.pieces();
    for (at, seat) in seats.iter().enumerate() {
        let same = |other: &&PortRef| pieces.of_seat(**other) == pieces.of_seat(*seat);
        if let Some(other) = seats[..at].iter().find(same) {
            let (first, second) = (fabric.port_label(*other), fabric.port_label(*seat));
            let message = format!("{option}: {first} and {second} are in the same piece of the fabric");
            return Err(Failure::bad_input(message).hint(hint));
        }
    }
    Ok(())
}

/// Where subnet managers sit, in whatever pieces: `--sm-at`, or the usual place.
pub fn of_several(fabric: &Fabric, file: &Path, named: &[String]) -> anyhow::Result<Vec<PortRef>> {
    if named.is_empty() {
        return Ok(vec![usual(fabric, file)?]);
    }
    let mut seats: Vec<PortRef> = Vec::new();
    for name in named {
        let (node, port) = find_with_port(fabric, name)?;
        let seat = self::named(fabric, node, port, "--sm-at")?;
        if seats.contains(&seat) {
            let message = format!("--sm-at names {} twice", fabric.port_label(seat));
            return Err(Failure::bad_input(message).hint("name each port once"));
        }
        seats.push(seat);
    }
    Ok(seats)
}
