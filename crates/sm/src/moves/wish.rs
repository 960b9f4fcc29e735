//! A move's request on this subnet: whose LID moves between which places, or in words why it does not.

use std::collections::BTreeSet;

use weft_routing::VSwitch;
use weft_routing::files::GuidToLid;
use weft_routing::moves::Move;
use weft_wire::{Guid, Lid, PortNum, VmMove, VmMoveKind};

use super::desk::Away;
use crate::knowledge::{PortAt, Subnet, graph_port};

/// A request that makes sense.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    /// As it was asked, with the LIDs that were left to the manager.
    pub(crate) ask: VmMove,
    /// For the planner.
    pub(crate) one: Move,
    /// End ports that the manager knows, and the places that they get.
    pub(crate) cables: Vec<(PortAt, PortAt)>,
    /// Places where no one is then.
    pub(crate) freed: Vec<PortAt>,
    /// GUIDs that are to be seen at other places.
    pub(crate) away: Vec<(Guid, Away)>,
}

/// The subnet and what is on file, as far as requests are about it.
#[derive(Clone, Copy)]
pub(crate) struct Places<'a> {
    pub(crate) subnet: &'a Subnet,
    /// By node.
    pub(crate) vswitches: &'a [VSwitch],
    pub(crate) on_file: &'a GuidToLid,
}

/// One that has a port GUID, whether it is plugged in or not.
#[derive(Clone, Copy, Debug)]
struct Identity {
    guid: Guid,
    /// Its end port, where the last sweep has seen it.
    end: Option<PortAt>,
    lid: Option<Lid>,
}

