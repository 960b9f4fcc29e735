//! The exact numbers of the vSwitch papers (2017: "000", 2015: "001"), as the agents that receive have counted them. Each test prints what
//! it has compared: `--no-capture` shows it.

#![allow(clippy::print_stdout, clippy::disallowed_macros, reason = "what was compared is read by people")]

use std::collections::BTreeMap;

use rest::{last, quiet};
use vms::{KEY, ask_move, port, writes};
use weft_machine::Time;
use weft_routing::files::LidRange;
use weft_sim::{Fault, Process, SimOptions, Simulation, VmCommand, VmStep};
use weft_sm::{GuidToLid, LidScheme, SwitchLids};
use weft_topology::generate::{GenerateOptions, rlft, xgft};
use weft_topology::{Adapter, Fabric, FabricBuilder, LinkRate, Node, NodeIndex, PortRef, Virtualised};
use weft_wire::*;

use crate::support::rest;
use crate::support::vms;

/// Prints a number of a paper beside what was received, and compares them.
#[track_caller]
fn compare(what: &str, place: &str, wanted: u64, received: u64) {
    println!("{what:<64} {place:<16} {wanted:>6} {received:>6}");
    assert_eq!(received, wanted, "{what} ({place})");
}

fn tree(children: &[u32], parents: &[u32]) -> Fabric {
    xgft(children, parents, &GenerateOptions::default()).unwrap()
}

struct Site {
    simulation: Simulation,
    adapters: Vec<Adapter>,
}

/// What has been received since: blocks of physical switches, those of vSwitches, and how many of each were written.
#[derive(Debug, PartialEq, Eq)]
struct Received {
    physical: u64,
    switches: u64,
    vswitch_smps: u64,
    vswitches: u64,
}

impl Site {
    fn new(physical: &Fabric, vfs: u16, is_dynamic: bool, change: impl FnOnce(&mut SimOptions)) -> Self {
        let mut site = Self::off(physical, vfs, is_dynamic, change);
        site.come_up();
        site
    }

    /// With `is_dynamic` slots are empty, and vSwitches share the LIDs of their physical functions, as table 2 counts.
    fn off(physical: &Fabric, vfs: u16, is_dynamic: bool, change: impl FnOnce(&mut SimOptions)) -> Self {
        let Virtualised { fabric, adapters } = physical.virtualised(vfs).unwrap();
        let mut options = SimOptions { adapters: adapters.clone(), recabling: true, ..SimOptions::default() };
        options.sm.routing.chain = "ftree,no_fallback".parse().unwrap();
        options.sm.keys.sa_key = KEY;
        if is_dynamic {
            options.empty_slots = true;
            (options.sm.vm_lids.scheme, options.sm.vm_lids.switch_lids) =
                (LidScheme::Dynamic, SwitchLids::Shared);
        }
        change(&mut options);
        Self { simulation: Simulation::new(&fabric, options, 1), adapters }
    }

    fn come_up(&mut self) {
        while self.simulation.summaries().last().is_none() {
            assert!(self.simulation.now() < Time::from_secs(20), "it comes up");
            self.pass(Time::from_millis(10));
        }
        assert!(last(&self.simulation).complete, "{:?}", last(&self.simulation));
    }

    fn pass(&mut self, time: Time) {
        self.simulation.run_until(self.simulation.now() + time);
    }

    fn since(&self, before: &BTreeMap<NodeIndex, u64>) -> Received {
        let mut all = Received { physical: 0, switches: 0, vswitch_smps: 0, vswitches: 0 };
        for (node, now) in writes(&self.simulation) {
            let count = now - before.get(&node).copied().unwrap_or(0);
            let (smps, switches) = match self.adapters.iter().any(|adapter| adapter.vswitch == node) {
                true => (&mut all.vswitch_smps, &mut all.vswitches),
                false => (&mut all.physical, &mut all.switches),
            };
            *smps += count;
            *switches += u64::from(count > 0);
        }
        all
    }

    fn vf(&self, host: usize) -> NodeIndex {
        self.adapters[host].vfs[0]
    }

    fn lid(&self, node: NodeIndex) -> Lid {
        self.simulation.device(node).unwrap().port_snapshot(PortNum(1)).unwrap().lid
    }

    fn guid(&self, node: NodeIndex) -> Guid {
        self.simulation.fabric().port(port(node)).unwrap().guid
    }

    /// Physical switches that send packets for two LIDs by different ports, by the tables in force.
    fn differing(&self, a: Lid, b: Lid) -> u64 {
        let routes = self.simulation.live_routes();
        let is_physical = |node: NodeIndex| self.adapters.iter().all(|adapter| adapter.vswitch != node);
        let switches = self.simulation.fabric().switches().filter(|(node, _)| is_physical(*node));
        switches.filter(|(node, _)| routes.port(*node, a) != routes.port(*node, b)).count() as u64
    }

