//! Acknowledgements of a change, as subnet managers say: whose ports have their keys, and which are named as not being as the file says.

use std::collections::BTreeSet;

use weft_sim::{Process, Simulation};
use weft_sm::{Event, PartEnforce};
use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_wire::{Guid, PortNum};

use super::file::guid;

/// What has been said since a change began.
pub(super) struct Acks {
    /// Events before.
    seen: usize,
    /// Hosts that a manager knew when it said that ports have their keys.
    hosts: BTreeSet<Guid>,
    /// Ports that are named as being in partitions that they are to leave, and those of them whose packets no switch drops.
    kept: BTreeSet<Guid>,
    open: BTreeSet<Guid>,
    /// Whether switches look at what goes to hosts.
    outbound: bool,
    /// Whether keys wait until places have rested.
    waits: bool,
}

impl Acks {
    /// A change begins.
    pub(super) fn begin(simulation: &Simulation, enforced: PartEnforce) -> Self {
        let outbound = matches!(enforced, PartEnforce::Both | PartEnforce::Out);
        let seen = simulation.partition_events().count();
        let (hosts, kept, open) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        Self { seen, hosts, kept, open, outbound, waits: false }
    }

    /// Takes what has been said meanwhile. Whether a manager has said that the change is done.
    pub(super) fn look(&mut self, simulation: &Simulation) -> bool {
        let events = simulation.partition_events();
        let new = events.since(self.seen).to_vec();
        self.seen = events.count();
        let mut is_done = false;
        for (_, process, event) in new {
            match event {
                Event::PartitionsKept { port_guid, is_cut_off, .. } => {
                    self.kept.insert(port_guid.0);
                    if !is_cut_off {
                        self.open.insert(port_guid.0);
                    }
                }
                Event::PartitionsTaken { in_charge: true, waiting, .. } => {
                    is_done = true;
                    self.waits |= waiting > 0;
                    self.hosts.extend(known(simulation, process));
                }
                Event::PartitionsWait { .. } | Event::PartitionsLeftOut { .. } => self.waits = true,
                _ => {}
            }
        }
        is_done
    }

    /// Whether both ports have acknowledged, or are named as cut off.
    pub(super) fn has_both(&self, (one, other): (Guid, Guid)) -> bool {
        let has = |guid| self.hosts.contains(guid) || self.kept.contains(guid) && !self.hosts.is_empty();
        has(&one) && has(&other)
    }

    /// Whether one of the two is named, and its packets of a partition that it is to leave may still pass: those from the one, or to the
    /// other.
    pub(super) fn is_open(&self, (from, to): (Guid, Guid)) -> bool {
        let hears = self.kept.contains(&to) && !self.outbound;
        self.open.contains(&from) || self.open.contains(&to) || hears
    }

    /// Whether one of the two is named.
    pub(super) fn is_kept(&self, (one, other): (Guid, Guid)) -> bool {
        self.kept.contains(&one) || self.kept.contains(&other)
    }

    /// Whether keys wait.
    pub(super) fn waits(&self) -> bool {
        self.waits
    }
}

/// The hosts that a manager knows; none while it sweeps, or when it has ended.
fn known(simulation: &Simulation, process: Process<NodeIndex>) -> Vec<Guid> {
    let options = simulation.options();
    let place = match process {
        Process::Standby(number) => Some(options.standbys[usize::from(number)].port),
        _ => options.sm_port,
    };
    let found = simulation.managers().find(|(port, _)| Some(*port) == place);
    let hosts = |fabric: &Fabric| {
        let ports = fabric.hosts().map(|(node, _)| PortRef::new(node, PortNum(1)));
        ports.map(|port| guid(fabric, port)).collect()
    };
    found.and_then(|(_, manager)| manager.fabric()).map(hosts).unwrap_or_default()
}