impl Places<'_> {
    /// Reads a request that moves a LID. `None`: all is already as it asks.
    ///
    /// # Errors
    ///
    /// Says what contradicts itself or the subnet.
    pub(crate) fn read(&self, ask: &VmMove) -> Result<Option<Wish>, String> {
        let machine = self.identity(ask.guid, ask.lid)?;
        match ask.kind {
            VmMoveKind::Copy => self.copy(ask, machine),
            VmMoveKind::Swap => self.swap(ask, machine),
            VmMoveKind::Boot => self.boot(ask, machine),
            VmMoveKind::Clear => self.clear(ask, machine),
            kind => Err(format!("kind {kind} moves no LID")),
        }
    }

    /// Who is about to be away by a Hold, and where: its partner too, if it has one.
    ///
    /// # Errors
    ///
    /// Says what contradicts the subnet.
    pub(crate) fn read_hold(&self, ask: &VmMove) -> Result<Vec<(Guid, Away)>, String> {
        let mut switches = [ask.from_switch, ask.to_switch];
        for (switch, port) in [(ask.from_switch, ask.from_port), (ask.to_switch, ask.to_port)] {
            self.place(switch, port)?;
        }
        switches.sort_unstable();
        let mut held = Vec::new();
        for (guid, lid) in [(ask.guid, ask.lid), (ask.partner, ask.partner_lid)] {
            if guid == Guid(0) && held.len() == 1 {
                continue;
            }
            let found = self.identity(guid, lid)?;
            let Some(lid) = found.lid else { return Err(format!("GUID {guid} has no LID")) };
            if guid == ask.guid {
                self.must_fit(guid, self.place(ask.to_switch, ask.to_port)?)?;
            }
            held.push((guid, away(lid, switches, None)));
        }
        Ok(held)
    }

    fn identity(&self, guid: Guid, lid: Lid) -> Result<Identity, String> {
        if guid == Guid(0) {
            return Err("GUID 0 is no one's".to_owned());
        }
        let end = self.subnet.host_by_guid(guid);
        let present = end.and_then(|at| self.subnet.port(at)?.lid);
        let range = present.or_else(|| self.on_file.range(guid));
        if let Some(range) = range.filter(|range| range.lmc() != 0) {
            return Err(format!("GUID {guid} has {} LIDs, and only one can move", 1 << range.lmc()));
        }
        let known = range.map(|range| range.min);
        match known {
            Some(known) if lid != Lid(0) && known != lid => {
                Err(format!("LID {lid} is not that of GUID {guid}, which has LID {known}"))
            }
            None if lid != Lid(0) && self.is_taken(lid) => {
                Err(format!("LID {lid} belongs to another GUID than {guid}"))
            }
            None if lid != Lid(0) && !lid.is_unicast() => Err(format!("LID {lid} is not unicast")),
            _ => Ok(Identity { guid, end, lid: known.or(Some(lid).filter(|lid| *lid != Lid(0))) }),
        }
    }

    fn is_taken(&self, lid: Lid) -> bool {
        let has = |range: weft_routing::files::LidRange| (range.min..=range.max).contains(&lid);
        self.subnet.routed.lids.owner(lid).is_some() || self.on_file.iter().any(|(_, range)| has(range))
    }

    /// A place for virtual functions.
    fn place(&self, switch: Guid, port: PortNum) -> Result<PortAt, String> {
        let (node, vswitch) = self.vswitch(switch)?;
        let count = self.subnet.node(node).map_or(0, |node| node.info.num_ports);
        if port == vswitch.uplink || port == physical(vswitch) || !(1..=count).contains(&port.0) {
            return Err(format!("port {port} of vSwitch {switch} is none of a virtual function"));
        }
        Ok(PortAt { node, port })
    }

    fn vswitch(&self, switch: Guid) -> Result<(u32, &VSwitch), String> {
        let node = self.subnet.by_guid.get(&switch);
        let node = node.ok_or_else(|| format!("no node with GUID {switch} is in the subnet"))?;
        let found = self.vswitches.binary_search_by_key(node, |vswitch| vswitch.node.0);
        match found {
            Ok(at) => Ok((*node, &self.vswitches[at])),
            Err(_) => {
                let name = self.subnet.node(*node).map_or("", |node| &node.description);
                Err(format!("node {switch} ({name}) is no vSwitch with functions"))
            }
        }
    }

    /// The LID of the physical function at a place, or the one that the request names.
    fn model(&self, ask: &VmMove, at: PortAt) -> Result<Lid, String> {
        if ask.partner_lid != Lid(0) {
            return Ok(ask.partner_lid);
        }
        let guid = self.subnet.guid(at.node);
        self.vswitch(guid)?;
        self.physical_lid(at.node)
            .ok_or_else(|| format!("vSwitch {guid} has no physical function with a LID"))
    }

    /// The LID of the physical function at a vSwitch, if it is one and has one.
    pub(crate) fn physical_lid(&self, node: u32) -> Option<Lid> {
        let found = self.vswitches.binary_search_by_key(&node, |vswitch| vswitch.node.0).ok()?;
        let port = PortAt { node, port: physical(&self.vswitches[found]) };
        Some(self.subnet.port(self.subnet.port(port)?.peer?)?.lid?.min)
    }

    /// Where one is that the manager knows.
    fn at(&self, one: Identity) -> Option<PortAt> {
        self.subnet.port(one.end?)?.peer
    }

    /// One that is plugged in must be where the request says.
    fn must_be_at(&self, one: Identity, place: PortAt) -> Result<(), String> {
        match self.at(one) {
            Some(at) if at != place => {
                let (at, place) = (self.subnet.place_name(at), self.subnet.place_name(place));
                Err(format!("GUID {} is at {at}, not at {place}", one.guid))
            }
            _ => Ok(()),
        }
    }

    fn must_be_free(&self, place: PortAt, for_guid: Guid) -> Result<(), String> {
        match self.subnet.guid_behind(place).filter(|guid| *guid != for_guid) {
            Some(guid) => Err(format!("{} is taken by GUID {guid}", self.subnet.place_name(place))),
            None => Ok(()),
        }
    }

    /// The table of the port that a machine gets has room for its partitions: with some of them missing it would not resume there.
    /// Where no one is plugged in, functions of one adapter are taken to be alike.
    fn must_fit(&self, guid: Guid, to: PortAt) -> Result<(), String> {
        let Some(keys) = self.subnet.keys.as_ref().map(|keys| keys.of(guid).len()) else { return Ok(()) };
        let end = |at: PortAt| self.subnet.node(self.subnet.port(at)?.peer?.node);
        let found = self.vswitches.binary_search_by_key(&to.node, |vswitch| vswitch.node.0).ok();
        let first = found.map(|at| PortAt { node: to.node, port: physical(&self.vswitches[at]) });
        let Some(function) = end(to).or_else(|| end(first?)) else { return Ok(()) };
        let room = usize::from(function.info.partition_cap);
        if keys <= room {
            return Ok(());
        }
        let place = self.subnet.place_name(to);
        Err(format!("{guid} has {keys} P_Keys; {place} has room for {room}"))
    }

    fn lid_of(one: Identity) -> Result<Lid, String> {
        one.lid.ok_or_else(|| format!("GUID {} has no LID", one.guid))
    }

    fn ends(&self, ask: &VmMove) -> Result<(PortAt, PortAt), String> {
        let from = self.place(ask.from_switch, ask.from_port)?;
        let to = self.place(ask.to_switch, ask.to_port)?;
        if from == to { Err("source and destination are the same place".to_owned()) } else { Ok((from, to)) }
    }

    fn copy(&self, ask: &VmMove, machine: Identity) -> Result<Option<Wish>, String> {
        let (from, to) = self.ends(ask)?;
        if self.at(machine) == Some(to) {
            return Ok(None);
        }
        let lid = Self::lid_of(machine)?;
        self.must_be_at(machine, from)?;
        self.must_be_free(to, machine.guid)?;
        self.must_fit(machine.guid, to)?;
        let of = self.model(ask, to)?;
        let one = Move::Copy { lid, from: port_of(machine, from), to: graph_port(to), of };
        let away = vec![(machine.guid, expected(ask, lid, ask.to_switch, to))];
        let cables = machine.end.map(|end| (end, to)).into_iter().collect();
        let ask = VmMove { lid, partner_lid: of, ..*ask };
        Ok(Some(Wish { ask, one, cables, freed: vec![from], away }))
    }

    fn swap(&self, ask: &VmMove, machine: Identity) -> Result<Option<Wish>, String> {
        let (from, to) = self.ends(ask)?;
        let there = Some(ask.partner).filter(|guid| *guid != Guid(0)).or_else(|| self.subnet.guid_behind(to));
        let there =
            there.ok_or_else(|| format!("no one is at {} to swap with", self.subnet.place_name(to)))?;
        // After a takeover the manager has found the machine at its new place, and its partner nowhere yet.
        let partner_is_away = ask.partner != Guid(0) && self.subnet.host_by_guid(ask.partner).is_none();
        let has_another = self.subnet.guid_behind(from).is_some_and(|guid| guid != machine.guid);
        if self.at(machine) == Some(to) && (has_another || partner_is_away) {
            return Ok(None);
        }
        let partner = self.identity(there, ask.partner_lid)?;
        if partner.guid == machine.guid {
            return Err(format!("GUID {} cannot swap with itself", machine.guid));
        }
        let (lid, with) = (Self::lid_of(machine)?, Self::lid_of(partner)?);
        self.must_be_at(machine, from)?;
        self.must_be_at(partner, to)?;
        self.must_be_free(from, machine.guid)?;
        self.must_be_free(to, partner.guid)?;
        self.must_fit(machine.guid, to)?;
        let one = Move::Swap { lid, from: port_of(machine, from), to: port_of(partner, to), with };
        let away = vec![
            (machine.guid, expected(ask, lid, ask.to_switch, to)),
            (partner.guid, expected(ask, with, ask.from_switch, from)),
        ];
        let cables = [(machine.end, to), (partner.end, from)];
        let cables = cables.into_iter().filter_map(|(end, place)| Some((end?, place))).collect();
        let ask = VmMove { lid, partner_lid: with, partner: partner.guid, ..*ask };
        Ok(Some(Wish { ask, one, cables, freed: Vec::new(), away }))
    }

    fn boot(&self, ask: &VmMove, machine: Identity) -> Result<Option<Wish>, String> {
        let to = self.place(ask.to_switch, ask.to_port)?;
        if self.at(machine) == Some(to) {
            return Ok(None);
        }
        if let Some(at) = self.at(machine) {
            return Err(format!("GUID {} is at {} already", machine.guid, self.subnet.place_name(at)));
        }
        self.must_be_free(to, machine.guid)?;
        let lid = machine.lid.or_else(|| self.lowest_free()).ok_or("no LID is free")?;
        let of = self.model(ask, to)?;
        let one = Move::Boot { lid, to: graph_port(to), of };
        let away = vec![(machine.guid, expected(ask, lid, ask.to_switch, to))];
        let ask = VmMove { lid, partner_lid: of, ..*ask };
        Ok(Some(Wish { ask, one, cables: Vec::new(), freed: Vec::new(), away }))
    }

    fn clear(&self, ask: &VmMove, machine: Identity) -> Result<Option<Wish>, String> {
        let from = self.place(ask.from_switch, ask.from_port)?;
        if let Some(at) = self.at(machine) {
            let at = self.subnet.place_name(at);
            return Err(format!("GUID {} is at {at}: unplug it first", machine.guid));
        }
        let lid = Self::lid_of(machine)?;
        let one = Move::Clear { lid, from: graph_port(from) };
        let ask = VmMove { lid, ..*ask };
        Ok(Some(Wish { ask, one, cables: Vec::new(), freed: Vec::new(), away: Vec::new() }))
    }

    fn lowest_free(&self) -> Option<Lid> {
        let on_file = self.on_file.iter().flat_map(|(_, range)| range.min.0..=range.max.0);
        let taken: BTreeSet<u16> = on_file.collect();
        let is_free = |lid: &u16| !taken.contains(lid) && self.subnet.routed.lids.owner(Lid(*lid)).is_none();
        (1..=Lid::UNICAST_MAX.0).find(is_free).map(Lid)
    }
}

/// The port of a vSwitch to its physical function: the first that is not the uplink.
pub(crate) fn physical(vswitch: &VSwitch) -> PortNum {
    if vswitch.uplink == PortNum(1) { PortNum(2) } else { PortNum(1) }
}

fn port_of(one: Identity, place: PortAt) -> weft_topology::PortRef {
    graph_port(one.end.unwrap_or(place))
}

fn away(lid: Lid, switches: [Guid; 2], expected: Option<(Guid, PortNum)>) -> Away {
    Away { lid, switches, expected, until: weft_machine::Time::ZERO }
}

fn expected(ask: &VmMove, lid: Lid, switch: Guid, at: PortAt) -> Away {
    let mut switches = [ask.from_switch, ask.to_switch];
    switches.sort_unstable();
    away(lid, switches, Some((switch, at.port)))
}
