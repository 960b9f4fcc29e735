//! Routing that learns from what hosts receive (Zahid 2016, section 7, line 529: weights are learned after a period).
//!
//! ```text
//!  report ─▶ idle? ─▶ weights and order by it ─▶ tables ─▶ the busiest link by both ─▶ a tenth less? ─▶ heavy sweep
//!                                                                                         └ no: all stays ─▶ event
//! ```
//!
//! Weights that were taken stay until others are, so that later sweeps compute the same tables.
//!
//! A manager that has restarted or taken over has learned nothing, and leaves alone tables that hold. The report that the manager before
//! had is repeated to it: by that it goes on, if tables would be no worse. None is written for it; the next full routing is by it.

use std::collections::{BTreeMap, BTreeSet};

use weft_machine::Time;
use weft_routing::Routes;
use weft_routing::quality::{Paths, busiest_share};
use weft_wire::Guid;

use super::SubnetManager;
use crate::knowledge::{Learned, PortAt, Subnet, graph_port};
use crate::sa::Received;
use crate::sweep::route;
use crate::{Event, Reason};

/// How long to wait for machines that are on their way, and for the subnet to come up.
const LATER: Time = Time::from_secs(1);

/// Tables are taken if the busiest link carries at most this share of what it carries by those in force, in percent. A little less
/// is not worth the writes, and with every change of traffic tables would change back and forth.
const TAKEN_BELOW: u64 = 90;

/// A report that is to be weighed, and what routing has learned.
#[derive(Debug, Default)]
pub(super) struct Learning {
    report: Option<Received>,
    pub(super) learned: Learned,
    /// Whether it was learned by the manager before: tables in force need not be by it.
    is_inherited: bool,
    /// Whether the next tables replace those that stand.
    pub(super) is_new: bool,
}

/// What tables by a report come to.
struct Weighed {
    learned: Learned,
    hosts: u32,
    /// The share of the busiest link by the tables in force and by the new ones, in billionths.
    before: u32,
    after: Option<u32>,
}

impl Weighed {
    /// Whether tables would be no worse.
    fn holds(&self) -> bool {
        self.after.is_some_and(|after| after <= self.before)
    }

    fn is_taken(&self) -> bool {
        let is_less = |after: u32| u64::from(after) * 100 <= u64::from(self.before) * TAKEN_BELOW;
        self.before > 0 && self.after.is_some_and(is_less)
    }
}

impl SubnetManager {
    /// Takes a report of subnet administration's that is complete. A later one takes the place of one that waits.
    pub(super) fn take_report(&mut self, now: Time) {
        if let Some(report) = self.sa.take_report() {
            self.learning.report = Some(report);
            self.agenda.learn(now);
        }
    }

    /// Weighs tables by the report that waits.
    pub(super) fn learn(&mut self, now: Time) {
        if self.desk.is_anyone_away() || self.desk.late.is_any() || !self.known.is_up {
            return self.agenda.learn(now + LATER);
        }
        let Some(report) = self.learning.report.take() else { return };
        let Some(weighed) = self.weigh_report(&report.bytes) else { return };
        let goes_on = report.is_repeated && self.learning.learned == Learned::default() && weighed.holds();
        let (is_taken, Weighed { hosts, before, after, learned }) = (weighed.is_taken(), weighed);
        self.tally.weighed(is_taken, before, after);
        self.say(Event::ReceivedWeighed { hosts, before, after, is_taken });
        if is_taken {
            (self.learning.learned, self.learning.is_new) = (learned, true);
            self.learning.is_inherited = false;
            self.agenda.heavy(now, Reason::Received);
        } else if goes_on {
            (self.learning.learned, self.learning.is_inherited) = (learned, true);
        }
    }

    /// `None` where no tables are in force.
    fn weigh_report(&mut self, report: &BTreeMap<Guid, u64>) -> Option<Weighed> {
        let is_inherited = self.learning.is_inherited;
        let subnet = self.known.subnet.as_mut()?;
        let (by_port, by_host) = counts(subnet, report);
        let before = share(subnet, &subnet.routed.routing()?.routes, &by_port);
        let learned = Learned::from(&by_host, &self.options);
        let hosts = by_host.len() as u32;
        if learned == subnet.learned && !is_inherited {
            return Some(Weighed { learned, hosts, before, after: Some(before) });
        }
        let in_force = std::mem::replace(&mut subnet.learned, learned.clone());
        let computed = route(subnet, &self.options, Some(&mut self.known.paths));
        subnet.learned = in_force;
        let after = computed.ok().map(|computed| share(subnet, &computed.routing.routes, &by_port));
        Some(Weighed { learned, hosts, before, after })
    }
}

/// The counts of ports that are there, and the same by host: what virtual functions receive is their host's.
fn counts(subnet: &Subnet, report: &BTreeMap<Guid, u64>) -> (BTreeMap<Guid, u64>, BTreeMap<Guid, u64>) {
    let functions = subnet.adapters.vswitches.iter().flat_map(|vswitch| {
        let host = vswitch.functions.first().map(|(_, host)| *host);
        vswitch.functions.iter().filter_map(move |(_, port)| Some((*port, host?)))
    });
    let hosts: BTreeMap<_, _> = functions.collect();
    let guid = |port| subnet.fabric.port(port).map(|port| port.guid);
    let (mut by_port, mut by_host) = (BTreeMap::new(), BTreeMap::new());
    let is_host = |at: &PortAt| subnet.node(at.node).is_some_and(|node| !node.is_switch());
    let mut seen = BTreeSet::new();
    for (at, _) in subnet.end_ports().filter(|(at, _)| is_host(at)) {
        let port = graph_port(at);
        let Some(own) = guid(port).filter(|own| seen.insert(*own)) else { continue };
        let Some(bytes) = report.get(&own) else { continue };
        by_port.insert(own, *bytes);
        let host = hosts.get(&port).and_then(|host| guid(*host)).unwrap_or(own);
        let sum: &mut u64 = by_host.entry(host).or_default();
        *sum = sum.saturating_add(*bytes);
    }
    (by_port, by_host)
}

fn share(subnet: &Subnet, routes: &Routes, received: &BTreeMap<Guid, u64>) -> u32 {
    let paths = Paths::new(&subnet.fabric, &subnet.routed.lids, routes);
    busiest_share(&paths, &subnet.adapters.vswitches, received)
}
