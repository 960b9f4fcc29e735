//! The cabling of an experiment: from a file or from a formula.

use weft_topology::generate::{GenerateError, GenerateOptions, mesh, pgft, ring, torus};
use weft_topology::{BuildError, Fabric, FabricBuilder, LinkRate, Loader, PortRef, parse_with};

use crate::file::{At, Choice, Role, Wrong};
use crate::{FabricSpec, Shape};

pub(super) fn fabric(name: &str, choice: &Choice, load: &mut Loader<'_>) -> Result<Fabric, Wrong> {
    let fabric = match &choice.experiment.fabric {
        FabricSpec::File(file) => read(name, file, choice, load)?,
        FabricSpec::Generated { shape, radix, hosts, rate, host_rate, first_host } => {
            let rate = rate.parse().unwrap_or_default();
            let options = GenerateOptions { radix: *radix, tree_hosts: *hosts, rate };
            let refused = |error: &dyn std::fmt::Display| {
                Wrong::new(At::default(), format!("[fabric] cannot be generated: {error}"))
            };
            let fabric = generated(shape, &options).map_err(|error| refused(&error))?;
            let host_rate = host_rate.as_ref().and_then(|rate| rate.parse().ok());
            if host_rate.is_none() && *first_host == 0 {
                fabric
            } else {
                changed(&fabric, host_rate, *first_host).map_err(|error| refused(&error))?
            }
        }
    };
    if fabric.hosts().next().is_none() {
        return Err(Wrong::new(At::default(), "[fabric] has no hosts"));
    }
    Ok(managed(fabric, choice))
}

/// The piece of the subnet manager, where there are several: nothing reaches the others, and hosts use their ports in this one.
fn managed(fabric: Fabric, choice: &Choice) -> Fabric {
    let pieces = fabric.pieces();
    if pieces.iter().filter(|piece| pieces.nodes(*piece) > 1).count() < 2 {
        return fabric;
    }
    let named = choice.experiment.attach.sm.as_ref().and_then(|name| fabric.find(name).ok());
    let seat = named.and_then(|node| Some(PortRef::new(node, fabric.node(node).attach_port()?)));
    let piece = seat.or_else(|| fabric.attach_place()).and_then(|seat| pieces.of_seat(seat));
    fabric.piece(&pieces, piece.unwrap_or_default())
}

fn read(name: &str, file: &str, choice: &Choice, load: &mut Loader<'_>) -> Result<Fabric, Wrong> {
    let wrong = |message: String| choice.wrong(Role::Topology, file, message);
    let text = load(file, name)
        .map_err(|error| wrong(format!("the topology file `{file}` cannot be read: {error}")))?;
    let fabric = parse_with(file, &text, load);
    fabric.map_err(|error| wrong(format!("the topology file is wrong: {error}")))
}

fn generated(shape: &Shape, options: &GenerateOptions) -> Result<Fabric, GenerateError> {
    match shape {
        Shape::Xgft { children, parents, parallel } => {
            let single = vec![1; children.len()];
            pgft(children, parents, if parallel.is_empty() { &single } else { parallel }, options)
        }
        Shape::Ring { switches, hosts } => ring(*switches, *hosts, options),
        Shape::Mesh { sides, hosts } => mesh(sides, *hosts, options),
        Shape::Torus { sides, hosts } => torus(sides, *hosts, options),
    }
}

/// The same fabric with hosts whose ports can do no more than a rate, and with hosts numbered from another number on.
fn changed(fabric: &Fabric, rate: Option<LinkRate>, first_host: u32) -> Result<Fabric, BuildError> {
    let mut builder = FabricBuilder::new();
    let mut number = first_host;
    for node in fabric.nodes() {
        let mut node = node.clone();
        if !node.is_switch() {
            node.description = format!("host-{number}");
            number += 1;
            if let Some(rate) = rate {
                node.ports.iter_mut().for_each(|port| (port.link, port.enabled) = (rate, rate.enabled()));
            }
        }
        builder.add_node(node)?;
    }
    for cable in fabric.cables() {
        builder.connect(cable.a, cable.b)?;
    }
    Ok(builder.build())
}
