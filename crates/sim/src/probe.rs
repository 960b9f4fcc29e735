//! Real packets from every host to every end port, over the data lanes.

use std::collections::BTreeMap;

use weft_device::{ClientId, Input};
use weft_machine::Time;
use weft_topology::{NodeIndex, PortRef};
use weft_wire::{
    AddressedMad, AttributeId, Lid, Mad, MadHeader, Method, MgmtClass, ServiceLevel, TransactionId,
};

use crate::{Simulation, Violation};

/// The program that probes are sent from, at every host.
const PROBE: ClientId = ClientId(0xfff0);

/// How long an answer may take.
const PATIENCE: Time = Time::from_millis(100);

impl Simulation {
    /// Sends a Get(ClassPortInfo) of class Perf from every host, and from every switch, to every end port within
    /// the manager's reach, and waits for the answers. Returns how many arrived.
    ///
    /// This lets time pass.
    pub fn probe(&mut self) -> Result<u64, Vec<Violation>> {
        let reached = self.reached();
        let targets: BTreeMap<Lid, PortRef> = self.end_port_lids();
        let sources: Vec<NodeIndex> = reached.into_iter().collect();
        let mut violations = Vec::new();
        let mut arrived = 0;
        for node in sources {
            let Some(port) = self.program_port(node) else { continue };
            let from = PortRef::new(node, port);
            if !targets.values().any(|&target| target == from) {
                continue;
            }
            self.feed(node, Input::Attach { client: PROBE, port, registrations: Vec::new() });
            for &lid in targets.keys() {
                let mad = AddressedMad::gmp(lid, ServiceLevel(0), request(lid));
                self.feed(node, Input::Send { client: PROBE, mad });
            }
            let answered = self.wait_for_answers(node, targets.len());
            self.feed(node, Input::Detach { client: PROBE });
            arrived += answered.len() as u64;
            for (&lid, &to) in targets.iter().filter(|(lid, _)| !answered.contains(lid)) {
                let (from, to) = (self.fabric.port_name(from), self.fabric.port_name(to));
                violations.push(Violation::NotReached { from: from.to_string(), to: to.to_string(), lid });
            }
        }
        if violations.is_empty() { Ok(arrived) } else { Err(violations) }
    }

    fn end_port_lids(&self) -> BTreeMap<Lid, PortRef> {
        let lids = self.check_lids(&self.reached(), &mut Vec::new());
        lids.iter().map(|lids| (lids.base, lids.port)).collect()
    }

    /// The LIDs that have answered.
    fn wait_for_answers(&mut self, node: NodeIndex, wanted: usize) -> Vec<Lid> {
        let limit = self.now() + PATIENCE;
        while self.delivered.len() < wanted && self.step(limit) {}
        let delivered = std::mem::take(&mut self.delivered);
        let right = delivered.into_iter().filter(|(at, client, mad)| {
            let id = TransactionId(u64::from(mad.lid.0));
            *at == node && *client == PROBE && mad.mad.transaction_id() == id && mad.mad.status() == 0
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
