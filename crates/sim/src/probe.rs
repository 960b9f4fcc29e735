//! Real packets from every host to every end port, over the data lanes.

use std::collections::BTreeMap;

use weft_machine::Time;
use weft_node::{Client, Input};
use weft_topology::{NodeIndex, PortRef};
use weft_wire::{
    AddressedMad, AttributeId, DirectedSmp, Lid, LinearForwardingTable, Mad, MadHeader, Method, MgmtClass,
    PortNum, ServiceLevel, TransactionId,
};

use crate::{Simulation, Violation};

/// How long an answer may take, and how long one that does not come is waited for.
const PATIENCE: Time = Time::from_millis(100);

impl Simulation {
    /// Sends a Get(ClassPortInfo) of class Perf from every host, and from every switch, to every end port within
    /// the manager's reach, and waits for the answers. Returns how many arrived. Between switches an answer may be missing
    /// where the routing leaves ways between switches out.
    ///
    /// This lets time pass.
    pub fn probe(&mut self) -> Result<u64, Vec<Violation>> {
        let reached = self.reached();
        let targets: BTreeMap<Lid, PortRef> = self.end_port_lids();
        let sources: Vec<NodeIndex> = reached.into_iter().collect();
        let mut violations = Vec::new();
        let mut arrived = 0;
        for node in sources {
            let Some(from) = self.seat(node) else { continue };
            if !targets.values().any(|&target| target == from) {
                continue;
            }
            let Some(client) = self.attach_checker(from, false) else { continue };
            for &lid in targets.keys() {
                let mad = Box::new(AddressedMad::gmp(lid, ServiceLevel(0), request(lid)));
                self.feed(node, Input::Send { client, mad });
            }
            let answered = self.wait_for_answers(node, client, targets.len());
            self.feed(node, Input::Detach { client });
            arrived += answered.len() as u64;
            for (&lid, &to) in targets.iter().filter(|(lid, _)| !answered.contains(lid)) {
                let is_switch = |port: PortRef| self.fabric().node(port.node).is_switch();
                if is_switch(from) && is_switch(to) && self.spares_switches() {
                    continue;
                }
                let (from, to) = (self.fabric().port_name(from), self.fabric().port_name(to));
                violations.push(Violation::NotReached { from: from.to_string(), to: to.to_string(), lid });
            }
        }
        if violations.is_empty() { Ok(arrived) } else { Err(violations) }
    }

    /// Sends a request from a program attached to the node, as a diagnostic tool would, and waits for its answer.
    ///
    /// This lets time pass.
    pub fn ask(&mut self, node: NodeIndex, mad: AddressedMad) -> Option<AddressedMad> {
        let client = self.attach_checker(self.seat(node)?, false)?;
        // A probe may change something.
        self.world.clock.disturb();
        self.feed(node, Input::Send { client, mad: Box::new(mad) });
        let limit = self.now() + PATIENCE;
        while self.world.observers.delivered.is_empty() && self.step(limit) {}
        self.feed(node, Input::Detach { client });
        let delivered = std::mem::take(&mut self.world.observers.delivered);
        delivered.into_iter().find(|(at, to, _)| *at == node && *to == client).map(|(_, _, mad)| mad)
    }

    fn end_port_lids(&self) -> BTreeMap<Lid, PortRef> {
        let lids = self.check_lids(&self.reached(), &mut Vec::new());
        lids.iter().map(|lids| (lids.base, lids.port)).collect()
    }

    /// The LIDs that have answered.
    fn wait_for_answers(&mut self, node: NodeIndex, client: Client, wanted: usize) -> Vec<Lid> {
        let limit = self.now() + PATIENCE;
        while self.world.observers.delivered.len() < wanted && self.step(limit) {}
        let delivered = std::mem::take(&mut self.world.observers.delivered);
        let right = delivered.into_iter().filter(|(at, to, mad)| {
            let id = TransactionId(u64::from(mad.lid.0));
            *at == node && *to == client && mad.mad.transaction_id() == id && mad.mad.status() == 0
        });
        right.map(|(_, _, mad)| mad.lid).collect()
    }
}

fn request(lid: Lid) -> Mad {
    let mut mad = Mad::default();
    mad.set_header(&MadHeader {
        base_version: 1,
        mgmt_class: MgmtClass::Perf,
        class_version: 1,
        method: Method::Get,
        transaction_id: TransactionId(u64::from(lid.0)),
        attribute_id: AttributeId::ClassPortInfo,
        ..MadHeader::default()
    });
    mad
}

impl Simulation {
    /// Writes a switch's forwarding table past its subnet manager, as somebody malicious or mistaken would: what
    /// is for `lids` leaves by `port` from now on. For seeing whether checkers find it.
    pub fn write_table(&mut self, node: NodeIndex, lids: &[Lid], port: PortNum) {
        let Some(device) = self.device(node) else { return };
        let mut blocks: BTreeMap<u16, LinearForwardingTable> = BTreeMap::new();
        for &lid in lids {
            let old = |offset: usize| device.forwarding_table().get(usize::from(lid.block()) * 64 + offset);
            let table = blocks.entry(lid.block()).or_insert_with(|| LinearForwardingTable {
                ports: std::array::from_fn(|offset| old(offset).copied().unwrap_or(PortNum::NONE)),
            });
            table.ports[lid.offset()] = port;
        }
        let Some(client) = self.attach_checker(PortRef::new(node, PortNum::ZERO), false) else { return };
        for (block, table) in blocks {
            let mut mad = Mad::default();
            mad.set_header(&MadHeader {
                base_version: 1,
                mgmt_class: MgmtClass::SubnDirected,
                class_version: 1,
                method: Method::Set,
                attribute_id: AttributeId::LinearForwardingTable,
                attribute_modifier: u32::from(block),
                ..MadHeader::default()
            });
            DirectedSmp::dr_slid.set(&mut mad.0, Lid::PERMISSIVE);
            DirectedSmp::dr_dlid.set(&mut mad.0, Lid::PERMISSIVE);
            mad.set_smp_data(&table.encode());
            let mad = Box::new(AddressedMad::smp(Lid::PERMISSIVE, mad));
            self.feed(node, Input::Send { client, mad });
        }
        self.feed(node, Input::Detach { client });
        self.world.observers.delivered.clear();
    }
}