    /// The function of one host goes to another's: its rows are copied with dynamic LIDs, and both swap with prepopulated ones. From a hypervisor
    /// that is not the manager's.
    #[track_caller]
    fn moves(
        &mut self,
        (from, to): (usize, usize),
        method: VmMoveMethod,
        order: VmMoveOrder,
    ) -> (Received, VmMove) {
        let vswitch = |host: usize| self.simulation.fabric().node(self.adapters[host].vswitch).guid;
        let is_swap = self.simulation.options().sm.vm_lids.scheme != LidScheme::Dynamic;
        let partner = if is_swap { self.guid(self.vf(to)) } else { Guid(0) };
        let ask = VmMove {
            kind: if is_swap { VmMoveKind::Swap } else { VmMoveKind::Copy },
            method,
            order,
            from_switch: vswitch(from),
            from_port: PortNum(3),
            to_switch: vswitch(to),
            to_port: PortNum(3),
            guid: self.guid(self.vf(from)),
            partner,
            partner_is_idle: 1,
            hold_s: 600,
            epoch: 1,
            ..VmMove::default()
        };
        let before = writes(&self.simulation);
        let asks = self.adapters[2].pf;
        let (status, answer) = ask_move(&mut self.simulation, asks, &ask).expect("an answer");
        assert_eq!((status, answer.result), (status::OK, VmMoveResult::Done), "{}", answer.reason_text());
        let received = self.since(&before);
        assert_eq!(received.physical, u64::from(answer.physical_smps), "as the manager says");
        assert_eq!(received.vswitches, 2, "the two ends");
        // Packets that are under way are gone when the next one is asked for.
        self.pass(Time::from_secs(6));
        (received, answer)
    }

    /// A machine boots on a host: what is written for it.
    fn boots(&mut self, host: usize) -> Received {
        let (function, before) = (self.vf(host), writes(&self.simulation));
        let slot = self.simulation.slot(function).unwrap();
        let command =
            VmCommand { vm: format!("vm-{host}"), epoch: slot.epoch + 1, step: VmStep::Boot(slot.identity) };
        self.simulation.vm(function, command).unwrap();
        self.pass(Time::from_secs(3));
        assert!(self.lid(function).is_unicast(), "it has its LID");
        self.since(&before)
    }
}

const FTREE: VmMoveMethod = VmMoveMethod::FtreeMinrc;
const ITRC: VmMoveMethod = VmMoveMethod::Itrc;
const ORDERED: VmMoveOrder = VmMoveOrder::Ordered;

