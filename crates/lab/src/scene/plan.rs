//! The cabling as the page has it: nodes and cables with their ids and places.

use std::collections::BTreeMap;

use weft_page::state::{Cable, Layout, Node, Number};
use weft_picture::View;
use weft_picture::layout::{Arrangement, layout};
use weft_topology::{Fabric, LinkRate, NodeIndex, NodeType, PortRef};

use crate::view::Lab;

/// A cable's place among all, and which of its ends a port is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// The cable.
    pub cable: usize,
    /// Whether it is the end that is shown first.
    pub is_a: bool,
}

/// All that stays the same until the fabric is recabled.
#[derive(Debug, Default)]
pub struct Plan {
    /// How nodes are arranged.
    pub layout: Layout,
    /// By the node's place in the cabling, which is its id.
    pub nodes: Vec<Node>,
    /// Its cables, whose places are their ids.
    pub cables: Vec<Cable>,
    /// Their ends.
    pub ends: Vec<[PortRef; 2]>,
    /// The same the other way round.
    pub at: BTreeMap<PortRef, End>,
}

impl Plan {
    /// That of a laboratory, with the processes that run its nodes.
    pub(super) fn of(lab: &Lab) -> Self {
        let mut plan = Self::of_fabric(&lab.fabric);
        let agents = lab.record.agents.iter();
        let devices = agents.flat_map(|agent| agent.devices.iter().map(|device| (device.guid, &agent.name)));
        let agents: BTreeMap<_, _> = devices.collect();
        for (node, shown) in lab.fabric.nodes().iter().zip(&mut plan.nodes) {
            shown.process = agents.get(&node.guid).map(|name| (*name).clone()).unwrap_or_default();
        }
        plan
    }

    /// That of a fabric that no processes run.
    pub fn of_fabric(fabric: &Fabric) -> Self {
        let (layout, nodes) = placed(fabric);
        let (mut cables, mut ends, mut at) = (Vec::new(), Vec::new(), BTreeMap::new());
        for (cable, found) in fabric.cables().enumerate() {
            at.insert(found.a, End { cable, is_a: true });
            at.insert(found.b, End { cable, is_a: false });
            ends.push([found.a, found.b]);
            cables.push(Cable {
                a: found.a.node.0.to_string(),
                ap: found.a.port.0,
                b: found.b.node.0.to_string(),
                bp: found.b.port.0,
                ..Cable::default()
            });
        }
        Self { layout, nodes, cables, ends, at }
    }
}

fn placed(fabric: &Fabric) -> (Layout, Vec<Node>) {
    let view = View::new(fabric, false);
    let found = layout(&view);
    let top = view.top();
    let is_tiers = found.arrangement == Arrangement::Tiers;
    let row = |rank: u32| if rank == 0 { "hosts".to_owned() } else { format!("rank {rank}") };
    let drawn = Layout {
        kind: match found.arrangement {
            Arrangement::Tiers => "tiers",
            Arrangement::Ring => "ring",
            Arrangement::Grid => "grid",
            Arrangement::Springs => "springs",
        }
        .to_owned(),
        width: hundredths(found.size.x),
        height: hundredths(found.size.y),
        rows: if is_tiers { (0..=top).rev().map(row).collect() } else { Vec::new() },
    };
    let nodes = fabric.iter().map(|(index, node)| {
        let mark = view.mark(index);
        let place = found.places[mark.index()];
        let kind = match node.kind {
            NodeType::Switch => "switch",
            NodeType::Router => "router",
            _ => "host",
        };
        Node {
            name: fabric.label(index),
            kind: kind.to_owned(),
            guid: node.guid.to_string(),
            x: hundredths(place.x),
            y: hundredths(place.y),
            rank: Number(view.marks[mark.index()].rank.into()),
            leaf: leaf(fabric, index),
            ..Node::default()
        }
    });
    (drawn, nodes.collect())
}

/// The switch that a host folds into: that of its only cable.
fn leaf(fabric: &Fabric, index: NodeIndex) -> Option<String> {
    let node = fabric.node(index);
    let mut cables = node.cabled_ports();
    let (_, peer) = cables.next().filter(|_| !node.is_switch() && cables.next().is_none())?;
    fabric.node(peer.node).is_switch().then(|| peer.node.0.to_string())
}

fn hundredths(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

/// A rate as the page writes it, `4x QDR`, and what it carries after its coding in gigabits per second.
pub fn rate(shown: &str) -> (String, Option<f64>) {
    let Ok(rate) = shown.parse::<LinkRate>() else { return (shown.to_owned(), None) };
    let (width, speed) = (rate.width.to_string(), rate.speed.to_string());
    // 8 of 10 bits up to QDR, 64 of 66 from FDR10 on (IBA volume 2, 5.2 and 5.3).
    let share = if matches!(speed.as_str(), "SDR" | "DDR" | "QDR") { 0.8 } else { 64.0 / 66.0 };
    let gbps = rate.signalling_bits_per_second() as f64 * share / 1e9;
    (format!("{width} {speed}"), Some((gbps * 10.0).round() / 10.0))
}
