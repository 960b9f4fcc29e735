//! For how long packets that earlier rows have sent are under way: how many switches hold them one after the other.
//!
//! A packet that a switch has taken by a row which was replaced since leaves it within LifeTimeValue (IBA 18.2.5.4), and then goes by the
//! rows in force. So no such packet is left once the switches of the longest of these ways have had their time.

use std::collections::BTreeSet;

use weft_topology::{Fabric, NodeIndex};
use weft_wire::{Lid, PortNum};

use super::change::{Change, NEVER, count_hops};
use super::draft::Draft;
use super::kept::Kept;
use super::network::{Network, Seat};
use super::plan::Plan;
use super::request::Method;
use crate::lids::Lids;
use crate::tables::BLOCK_ENTRIES;
use crate::verify::ground::is_channel;

/// Switches on the longest path of a fat-tree of three levels, for plans that change rows of LIDs which do not move.
const SWITCHES_OF_A_TREE: u32 = 5;

/// Channels with packets that were sent by rows which were replaced, by LID.
type Old = BTreeSet<(Lid, u32)>;

/// Says how long packets are under way before each round that waits for that and after the prompt rounds, and who is silent then.
pub(super) fn measure(kept: &Kept, fabric: &Fabric, draft: &Draft<'_>, plan: &mut Plan, changes: &[Change]) {
    let network = &kept.network;
    let (standing, mut draft, mut old) = (draft.clone(), draft.clone(), Old::new());
    if !plan.rounds.first().is_some_and(|round| round.after_drain) {
        for change in changes {
            old.extend(kept.stale.range((change.lid, 0)..=(change.lid, u32::MAX)));
        }
    }
    let late = plan.late_switches().into_iter().filter_map(|switch| network.graph.number(switch));
    let late: BTreeSet<u32> = late.collect();
    let is_late = |switch: u32| late.contains(&switch);
    let longest = |draft: &Draft<'_>, old: &Old, goal: &dyn Fn(u32) -> bool| {
        let way = |(lid, channel): &(Lid, u32)| {
            let change = changes.iter().find(|change| change.lid == *lid);
            change.map_or(0, |change| hops(network, draft, change, *channel, goal))
        };
        old.iter().map(way).max().unwrap_or(0)
    };
    let prompt = plan.prompt();
    if plan.rounds.iter().take(prompt).skip(1).any(|round| round.after_drain) {
        // The machine is frozen for as long.
        plan.silent = network.graph.nodes.iter().copied().filter(|node| has_hosts(fabric, *node)).collect();
    }
    for at in 0..plan.rounds.len() {
        if at == prompt && plan.silent.is_empty() {
            plan.silent = silent(network, fabric, &standing, &draft, changes);
        }
        if plan.rounds[at].after_drain {
            let some = at == prompt && !late.is_empty();
            plan.rounds[at].drain =
                if some { longest(&draft, &old, &is_late) } else { longest(&draft, &old, &|_| true) };
        }
        write(network, &mut draft, &mut old, &plan.rounds[at].writes, changes);
        if at + 1 == prompt {
            plan.drain = longest(&draft, &old, &|_| true);
        }
    }
    let greatest = |draft: &Draft<'_>, seat: fn(&Change) -> Option<Seat>| {
        let all = changes.iter().filter_map(|change| Some((change.lid, seat(change)?)));
        all.map(|(lid, seat)| longest_path(network, draft, lid, seat)).max().unwrap_or(0)
    };
    plan.drain_broken =
        greatest(&standing, |change| change.before) + greatest(&draft, |change| change.after) + 1;
    if plan.method == Method::Full {
        plan.drain = plan.drain.max(SWITCHES_OF_A_TREE);
        plan.drain_broken = plan.drain_broken.max(SWITCHES_OF_A_TREE);
    }
}

