//! The manager moves LIDs between virtual functions, asked over the fabric; the switches count what they receive.

use std::collections::BTreeMap;

use rest::{last, quiet};
use vms::{KEY, ask_move, writes};
use weft_machine::Time;
use weft_sim::{Fault, Process, SimOptions, Simulation};
use weft_topology::generate::{GenerateOptions, xgft};
use weft_topology::{NodeIndex, Virtualised};
use weft_wire::*;

use crate::support::rest;
use crate::support::vms;

struct Site {
    simulation: Simulation,
    fabric: Virtualised,
}

impl Site {
    fn new(children: &[u32], parents: &[u32], seed: u64) -> Self {
        let fabric = xgft(children, parents, &GenerateOptions::default()).unwrap().virtualised(1).unwrap();
        let mut options = SimOptions::default();
        options.sm.routing.chain = "ftree,no_fallback".parse().unwrap();
        options.sm.keys.sa_key = KEY;
        let mut simulation = Simulation::new(&fabric.fabric, options, seed);
        quiet(&mut simulation);
        Self { simulation, fabric }
    }

    /// The functions of two hosts change places.
    fn swap(&self, from: usize, to: usize, hold_s: u16) -> VmMove {
        let Virtualised { fabric, adapters } = &self.fabric;
        let guid = |host: usize| fabric.node(adapters[host].vfs[0]).port(PortNum(1)).unwrap().guid;
        let switch = |host: usize| fabric.node(adapters[host].vswitch).guid;
        VmMove {
            kind: VmMoveKind::Swap,
            from_switch: switch(from),
            from_port: PortNum(3),
            to_switch: switch(to),
            to_port: PortNum(3),
            guid: guid(from),
            partner: guid(to),
            partner_is_idle: 1,
            hold_s,
            epoch: 1,
            ..VmMove::default()
        }
    }

    /// From a hypervisor that is not the manager's.
    fn ask(&mut self, ask: &VmMove) -> Option<(u16, VmMove)> {
        ask_move(&mut self.simulation, self.fabric.adapters[2].pf, ask)
    }

    /// Physical switches and vSwitches that have been written since.
    fn written(&self, before: &BTreeMap<NodeIndex, u64>) -> (usize, usize) {
        let now = writes(&self.simulation);
        let written = before.iter().filter(|(node, writes)| now[*node] > **writes).map(|(node, _)| *node);
        let is_virtual = |node: &NodeIndex| self.fabric.adapters.iter().any(|one| one.vswitch == *node);
        let (inner, outer): (Vec<_>, Vec<_>) = written.partition(is_virtual);
        (outer.len(), inner.len())
    }
}

/// Within a leaf one physical switch, across the tree two leaves and all spines (vSwitch paper of 2017, 6.2), and no other.
#[test]
fn switches_receive_what_the_plan_says_and_no_other() {
    for (from, to, physical) in [(4, 5, 1), (4, 13, 4)] {
        let mut site = Site::new(&[4, 4], &[1, 2], 1);
        let (first, before, sum) =
            (site.simulation.snapshot(), writes(&site.simulation), site.simulation.lft_writes());
        let (status, answer) = site.ask(&site.swap(from, to, 2)).expect("an answer");
        assert_eq!((status, answer.result), (status::OK, VmMoveResult::Done), "{}", answer.reason_text());
        assert_eq!(site.written(&before), (physical, 2));
        let smps = u64::from(answer.physical_smps + answer.vswitch_smps);
        assert_eq!(site.simulation.lft_writes() - sum, smps);
        assert_ne!(site.simulation.snapshot(), first);
        // No one carries the machine over: the function is where it was, so that a sweep leads its packets there again.
        quiet(&mut site.simulation);
        assert_eq!(site.simulation.snapshot(), first, "{from} to {to}");
    }
}

/// The manager is killed at one moment of a move after the other, and the next one heals what it finds.
#[test]
fn a_sweep_alone_heals_a_move_that_was_cut_off() {
    let mut halves = 0;
    for step in 0..12 {
        let mut site = Site::new(&[4, 4], &[1, 2], 7);
        let (first, before) = (site.simulation.snapshot(), site.simulation.lft_writes());
        let now = site.simulation.now();
        site.simulation.fault_at(now + Time::from_micros(20 * step), Fault::Kill(Process::Sm));
        site.ask(&site.swap(4, 13, 2));
        let writes = site.simulation.lft_writes() - before;
        // Two leaves, two spines and two vSwitches, one block each.
        halves += u32::from((1..6).contains(&writes));
        site.simulation.run_until(now + Time::from_millis(10));
        site.simulation.apply(Fault::Restart(Process::Sm));
        quiet(&mut site.simulation);
        assert!(last(&site.simulation).complete);
        assert_eq!(site.simulation.snapshot(), first, "killed after {step} steps and {writes} writes");
    }
    assert!(halves > 0, "some were cut off half way");
}
