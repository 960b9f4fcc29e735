//! The record of one heavy sweep: its phases, their times, and what came of it.

use std::collections::BTreeSet;

use weft_machine::Time;
use weft_topology::LinkRate;
use weft_wire::{NodeType, PortNum};

use crate::knowledge::{FoundPort, PortAt, Subnet};
use crate::{Event, PhaseTime, SmpCounts, Summary, SweepPhase};

/// A heavy sweep under way.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    began: Time,
    /// Since when the phase that is on is on, and how many SMPs had been sent before.
    clock: Option<(SweepPhase, Time, u64)>,
    phases: Vec<PhaseTime>,
    retries_before: u64,
    /// Requests that no one answered.
    unanswered: u32,
    /// Errors in answers, where nothing else stands in for what was asked.
    refused: u32,
    /// Whether no tables could be computed.
    pub(super) unrouted: bool,
    /// It does not keep the tables that stand.
    pub(super) afresh: bool,
    /// The nodes that a repair has to do with; `None` where it is no repair.
    pub(super) touched: Option<BTreeSet<u32>>,
    /// Whether it finds out who is where. A repair takes that from what is known.
    pub(super) discovers: bool,
    /// Whether it writes P_Keys alone.
    pub(super) is_of_keys: bool,
}

impl Sweep {
    /// A heavy sweep that replaces tables even if they are as good as new ones, or keeps them then.
    pub(super) fn begin(now: Time, retries: u64, afresh: bool) -> Self {
        Self { began: now, retries_before: retries, afresh, discovers: true, ..Self::default() }
    }

    /// The repair of cables at these nodes.
    pub(super) fn repair(now: Time, retries: u64, touched: BTreeSet<u32>) -> Self {
        Self { touched: Some(touched), discovers: false, ..Self::begin(now, retries, false) }
    }

    /// Other P_Keys, at nodes where nothing else has changed.
    pub(super) fn of_keys(now: Time, retries: u64) -> Self {
        Self { is_of_keys: true, ..Self::repair(now, retries, BTreeSet::new()) }
    }

    /// Ends the phase that is on and begins the next one.
    pub(super) fn enter(&mut self, now: Time, phase: Option<SweepPhase>, smps: u64) -> Vec<Event> {
        let mut events = Vec::new();
        if let Some((phase, since, smps_before)) = self.clock.take() {
            let done = PhaseTime { phase, took: now.saturating_sub(since), smps: smps - smps_before };
            self.phases.push(done);
            events.push(Event::PhaseDone(done));
        }
        if let Some(phase) = phase {
            self.clock = Some((phase, now, smps));
            events.push(Event::PhaseStarted { phase });
        }
        events
    }

    /// Whether this phase is on.
    pub(super) fn is_in(&self, phase: SweepPhase) -> bool {
        self.clock.is_some_and(|(on, ..)| on == phase)
    }

    /// Takes down what a step came to.
    pub(super) fn note(&mut self, unanswered: u32, refused: u32) {
        self.unanswered += unanswered;
        self.refused += refused;
    }

    /// Whether it is a repair, of which all SMPs have not been answered yet.
    pub(super) fn is_repair(&self) -> bool {
        self.touched.is_some()
    }

    pub(super) fn summary(&self, now: Time, subnet: &Subnet, smps: SmpCounts, retries: u64) -> Summary {
        let count = |wanted: fn(NodeType) -> bool| {
            subnet.nodes.iter().filter(|node| wanted(node.info.node_type)).count() as u32
        };
        let cabled = subnet.cabled_ports().count() as u32;
        let ports_active = subnet.ports_active();
        let ports_silent = subnet.silent_ports().count() as u32;
        let lids = subnet.end_ports().filter(|(_, port)| port.lid.is_some()).count() as u32;
        let ports_refused = cabled - ports_active;
        let ports_left_out = left_out(subnet).count() as u32;
        let ports_without_lid = subnet.end_ports().filter(|(_, port)| !has_its_lid(port)).count() as u32;
        let (unanswered, refused) = (self.unanswered, self.refused);
        Summary {
            switches: count(|kind| kind == NodeType::Switch),
            hosts: count(|kind| kind == NodeType::Hca),
            others: count(|kind| !matches!(kind, NodeType::Switch | NodeType::Hca)),
            cables: cabled / 2,
            cables_degraded: degraded(subnet),
            lids,
            ports_active,
            ports_silent,
            ports_refused,
            ports_left_out,
            ports_without_lid,
            unanswered,
            refused,
            smps,
            retries: retries - self.retries_before,
            took: now.saturating_sub(self.began),
            phases: self.phases.clone(),
            sweeps: 0,
            complete: !self.is_lacking(ports_refused + ports_left_out + ports_without_lid)
                && ports_silent == 0,
        }
    }

    /// Whether a heavy sweep may do better: a light one asks only those who were silent.
    pub(super) fn is_lacking(&self, ports: u32) -> bool {
        self.unanswered > 0 || self.refused > 0 || self.unrouted || ports > 0
    }
}

/// Cables whose link runs at a lower rate than both of its ports can do.
fn degraded(subnet: &Subnet) -> u32 {
    let cables = subnet.cabled_ports().filter(|(at, _, peer)| at < peer);
    let is_degraded = |(_, port, peer): &(PortAt, &FoundPort, PortAt)| {
        let ends = port.info.as_ref().zip(subnet.port(*peer).and_then(|peer| peer.info.as_ref()));
        ends.is_some_and(|(a, b)| LinkRate::better(a, b).is_some())
    };
    cables.filter(is_degraded).count() as u32
}

/// Ports with a link that leads to no node of the subnet, though somebody is there: he would not say who he is, or
/// what he said cannot be.
fn left_out(subnet: &Subnet) -> impl Iterator<Item = PortAt> {
    subnet.iter().flat_map(|(node, found)| {
        let ports = (1u8..=u8::MAX).map(PortNum).zip(found.ports.iter().skip(1));
        let left_out = ports.filter(|(_, port)| port.is_up() && port.peer.is_none() && !port.silent);
        left_out.map(move |(port, _)| PortAt { node, port })
    })
}

/// Whether an end port says that it has the LID that it was given.
fn has_its_lid(port: &FoundPort) -> bool {
    port.lid.is_some_and(|lids| port.info.is_some_and(|info| info.lid == lids.min))
}
