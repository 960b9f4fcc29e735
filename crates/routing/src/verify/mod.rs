//! Whether tables bring every packet home, shared by all engines and all tests.

use std::fmt;

use serde::Serialize;
use weft_topology::{Fabric, PortRef};
use weft_wire::{Lid, PortNum};

use crate::lids::Lids;
use crate::switches::{SwitchGraph, UNREACHED};
use crate::tables::Routes;
use crate::trace::{TraceError, trace};

/// How many counter-examples a report keeps; it counts the others.
pub const COUNTER_EXAMPLES_MAX: usize = 16;

/// What [`verify`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// How many (switch, LID) pairs were followed: all that cables connect.
    pub pairs: u64,
    /// How many pairs nothing connects.
    pub disconnected: u64,
    /// By number of cables between switches: how many pairs take that many.
    pub hops: Vec<u64>,
    /// How many pairs arrive by more cables than the least possible.
    pub detours: u64,
    /// How many pairs do not arrive: no route, a dead end, a wrong node or a loop.
    pub failures: u64,
    /// The first few of those that do not arrive.
    pub counter_examples: Vec<TraceError>,
    /// How many LIDs belong to ports that no switch is cabled to, so that nothing can be said of them.
    pub unattached: u64,
}

/// A [`Report`] in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ReportSummary {
    /// As in [`Report`].
    pub pairs: u64,
    /// As in [`Report`].
    pub disconnected: u64,
    /// The longest way, in cables between switches.
    pub hops_max: usize,
    /// As in [`Report`].
    pub detours: u64,
    /// As in [`Report`].
    pub failures: u64,
}

/// Follows every LID from every switch: does it arrive wherever cables connect, and by how many cables?
///
/// A host sends first to its switch, so what holds from all switches holds from all hosts.
pub fn verify(fabric: &Fabric, lids: &Lids, routes: &Routes) -> Report {
    let graph = SwitchGraph::new(fabric);
    let mut report = Report::default();
    let mut follower =
        Follower { fabric, routes, graph: &graph, fates: Vec::new(), trail: Vec::new(), lid: Lid(0) };
    let (mut least, mut queue, mut of) = (Vec::new(), Vec::new(), u32::MAX);
    for port_lids in lids.iter() {
        let Some((destination, exit)) = graph.attachment(fabric, port_lids.port) else {
            report.unattached += port_lids.iter().count() as u64;
            continue;
        };
        // Neighbouring LIDs are often of one switch.
        if of != destination {
            graph.hops_to(destination, &mut least, &mut queue);
            of = destination;
        }
        for lid in port_lids.iter() {
            follower.start((destination, exit), port_lids.port, lid);
            for switch in 0..graph.len() as u32 {
                let fate = follower.follow(switch);
                let Some(least) = least.get(switch as usize).copied().filter(|hops| *hops != UNREACHED)
                else {
                    report.disconnected += 1;
                    continue;
                };
                report.pairs += 1;
                match fate {
                    Fate::Arrives(hops) => report.arrival(hops, least),
                    _ => {
                        report.failures += 1;
                        if report.counter_examples.len() < COUNTER_EXAMPLES_MAX {
                            let from = PortRef::new(graph.nodes[switch as usize], PortNum::ZERO);
                            let error = trace(fabric, lids, routes, from, lid).err();
                            report.counter_examples.extend(error);
                        }
                    }
                }
            }
        }
    }
    report
}

impl Report {
    /// Whether every packet arrives.
    pub fn is_sound(&self) -> bool {
        self.failures == 0
    }

    /// Whether every packet arrives by the least number of cables.
    pub fn is_minimal(&self) -> bool {
        self.is_sound() && self.detours == 0
    }

    /// In numbers.
    pub fn summary(&self) -> ReportSummary {
        ReportSummary {
            pairs: self.pairs,
            disconnected: self.disconnected,
            hops_max: self.hops.len().saturating_sub(1),
            detours: self.detours,
            failures: self.failures,
        }
    }

    fn arrival(&mut self, hops: u32, least: u32) {
        let hops_index = hops as usize;
        if self.hops.len() <= hops_index {
            self.hops.resize(hops_index + 1, 0);
        }
        self.hops[hops_index] += 1;
        self.detours += u64::from(hops > least);
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} pairs, {} failures, {} detours", self.pairs, self.failures, self.detours)?;
        for error in &self.counter_examples {
            write!(f, "\n  {error}")?;
        }
        Ok(())
    }
}

/// What becomes of a packet at a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Unknown,
    /// It is being followed, so meeting it again is a loop.
    OnTrail,
    /// It arrives after this many cables between switches.
    Arrives(u32),
    Fails,
}

/// Follows one LID from all switches and passes no switch twice.
struct Follower<'a> {
    fabric: &'a Fabric,
    routes: &'a Routes,
    graph: &'a SwitchGraph,
    fates: Vec<Fate>,
    trail: Vec<u32>,
    lid: Lid,
}

impl Follower<'_> {
    fn start(&mut self, (destination, exit): (u32, PortNum), owner: PortRef, lid: Lid) {
        self.fates.clear();
        for (switch, node) in (0..).zip(&self.graph.nodes) {
            let port = self.routes.port(*node, lid);
            let delivers = match port {
                PortNum::ZERO => switch == destination && exit == port,
                // By whichever port: an HCA could have two cables to one switch, but only one ends at this port.
                _ => self.fabric.peer(PortRef::new(*node, port)) == Some(owner),
            };
            self.fates.push(if delivers { Fate::Arrives(0) } else { Fate::Unknown });
        }
        self.lid = lid;
    }

    /// The switch that `at` sends the LID to.
    fn next(&self, at: u32) -> Option<u32> {
        let node = self.graph.nodes[at as usize];
        let peer = self.fabric.peer(PortRef::new(node, self.routes.port(node, self.lid)))?;
        self.graph.number(peer.node)
    }

    fn follow(&mut self, from: u32) -> Fate {
        self.trail.clear();
        let mut at = from;
        let end = loop {
            match self.fates[at as usize] {
                Fate::Unknown => {}
                Fate::OnTrail | Fate::Fails => break Fate::Fails,
                arrives => break arrives,
            }
            self.fates[at as usize] = Fate::OnTrail;
            self.trail.push(at);
            match self.next(at) {
                Some(next) => at = next,
                None => break Fate::Fails,
            }
        };
        let mut fate = end;
        while let Some(switch) = self.trail.pop() {
            if let Fate::Arrives(hops) = &mut fate {
                *hops += 1;
            }
            self.fates[switch as usize] = fate;
        }
        self.fates[from as usize]
    }
}
