//! A laboratory piece by piece: what switches and cables join is a subnet by itself.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weft_bundle::record::{AgentRecord, LabRecord, OtherPlace, SmPlace};
use weft_topology::{Fabric, NodeIndex, Pieces, PortRef};
use weft_wire::count_of;

use crate::view::Lab;

/// The pieces of a cabling, and the names and ports of those who manage them.
pub struct Managers {
    pieces: Pieces,
    seats: Vec<(String, PortRef)>,
}

/// A piece of a fabric, for people and programs.
#[derive(Debug, Serialize, Deserialize)]
pub struct PieceLine {
    /// A node of it: its first switch, if it has one.
    piece: String,
    /// The subnet manager that it is brought up by, and its port.
    manager: Option<(String, String)>,
    /// All nodes of it. None for the piece of a subnet manager.
    nodes: Vec<String>,
    count: usize,
}

impl Managers {
    /// Those of managers at these ports, by name.
    pub fn new(fabric: &Fabric, seats: Vec<(String, PortRef)>) -> Self {
        Self { pieces: fabric.pieces(), seats }
    }

    /// Those of a laboratory.
    pub fn of(fabric: &Fabric, record: &LabRecord) -> Self {
        let seat = |place: &OtherPlace| {
            Some((place.name.clone(), PortRef::new(fabric.by_guid(place.node)?, place.port)))
        };
        let opensms = record.opensms.iter().filter_map(seat);
        Self::new(fabric, record.leaders_in(fabric).into_iter().chain(opensms).collect())
    }

    fn manager(&self, piece: u32) -> Option<&(String, PortRef)> {
        self.seats.iter().find(|(_, seat)| self.pieces.of_port(*seat) == Some(piece))
    }

    /// Nodes that no manager reaches; none where there is no manager.
    pub fn unreachable(&self, fabric: &Fabric) -> Vec<String> {
        let reached = |node| self.pieces.of_node(node).any(|piece| self.manager(piece).is_some());
        let outside = fabric.iter().filter(|(index, _)| !self.seats.is_empty() && !reached(*index));
        outside.map(|(index, _)| fabric.label(index)).collect()
    }

    /// What there is to say of pieces, where there are several and a manager.
    pub fn lines(&self, fabric: &Fabric) -> Vec<PieceLine> {
        if self.seats.is_empty() || self.pieces.len() < 2 {
            return Vec::new();
        }
        self.pieces.iter().map(|piece| self.line(fabric, piece)).collect()
    }

    fn line(&self, fabric: &Fabric, piece: u32) -> PieceLine {
        let manager = self.manager(piece).map(|(name, seat)| (name.clone(), fabric.port_label(*seat)));
        let nodes = fabric.iter().filter(|(index, _)| self.pieces.has(piece, *index));
        let nodes: Vec<String> = nodes.map(|(index, _)| fabric.label(index)).collect();
        let (piece, count) = (fabric.piece_label(&self.pieces, piece), nodes.len());
        PieceLine { piece, nodes: if manager.is_some() { Vec::new() } else { nodes }, manager, count }
    }
}

/// The pieces of a fabric, for people: who manages each, and which have no manager.
pub fn text(lines: &[PieceLine]) -> String {
    const SHOWN_MAX: usize = 5;
    let listed = |names: &[&str]| {
        let more = if names.len() > SHOWN_MAX { ", …" } else { "" };
        format!(
            "{} ({}{more})",
            count_of(names.len(), "node"),
            names[..names.len().min(SHOWN_MAX)].join(", ")
        )
    };
    let mut text = String::new();
    for line in lines {
        if let Some((name, seat)) = &line.manager {
            text +=
                &format!("piece of `{}`: {name} at {seat}, {}\n", line.piece, count_of(line.count, "node"));
        }
    }
    let bare: Vec<&PieceLine> = lines.iter().filter(|line| line.manager.is_none()).collect();
    let (alone, pieces): (Vec<&PieceLine>, Vec<&PieceLine>) =
        bare.into_iter().partition(|line| line.count == 1);
    for line in &pieces {
        let names: Vec<&str> = line.nodes.iter().map(String::as_str).collect();
        text += &format!("no subnet manager in the piece of `{}`: {}\n", line.piece, listed(&names));
    }
    if !alone.is_empty() {
        let names: Vec<&str> = alone.iter().flat_map(|line| &line.nodes).map(String::as_str).collect();
        text += &format!("cabled to no other node: {}\n", listed(&names));
    }
    if !pieces.is_empty() {
        text += "hint: `--sm-at NODE:PORT`, once for each piece, gives each a subnet manager\n";
    }
    text
}