/// How many switches hold packets to LIDs that are held, and those that these have sent, one after the other at most: what such a packet
/// asks for is on its way to the LID when the packet itself has arrived.
pub(super) fn under_way(kept: &Kept, lids: &Lids, draft: &Draft<'_>, changes: &[Change]) -> u32 {
    let network = &kept.network;
    let length = |change: &Change| {
        let Some(seat) = change.before else { return 0 };
        let from = |lid: Lid| {
            let (mut at, mut passed) = (seat.switch, 1);
            while passed < network.len() as u32 {
                let exit = network.exit(at, draft.port(at, lid), &[]);
                if !is_channel(exit) {
                    break;
                }
                (at, passed) = (network.to[exit as usize], passed + 1);
            }
            passed
        };
        let all = lids.iter().flat_map(crate::lids::PortLids::iter);
        longest_path(network, draft, change.lid, seat) + all.map(from).max().unwrap_or(0)
    };
    changes.iter().filter(|change| change.is_live).map(length).max().unwrap_or(0)
}

/// Writes a round, and notes the channels by which the rows led that it replaces.
fn write(
    network: &Network,
    draft: &mut Draft<'_>,
    old: &mut Old,
    writes: &[super::plan::Write],
    changes: &[Change],
) {
    for write in writes {
        let Some(switch) = network.graph.number(write.switch) else { continue };
        let before = draft.block(switch, write.block);
        for change in changes
            .iter()
            .filter(|change| change.is_live && change.lid.0 / BLOCK_ENTRIES as u16 == write.block)
        {
            let place = usize::from(change.lid.0) % BLOCK_ENTRIES;
            let exit = network.exit(switch, before[place], &[change.before, change.after]);
            if before[place] != write.ports[place] && is_channel(exit) {
                old.insert((change.lid, exit));
            }
        }
        draft.write(switch, write.block, write.ports);
    }
}

/// How many switches hold a packet in a channel one after the other, the one that has sent it included, until it comes for the last
/// time to a switch that counts; 0 if it comes to none.
fn hops(
    network: &Network,
    draft: &Draft<'_>,
    change: &Change,
    channel: u32,
    counts: &dyn Fn(u32) -> bool,
) -> u32 {
    let (mut at, mut found) = (network.to[channel as usize], 0);
    for passed in 1..=network.len() as u32 {
        if counts(at) {
            found = passed;
        }
        let exit = network.exit(at, draft.port(at, change.lid), &[change.before, change.after]);
        if !is_channel(exit) {
            break;
        }
        at = network.to[exit as usize];
    }
    found
}

/// How many switches the longest path to a place has.
fn longest_path(network: &Network, draft: &Draft<'_>, lid: Lid, seat: Seat) -> u32 {
    let hops = count_hops(network, &exits(network, draft, lid, seat));
    hops.into_iter().filter(|hops| *hops != NEVER).max().map_or(0, |hops| hops + 1)
}

fn exits(network: &Network, draft: &Draft<'_>, lid: Lid, seat: Seat) -> Vec<u32> {
    let ports = (0..network.len() as u32).map(|switch| (switch, draft.port(switch, lid)));
    ports.map(|(switch, port): (u32, PortNum)| network.exit(switch, port, &[Some(seat)])).collect()
}

/// The switches with hosts that reached a LID before, and do not by the rows that are written.
fn silent(
    network: &Network,
    fabric: &Fabric,
    before: &Draft<'_>,
    now: &Draft<'_>,
    changes: &[Change],
) -> Vec<NodeIndex> {
    let mut silent = BTreeSet::new();
    for change in changes.iter().filter(|change| change.is_live) {
        let (Some(from), Some(to)) = (change.before, change.after) else { continue };
        let reached = count_hops(network, &exits(network, before, change.lid, from));
        let reaches = count_hops(network, &exits(network, now, change.lid, to));
        let lost = (0..).zip(reached.iter().zip(&reaches)).filter(|(_, (a, b))| **a != NEVER && **b == NEVER);
        let nodes = lost.map(|(switch, _): (usize, _)| network.graph.nodes[switch]);
        silent.extend(nodes.filter(|node| has_hosts(fabric, *node)));
    }
    silent.into_iter().collect()
}

fn has_hosts(fabric: &Fabric, switch: NodeIndex) -> bool {
    fabric.node(switch).cabled_ports().any(|(_, peer)| !fabric.node(peer.node).is_switch())
}
