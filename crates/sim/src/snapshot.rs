//! The configuration that the manager has given the devices, and the one that a fresh manager would give.

use std::collections::BTreeMap;

use weft_machine::Time;
use weft_routing::ForwardingTable;
use weft_topology::{NodeIndex, PortRef};
use weft_wire::Lid;

use crate::{Fault, NotQuiet, Process, SimOptions, Simulation, TraceMode};

/// LIDs and tables, of everything within the manager's reach.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Base LID and LMC of each end port.
    pub lids: BTreeMap<PortRef, (Lid, u8)>,
    /// The table of each switch, up to what it looks up.
    pub tables: BTreeMap<NodeIndex, ForwardingTable>,
}

impl Simulation {
    /// The devices' configuration now.
    pub fn snapshot(&self) -> Snapshot {
        let reached = self.reached();
        let end_ports = self.end_ports(&reached).into_iter();
        let lids = end_ports.filter_map(|end| {
            let port = self.port(end)?;
            Some((end, (port.lid, port.lmc)))
        });
        let mut routes = self.live_routes();
        let switches = reached.iter().copied().filter(|node| self.fabric().node(*node).is_switch());
        let tables = switches.map(|node| (node, std::mem::take(&mut routes.tables[node.index()])));
        Snapshot { lids: lids.collect(), tables: tables.collect() }
    }

    /// Their configuration if everything dead or cut here were so from the beginning, nothing else went wrong,
    /// and the manager begins with the `guid2lid` file that it has here.
    pub fn fresh_snapshot(&self, seed: u64, limit: Time) -> Result<Snapshot, NotQuiet> {
        let (sm_port, standbys) = (Some(self.sm_port()), Vec::new());
        let options = SimOptions {
            with_sm: false,
            sm_port,
            standbys,
            trace: TraceMode::Off,
            pack: 1,
            // Each function has the identity that it has here; those that are not plugged in are unplugged.
            empty_slots: false,
            history: false,
            ..self.options().clone()
        };
        let trained = options.sm_start + options.training + options.training_jitter;
        let mut fresh = Simulation::new(self.fabric(), options, seed);
        for (node, _) in self.fabric().iter().filter(|(node, _)| self.device(*node).is_none()) {
            fresh.apply(Fault::Kill(Process::Agent(node)));
        }
        for cable in self.fabric().cables().filter(|cable| !self.is_link_up(cable.a)) {
            fresh.apply(Fault::LinkDown(cable.a));
        }
        fresh.run_until(trained);
        fresh.set_guid2lid(self.guid2lid().clone());
        fresh.apply(Fault::Restart(Process::Sm));
        fresh.run_until_quiet(limit)?;
        Ok(fresh.snapshot())
    }
}