/// The pieces of a laboratory, and who manages them.
pub struct LabPieces {
    /// The pieces.
    pub pieces: Pieces,
    /// By piece: whether a manager of the laboratory sits there.
    managed: Vec<bool>,
}

impl LabPieces {
    /// Those of a laboratory.
    pub fn of(lab: &Lab) -> Self {
        let pieces = lab.fabric.pieces();
        let mut managed = vec![false; pieces.len()];
        let managers = lab.record.subnet_managers().map(|(_, place)| (place.node, place.port));
        let opensms = lab.record.opensms.iter().map(|place| (place.node, place.port));
        for (node, port) in managers.chain(opensms) {
            let seat = lab.fabric.by_guid(node).map(|node| PortRef::new(node, port));
            if let Some(piece) = seat.and_then(|seat| pieces.of_port(seat)) {
                managed[piece as usize] = true;
            }
        }
        Self { pieces, managed }
    }

    /// Whether a manager of the laboratory sits in a piece.
    pub fn is_managed(&self, piece: u32) -> bool {
        self.managed.get(piece as usize) == Some(&true)
    }

    /// The pieces of several nodes, in which something can be sent.
    pub fn live(&self) -> Vec<u32> {
        self.pieces.iter().filter(|piece| self.pieces.nodes(*piece) > 1).collect()
    }

    /// The pieces in which two nodes may reach each other, those with a manager first.
    pub fn shared(&self, a: NodeIndex, b: NodeIndex) -> Vec<u32> {
        let mut both: Vec<u32> = self.pieces.of_node(a).filter(|piece| self.pieces.has(*piece, b)).collect();
        both.sort_by_key(|piece| !self.is_managed(*piece));
        both
    }
}

impl Lab {
    /// A piece of it by itself, as if there were nothing else: its nodes, cables, agents and managers.
    pub fn piece(&self, pieces: &Pieces, piece: u32) -> Self {
        let fabric = self.fabric.piece(pieces, piece);
        let is_in = |node, port| {
            let seat = self.fabric.by_guid(node).map(|node| PortRef::new(node, port));
            seat.and_then(|seat| pieces.of_port(seat)) == Some(piece)
        };
        let slots = self.slots.iter().filter_map(|(index, slot)| {
            let here = fabric.by_guid(self.fabric.node(*index).guid)?;
            Some((here, slot.clone()))
        });
        let slots: BTreeMap<_, _> = slots.collect();
        let record = piece_of(&self.record, &fabric, is_in);
        Self { folder: self.folder.clone(), record, fabric, slots, whole: false }
    }
}

/// What of a record concerns the nodes of `fabric`, and the managers that `is_in` takes.
fn piece_of(
    record: &LabRecord,
    fabric: &Fabric,
    is_in: impl Fn(weft_wire::Guid, weft_wire::PortNum) -> bool,
) -> LabRecord {
    let places = |places: &[OtherPlace]| {
        places.iter().filter(|place| is_in(place.node, place.port)).cloned().collect()
    };
    let managers = record.subnet_managers().filter(|(_, place)| is_in(place.node, place.port));
    let mut managers = managers.map(|(name, place)| SmPlace { name: Some(name), ..place.clone() });
    let agents = record.agents.iter().filter_map(|agent| {
        let mut agent: AgentRecord = agent.clone();
        agent.devices.retain(|device| fabric.by_guid(device.guid).is_some());
        (!agent.devices.is_empty()).then_some(agent)
    });
    LabRecord {
        sm: managers.next(),
        standbys: managers.collect(),
        agents: agents.collect(),
        pms: places(&record.pms),
        opensms: places(&record.opensms),
        vmms: places(&record.vmms),
        ..record.clone()
    }
}