/// A tree of table 2: switches, blocks of each switch, SMPs of a full reconfiguration, and of the greatest swap.
type Table2 = (&'static str, Fabric, u64, u64, u64, u64);

/// The trees of table 2 that are simulated. `WEFT_ROWS` says how many have a full reconfiguration (2 if not said; `cargo xtask long` makes 3). The last
/// one, of 11 664 hosts, and the swaps of the third are in `weft-routing`'s tests, without agents.
fn table_2() -> impl Iterator<Item = Table2> {
    let rows = std::env::var("WEFT_ROWS").map_or(2, |text| text.parse().expect("a number"));
    let row = |nth| match nth {
        0 => ("324 hosts", tree(&[18, 18], &[1, 18]), 36, 6, 216, 72),
        1 => ("648 hosts", rlft(36, 2, &GenerateOptions::default()).unwrap(), 54, 11, 594, 108),
        2 => ("5832 hosts", tree(&[18, 18, 18], &[1, 18, 18]), 972, 107, 104_004, 1944),
        _ => panic!("WEFT_ROWS is 1 to 3"),
    };
    (0..rows).map(row)
}

/// Dynamic LIDs, vSwitches with the LIDs of their physical functions, and no machine yet: a full reconfiguration is what the first sweep writes.
#[test]
fn table_2_full_and_a_boot() {
    for (name, fabric, switches, blocks, full, _) in table_2() {
        let mut site = Site::new(&fabric, 1, true, |_| {});
        let all = site.since(&BTreeMap::new());
        compare(&format!("{name}: full reconfiguration, LFT SMPs"), "000:249-255", full, all.physical);
        compare(
            &format!("{name}: blocks of each switch"),
            "000:249-255",
            blocks,
            all.physical / all.switches,
        );
        compare(&format!("{name}: physical switches"), "000:249-255", switches, all.switches);
        let boot = site.boots(7);
        compare(&format!("{name}: a boot, LFT SMPs"), "001:325-330", switches, boot.physical);
        compare(&format!("{name}: a boot, physical switches"), "001:325-330", switches, boot.switches);
        compare(&format!("{name}: a boot, vSwitches"), "section 3", 1, boot.vswitches);
    }
}

/// Prepopulated LIDs: where all switches send by different ports for the two LIDs, and these are in different blocks, each
/// gets two SMPs; in one leaf and one block the leaf's switch gets one.
#[test]
fn table_2_swaps() {
    for (name, fabric, switches, _, _, most) in table_2().take(2) {
        let mut site = Site::new(&fabric, 1, false, |_| {});
        let lid = |site: &Site, host: usize| site.lid(site.vf(host));
        let block = |lid: Lid| lid.0 / 64;
        let from = 4;
        let worst = (20..site.adapters.len()).find(|to| {
            let (a, b) = (lid(&site, from), lid(&site, *to));
            block(a) != block(b) && site.differing(a, b) == switches
        });
        let (received, answer) = site.moves((from, worst.expect("spines differ")), ITRC, ORDERED);
        assert_eq!(answer.made_by, ITRC, "{}", answer.reason_text());
        compare(&format!("{name}: greatest swap, LFT SMPs"), "000:249-255", most, received.physical);
        compare(&format!("{name}: greatest swap, switches"), "000:249-255", switches, received.switches);
        let near = (8..17).find(|host| block(lid(&site, *host)) == block(lid(&site, host + 1)));
        let near = near.expect("LIDs of a leaf follow each other");
        let (received, _) = site.moves((near, near + 1), FTREE, ORDERED);
        compare(&format!("{name}: smallest swap, LFT SMPs"), "000:271", 1, received.physical);
    }
}

/// Children, parents, hosts, switches, those written across, and within a pod: to which host, and how many.
type Row = (&'static [u32], &'static [u32], u64, u64, u64, Option<(usize, u64)>);

/// The paper writes the highest level first: XGFT(3; 8,4,4; 4,4,1) is this with children 4, 4, 8. The last two have 1728 and 3392
/// nodes here: `WEFT_TREES` says how many trees (4 if not said; `cargo xtask long` makes 6). All six are planned in `weft-routing`'s tests.
#[test]
fn table_4_across_and_in_a_pod() {
    let rows: [Row; 6] = [
        (&[4, 8], &[1, 4], 32, 12, 6, None),
        (&[8, 8], &[1, 8], 64, 16, 10, None),
        (&[4, 4, 8], &[1, 4, 4], 128, 80, 26, Some((4, 6))),
        (&[16, 16], &[1, 16], 256, 32, 18, None),
        (&[8, 8, 8], &[1, 8, 8], 512, 192, 82, Some((8, 10))),
        (&[8, 8, 16], &[1, 8, 8], 1024, 320, 82, Some((8, 10))),
    ];
    let trees = std::env::var("WEFT_TREES").map_or(4, |text| text.parse().expect("a number"));
    rows.into_iter().take(trees).for_each(|row| table_4(row.0, row.1, (row.2, row.3, row.4), row.5));
}

fn table_4(
    children: &[u32],
    parents: &[u32],
    (hosts, switches, across): (u64, u64, u64),
    pod: Option<(usize, u64)>,
) {
    let fabric = tree(children, parents);
    let counts = fabric.counts();
    assert_eq!((counts.hosts as u64, counts.switches as u64), (hosts, switches));
    let mut site = Site::new(&fabric, 1, false, |_| {});
    let (received, _) = site.moves((1, hosts as usize - 1), FTREE, ORDERED);
    compare(&format!("{hosts} hosts, across: switches of {switches}"), "000:290", across, received.switches);
    if let Some((to, wanted)) = pod {
        let (received, _) = site.moves((0, to), FTREE, ORDERED);
        compare(&format!("{hosts} hosts, in a pod: switches"), "000:290", wanted, received.switches);
    }
    let leaf = children[0] as usize;
    let (received, _) = site.moves((2 * leaf, 2 * leaf + 1), FTREE, ORDERED);
    compare(&format!("{hosts} hosts, in a leaf: switches"), "000:200", 1, received.switches);
}

/// Twelve switches. A machine has the rows of its hypervisor, and ItRC writes each switch whose rows for the two hypervisors
/// differ: printed are 6, of which nothing says how they are routed.
#[test]
fn figures_3_and_5() {
    let mut site = Site::new(&tree(&[2, 2, 2], &[1, 2, 2]), 1, false, |_| {});
    for (from, to, wanted) in [(0, 1, 1), (2, 5, 10), (3, 6, 10)] {
        let (received, _) = site.moves((from, to), FTREE, ORDERED);
        compare(&format!("figure 3, FTreeMinRC, host {from} to {to}"), "000:200", wanted, received.switches);
    }
    let mut site = Site::new(&tree(&[2, 2, 2], &[1, 2, 2]), 1, false, |_| {});
    let (received, _) = site.moves((0, 2), FTREE, ORDERED);
    compare("figure 3, FTreeMinRC, within a pod", "000:200", 4, received.switches);
    let mut site = Site::new(&tree(&[2, 2, 2], &[1, 2, 2]), 1, true, |_| {});
    site.boots(0);
    let [a, b] = [0, 1].map(|host| site.lid(site.adapters[host].pf));
    let differing = site.differing(a, b);
    let (received, _) = site.moves((0, 1), ITRC, ORDERED);
    compare("figure 3, ItRC in a leaf: rows that differ", "000:200", differing, received.switches);
    compare("figure 3, ItRC in a leaf: as printed", "000:200", 6, received.switches);
    let mut site = Site::new(&tree(&[2, 2, 2, 2], &[1, 2, 2, 2]), 1, true, |_| {});
    site.boots(0);
    let (received, _) = site.moves((0, 6), FTREE, ORDERED);
    compare("figure 5: marked and written of 32 switches", "000:241", 10, received.switches);
}

/// Three switches in a row, the upper one in the middle; hypervisors 1 and 2 at the lower one have LIDs 1 to 4 and 5 to 8, hypervisor 3
/// has `third` and those after it.
fn figure(third: u16) -> Site {
    let mut builder = FabricBuilder::new();
    let mut add = |kind, guid: u64, ports| {
        builder.add_node(Node::new(kind, Guid(guid), ports, LinkRate::default())).unwrap()
    };
    let [lower, upper, right] = [1, 2, 3].map(|guid| add(NodeType::Switch, guid << 8, 4));
    let hosts = [11, 12, 13].map(|guid| add(NodeType::Hca, guid << 8, 1));
    let mut cable = |a: (NodeIndex, u8), b: (NodeIndex, u8)| {
        let [a, b] = [a, b].map(|(node, port)| PortRef::new(node, PortNum(port)));
        builder.connect(a, b).unwrap();
    };
    cable((upper, 2), (lower, 4));
    cable((upper, 4), (right, 4));
    cable((lower, 1), (hosts[0], 1));
    cable((lower, 2), (hosts[1], 1));
    cable((right, 1), (hosts[2], 1));
    let engine = |options: &mut SimOptions| {
        options.sm.routing.chain = "minhop,no_fallback".parse().unwrap();
        options.sm.vm_lids.switch_lids = SwitchLids::Shared;
    };
    let mut site = Site::off(&builder.build(), 3, false, engine);
    let mut known = GuidToLid::default();
    for (adapter, first) in site.adapters.iter().zip([1, 5, third]) {
        let mut vfs = adapter.vfs.clone();
        if first == third {
            // The first function has the last LID, so that LID 2 is swapped with 12.
            vfs.reverse();
        }
        let functions = std::iter::once(adapter.pf).chain(vfs);
        for (lid, function) in (first..).zip(functions) {
            known.insert(site.guid(function), LidRange { min: Lid(lid), max: Lid(lid) });
        }
    }
    site.simulation.apply(Fault::Kill(Process::Sm));
    site.simulation.set_guid2lid(known);
    site.simulation.apply(Fault::Restart(Process::Sm));
    quiet(&mut site.simulation);
    site
}

/// A machine with LID 2 on hypervisor 1 moves to where another LID is.
#[test]
fn swaps_of_lid_2() {
    for (third, host, with, wanted, how) in [
        (9, 2, 12, 1, "12, in its block"),
        (64, 2, 67, 2, "one at least 64 apart"),
        (9, 1, 6, 0, "one behind the same port"),
    ] {
        let mut site = figure(third);
        assert_eq!((site.lid(site.vf(0)), site.lid(site.vf(host))), (Lid(2), Lid(with)));
        let upper = site.simulation.fabric().by_guid(Guid(2 << 8)).unwrap();
        let before = writes(&site.simulation)[&upper];
        site.moves((0, host), ITRC, ORDERED);
        let received = writes(&site.simulation)[&upper] - before;
        compare(
            &format!("swap of LID 2 with {how}: SMPs to the upper switch"),
            "001:385-403, 504",
            wanted,
            received,
        );
    }
}

/// Port 255 first, and then the new row: as many SMPs more as switches are written.
#[test]
fn dropping_first() {
    for (to, wanted) in [(5, 1), (13, 4)] {
        let [ordered, dropping] = [ORDERED, VmMoveOrder::DropFirst].map(|order| {
            let mut site = Site::new(&tree(&[4, 4], &[1, 2]), 1, false, |_| {});
            let (received, answer) = site.moves((4, to), FTREE, order);
            assert_eq!((answer.made_in, received.switches), (order, wanted));
            received.physical
        });
        compare(&format!("drop-first, {wanted} switches: SMPs more"), "001:578", wanted, dropping - ordered);
    }
}
