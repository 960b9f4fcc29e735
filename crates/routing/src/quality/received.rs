//! The share of all that hosts receive which the busiest link carries.

use std::collections::{BTreeMap, BTreeSet};

use weft_topology::{NodeIndex, PortRef};
use weft_wire::{Guid, PortNum};

use super::participants::hosts;
use super::paths::Paths;
use super::survey::{Receiver, weighted_flows};
use crate::collapse::VSwitch;

/// The unit of shares while they are added up: with a million million of them and a pair for every two LIDs, sums have room.
const WHOLE: u128 = 1_000_000_000_000;

/// The greatest load of a link between switches, in billionths of all that the hosts have received: what is behind the link by
/// the tables, each host's count in equal parts from all other hosts. 0 where nothing was received.
///
/// Cables to hosts and to vSwitches count for nothing, since no routing changes what they carry. `received` is by port GUID, in
/// any unit; a port with several LIDs has received as much with each. The cost is that of [`super::survey`].
pub fn busiest_share(paths: &Paths<'_>, vswitches: &[VSwitch], received: &BTreeMap<Guid, u64>) -> u32 {
    let (fabric, lids) = (paths.fabric, paths.lids);
    let count = |port: PortRef| {
        let guid = fabric.port(port).map(|found| found.guid).filter(|_| port.port != PortNum::ZERO);
        guid.and_then(|guid| received.get(&guid)).copied().unwrap_or(0)
    };
    let all: u128 = lids.iter().map(|lids| u128::from(count(lids.port))).sum();
    let senders: Vec<_> = hosts(fabric, lids).iter().filter_map(|lid| paths.endpoint(*lid)).collect();
    if all == 0 || senders.len() < 2 {
        return 0;
    }
    let mut receivers = Vec::new();
    for of_port in lids.iter() {
        let share = u128::from(count(of_port.port)) * WHOLE / all;
        let each = share as u64 / of_port.iter().count().max(1) as u64;
        let ends = of_port.iter().filter_map(|lid| paths.endpoint(lid));
        receivers.extend(ends.filter(|_| each > 0).map(|to| Receiver { to, weight: each }));
    }
    let inner: BTreeSet<NodeIndex> = vswitches.iter().map(|vswitch| vswitch.node).collect();
    let counts = |link: u32| {
        let ends = paths.between_switches(link);
        ends.is_some_and(|(from, to)| !inner.contains(&from) && !inner.contains(&to))
    };
    let flows = weighted_flows(paths, &senders, receivers);
    let links = (0..).zip(&flows).filter(|(link, _)| counts(*link));
    let busiest = links.map(|(_, flows)| *flows).max().unwrap_or(0);
    // From all others, and in billionths.
    (busiest / (senders.len() as u64 - 1) / 1000) as u32
}
