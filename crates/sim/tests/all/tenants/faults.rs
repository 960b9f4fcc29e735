//! Faults beside changes of partitions: one of a kind at a time, each of which lasts until another draw ends it.

use std::collections::BTreeSet;

use rand::RngExt;
use rand_pcg::Pcg64;
use weft_fault::{Impaired, Impairment, Way, Word};
use weft_sim::{Fault, Process, Simulation};
use weft_topology::{Fabric, NodeIndex, PortRef};

use crate::support::counts::Counts;

/// Shares of packets that a bad cable loses. Of ten packets, all are lost once in millions of seeds.
const LOSSES: [&str; 3] = ["5%", "10%", "20%"];

/// Kinds of faults that last: a dead host, a dead switch, a cut cable, a bad cable, a frozen host, a frozen switch and a frozen manager.
const KINDS: usize = 7;
const FROZEN_MANAGER: usize = 6;

/// What can go wrong, and what does now.
pub(super) struct Faults {
    /// Hosts that die and freeze.
    hosts: Vec<PortRef>,
    /// Switches that die and freeze.
    switches: Vec<NodeIndex>,
    /// Cables that are cut and lose packets: those of these hosts, and those between switches.
    cables: Vec<PortRef>,
    /// By kind, the fault that lasts.
    lasting: [Option<Fault>; KINDS],
    /// Hosts that died or began again since they were asked for.
    pub(super) restarted: BTreeSet<PortRef>,
}

impl Faults {
    pub(super) fn of(fabric: &Fabric, hosts: &[PortRef], switches: &[NodeIndex]) -> Self {
        let is_switch = |node: NodeIndex| fabric.node(node).is_switch();
        let cables =
            fabric.cables().filter_map(|cable| match (is_switch(cable.a.node), is_switch(cable.b.node)) {
                (true, true) => Some(cable.a),
                _ => [cable.a, cable.b].into_iter().find(|end| hosts.contains(end)),
            });
        Self {
            cables: cables.collect(),
            hosts: hosts.to_vec(),
            switches: switches.to_vec(),
            lasting: Default::default(),
            restarted: BTreeSet::new(),
        }
    }

    /// The cable that loses packets now, by one of its ends.
    pub(super) fn bad_cable(&self) -> Option<PortRef> {
        self.lasting.iter().flatten().find_map(|fault| match fault {
            Fault::Impair(impaired) => Some(impaired.at),
            _ => None,
        })
    }

    /// A manager dies or begins again, or a fault begins or ends.
    pub(super) fn draw(&mut self, random: &mut Pcg64, simulation: &mut Simulation, counts: &mut Counts) {
        let kind = random.random_range(0..KINDS + 2);
        if kind < KINDS {
            if self.lasting[kind].is_some() {
                return self.end(kind, simulation);
            }
            let (name, fault) = self.drawn(kind, random, simulation);
            // A node is in one fault at a time.
            let node = |fault: &Fault| match fault {
                Fault::Kill(Process::Agent(node)) | Fault::Freeze(Process::Agent(node)) => Some(*node),
                _ => None,
            };
            let taken =
                self.lasting.iter().flatten().filter_map(node).any(|other| Some(other) == node(&fault));
            if !taken {
                self.note(&fault);
                simulation.apply(fault.clone());
                self.lasting[kind] = Some(fault);
                counts.one(name);
            }
            return;
        }
        // A frozen manager goes on before anything else befalls managers.
        self.end(FROZEN_MANAGER, simulation);
        if kind == KINDS {
            simulation.apply(Fault::Kill(simulation.master().unwrap_or(Process::Sm)));
            counts.one("manager deaths");
        } else {
            simulation.apply(Fault::Restart(Process::Sm));
            simulation.apply(Fault::Restart(Process::Standby(0)));
            counts.one("restarts");
        }
    }

    fn drawn(&self, kind: usize, random: &mut Pcg64, simulation: &Simulation) -> (&'static str, Fault) {
        let host = self.hosts[random.random_range(0..self.hosts.len())];
        let switch = self.switches[random.random_range(0..self.switches.len())];
        let cable = self.cables[random.random_range(0..self.cables.len())];
        match kind {
            0 => ("host deaths", Fault::Kill(Process::Agent(host.node))),
            1 => ("switch deaths", Fault::Kill(Process::Agent(switch))),
            2 => ("cut cables", Fault::LinkDown(cable)),
            3 => {
                let share = LOSSES[random.random_range(0..LOSSES.len())];
                let how = Impairment::of(Word::Loss, share).expect("a share");
                let seed = random.random();
                ("bad cables", Fault::Impair(Impaired { at: cable, way: Way::Both, how, seed }))
            }
            4 => ("frozen hosts", Fault::Freeze(Process::Agent(host.node))),
            5 => ("frozen switches", Fault::Freeze(Process::Agent(switch))),
            _ => ("frozen managers", Fault::Freeze(simulation.master().unwrap_or(Process::Sm))),
        }
    }

    fn note(&mut self, fault: &Fault) {
        if let Fault::Kill(Process::Agent(node)) = fault {
            self.restarted.extend(self.hosts.iter().filter(|host| host.node == *node));
        }
    }

    fn end(&mut self, kind: usize, simulation: &mut Simulation) {
        let Some(fault) = self.lasting[kind].take() else { return };
        self.note(&fault);
        simulation.apply(fault.end().expect("it lasts"));
    }

    /// All faults end.
    pub(super) fn end_all(&mut self, simulation: &mut Simulation) {
        (0..KINDS).for_each(|kind| self.end(kind, simulation));
    }
}
