//! Random fabrics of all kinds, with what makes real ones irregular.

use rand::RngExt;
use rand_pcg::Pcg64;
use weft_topology::generate::{GenerateError, GenerateOptions, RandomFabric, random, ring, torus, xgft};
use weft_topology::{Fabric, FabricBuilder, LinkRate, LinkSpeed, LinkWidth, Node, NodeIndex, Port, PortRef};
use weft_wire::{Guid, PortNum};

/// How many ports every switch has: more than any of these fabrics uses.
const RADIX: u8 = 48;

/// A fabric of up to 40 devices: half of them irregular, the others trees, tori and rings; to half of all some
/// oddities are added.
pub(super) fn random_fabric(source: &mut Pcg64, seed: u64) -> Result<Fabric, GenerateError> {
    let options = GenerateOptions { radix: Some(RADIX), ..GenerateOptions::default() };
    let fabric = match source.random_range(0..6u32) {
        0 => {
            let (down, leaves) = (source.random_range(1..5), source.random_range(2..6));
            xgft(&[down, leaves], &[1, source.random_range(1..4)], &options)?
        }
        1 => {
            let sides = [source.random_range(2..4), source.random_range(2..4)];
            torus(&sides, source.random_range(1..4), &options)?
        }
        2 => ring(source.random_range(3..10), source.random_range(1..4), &options)?,
        _ => irregular(source, seed, &options)?,
    };
    Ok(if source.random_bool(0.5) { with_oddities(source, &fabric) } else { fabric })
}

fn irregular(source: &mut Pcg64, seed: u64, options: &GenerateOptions) -> Result<Fabric, GenerateError> {
    let switches = source.random_range(1..13u32);
    let several = switches > 1;
    let parameters = RandomFabric {
        switches,
        hosts: source.random_range(2..=40 - switches),
        extra_cables: if several { source.random_range(0..7) } else { 0 },
        parallel_cables: if several { source.random_range(0..4) } else { 0 },
    };
    random(&parameters, seed, options)
}

/// The same fabric with ports of different rates, HCAs with a second port that leads to a switch or to another
/// HCA, and now and then a switch that is cabled to itself.
fn with_oddities(source: &mut Pcg64, plain: &Fabric) -> Fabric {
    let mut builder = FabricBuilder::new();
    let mut two_ports = Vec::new();
    for (index, node) in plain.iter() {
        let mut node = node.clone();
        if !node.is_switch() && source.random_bool(0.4) {
            add_port(&mut node);
            two_ports.push(index);
        }
        if source.random_bool(0.4) {
            slow_down(source, &mut node);
        }
        builder.add_node(node).expect("its names and GUIDs differ from all others");
    }
    for cable in plain.cables() {
        builder.connect(cable.a, cable.b).expect("all ports allow 1xSDR");
    }
    let switches: Vec<NodeIndex> = plain.switches().map(|(index, _)| index).collect();
    while let Some(host) = two_ports.pop() {
        let here = PortRef::new(host, SECOND);
        let there = match two_ports.last().copied() {
            Some(other) if source.random_bool(0.3) => {
                two_ports.pop();
                Some(PortRef::new(other, SECOND))
            }
            _ => free_port(&builder, any(source, &switches)),
        };
        if let Some(there) = there.filter(|_| source.random_bool(0.9)) {
            builder.connect(here, there).expect("both ports are free");
        }
    }
    if source.random_bool(0.3) {
        let switch = any(source, &switches);
        if let Some(one) = free_port(&builder, switch)
            && let another = PortRef::new(switch, PortNum(one.port.0 + 1))
            && another.port.0 <= RADIX
        {
            builder.connect(one, another).expect("the ports after the last cable are free");
        }
    }
    builder.build()
}

/// The port that HCAs are given besides the one that they have.
const SECOND: PortNum = PortNum(2);

fn add_port(node: &mut Node) {
    let first = node.ports[1];
    node.ports.push(Port { guid: Guid(first.guid.0 + 1), peer: None, ..first });
}

/// All ports of a node become what another kind of node has.
fn slow_down(source: &mut Pcg64, node: &mut Node) {
    let width = if source.random_bool(0.3) { LinkWidth::X1 } else { LinkWidth::X4 };
    let speed = if source.random_bool(0.5) { LinkSpeed::Sdr } else { LinkSpeed::Ddr };
    let rate = LinkRate::new(width, speed);
    for port in &mut node.ports {
        (port.link, port.enabled) = (rate, rate.enabled());
    }
}

/// The port after the last that has a cable, if there is one.
fn free_port(builder: &FabricBuilder, switch: NodeIndex) -> Option<PortRef> {
    let last = builder.fabric().node(switch).cabled_ports().last();
    let port = last.map_or(1, |(port, _)| port.0 + 1);
    (port <= RADIX).then_some(PortRef::new(switch, PortNum(port)))
}

fn any(source: &mut Pcg64, switches: &[NodeIndex]) -> NodeIndex {
    switches[source.random_range(0..switches.len() as u64) as usize]
}

/// Where the manager sits: at any cabled port of any host, or at port 0 of a switch.
pub(super) fn random_place(source: &mut Pcg64, fabric: &Fabric) -> PortRef {
    let at_switch = source.random_bool(0.2);
    let places: Vec<PortRef> = fabric
        .iter()
        .filter(|(_, node)| node.is_switch() == at_switch)
        .flat_map(|(index, node)| {
            let ports =
                if at_switch { vec![PortNum::ZERO] } else { node.cabled_ports().map(|p| p.0).collect() };
            ports.into_iter().map(move |port| PortRef::new(index, port))
        })
        .collect();
    places[source.random_range(0..places.len() as u64) as usize]
}
