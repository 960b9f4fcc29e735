//! Hosts that send as fast as their adapters take it, and count what comes.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]
#![allow(dead_code, reason = "not every test uses all of it")]

pub(crate) mod anywhere;
pub(crate) mod connections;
pub(crate) mod counts;
pub(crate) mod crossbars;
pub(crate) mod replay;
pub(crate) mod rest;
pub(crate) mod seeds;
pub(crate) mod vms;
pub(crate) mod workload;

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use weft_machine::Time;
use weft_sim::{Load, Simulation, ToHost};
use weft_topology::{NodeIndex, PortRef};
use weft_wire::{DataPacket, Lid, PKey, QKey, QpNum, ServiceLevel, opcode};

/// Where a host's packets go.
#[derive(Clone, Debug)]
pub(crate) enum Destinations {
    /// Always there, at this service level.
    One(Lid, ServiceLevel),
    /// Each somewhere else.
    Any(Rc<Vec<Lid>>),
}

/// What came, by receiver and sender.
pub(crate) type Arrived = BTreeMap<(Lid, Lid), Flow>;

/// Packets of one sender at one receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flow {
    pub(crate) packets: u64,
    /// Whole packets, from LRH to VCRC.
    pub(crate) bytes: u64,
    /// Packets whose number was not higher than the one before.
    pub(crate) disorder: u64,
    next: u64,
}

/// A host that sends.
struct Source {
    own: Lid,
    targets: Destinations,
    /// The number of its last packet.
    sequence: u64,
}

/// A load of flows that never end.
pub(crate) struct Saturate {
    sources: BTreeMap<PortRef, Source>,
    random: Pcg64,
    arrived: Option<Rc<RefCell<Arrived>>>,
}

/// Bytes of body in every packet.
pub(crate) const BODY: u16 = 2048;

impl Saturate {
    /// Flows, and where to find what came of them.
    pub(crate) fn new(
        targets: BTreeMap<PortRef, (Lid, Destinations)>,
        seed: u64,
    ) -> (Self, Rc<RefCell<Arrived>>) {
        let arrived = Rc::new(RefCell::new(Arrived::new()));
        let source = |(port, (own, targets))| (port, Source { own, targets, sequence: 0 });
        let (sources, random) = (targets.into_iter().map(source).collect(), Pcg64::seed_from_u64(seed));
        (Self { sources, random, arrived: Some(Rc::clone(&arrived)) }, arrived)
    }

    /// Flows that no one counts.
    pub(crate) fn uncounted(targets: BTreeMap<PortRef, (Lid, Destinations)>, seed: u64) -> Self {
        Self { arrived: None, ..Self::new(targets, seed).0 }
    }

    fn next(&mut self, port: PortRef) -> Option<DataPacket> {
        let Source { own, targets, sequence } = self.sources.get_mut(&port)?;
        let (dlid, service_level) = match targets {
            Destinations::One(lid, service_level) => (*lid, *service_level),
            Destinations::Any(lids) => {
                let mut lid = *own;
                while lid == *own {
                    lid = lids[self.random.random_range(0..lids.len() as u64) as usize];
                }
                (lid, ServiceLevel(0))
            }
        };
        *sequence += 1;
        Some(datagram(dlid, service_level, *sequence))
    }

    /// The first packets of every host.
    fn first(&mut self) -> Vec<(PortRef, DataPacket)> {
        let ports: Vec<PortRef> = self.sources.keys().copied().collect();
        ports.iter().flat_map(|&port| [port; 2]).filter_map(|port| Some((port, self.next(port)?))).collect()
    }

    /// Lets every host begin.
    pub(crate) fn start(mut self, simulation: &mut Simulation) {
        let first = self.first();
        simulation.set_load(self);
        for (port, packet) in first {
            simulation.inject(port, packet);
        }
    }
}

impl Load for Saturate {
    fn hear(&mut self, _: Time, port: PortRef, what: ToHost, inject: &mut VecDeque<DataPacket>) {
        match what {
            ToHost::Injected { packets, .. } => {
                for _ in 0..packets {
                    inject.extend(self.next(port));
                }
            }
            ToHost::Accept(packet) => {
                let Some(arrived) = &self.arrived else { return };
                let mut arrived = arrived.borrow_mut();
                let flow = arrived.entry((packet.dlid, packet.slid)).or_default();
                flow.packets += 1;
                flow.bytes += packet.size() as u64;
                flow.disorder += u64::from(packet.sequence < flow.next);
                flow.next = packet.sequence + 1;
            }
            ToHost::Facts(_) | ToHost::Refused(_) | ToHost::Receive(_) | ToHost::HandedOn(_) => {}
        }
    }
}

pub(crate) fn datagram(dlid: Lid, service_level: ServiceLevel, sequence: u64) -> DataPacket {
    DataPacket {
        sequence,
        dlid,
        service_level,
        dest_qp: QpNum(2),
        src_qp: QpNum(2),
        q_key: QKey(1),
        p_key: PKey(0xffff),
        payload: BODY,
        opcode: opcode::UD_SEND_ONLY,
        ..DataPacket::default()
    }
}

/// A host's first cabled port.
pub(crate) fn port(simulation: &Simulation, host: NodeIndex) -> PortRef {
    PortRef::new(host, simulation.fabric().node(host).cabled_ports().next().expect("a cabled port").0)
}

/// The LID of a host's first cabled port.
pub(crate) fn lid(simulation: &Simulation, host: NodeIndex) -> Lid {
    let port = port(simulation, host);
    simulation.device(host).expect("it is on").port_snapshot(port.port).expect("the port is there").lid
}

/// Every host sends to all others, evenly by chance.
pub(crate) fn uniform(simulation: &Simulation) -> BTreeMap<PortRef, (Lid, Destinations)> {
    let hosts: Vec<NodeIndex> = simulation.fabric().hosts().map(|(at, _)| at).collect();
    let lids = Rc::new(hosts.iter().map(|&host| lid(simulation, host)).collect::<Vec<Lid>>());
    let targets = |host: NodeIndex| (lid(simulation, host), Destinations::Any(Rc::clone(&lids)));
    hosts.iter().map(|&host| (port(simulation, host), targets(host))).collect()
}
