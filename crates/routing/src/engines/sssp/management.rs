//! Paths that no host sends data by: to switches, and from switches that are on no path between hosts. They need no
//! balance, so they go where they need no further lane.

use weft_wire::PortNum;

use super::dependencies::Numbering;
use super::lane::Lane;
use super::network::Network;
use super::paths::{NO_WAY, Paths, Shortest};

/// Chooses these paths anew, nearest switch first: each takes the first of its shortest ways that adds nothing to the
/// lane, or else the first that closes no cycle on it. Where there is none the path stays as it was.
pub(super) fn settle(network: &Network, numbering: &Numbering, paths: &mut Paths, lane: &mut Lane) {
    let mut ways = vec![NO_WAY; network.len()];
    let mut carries = vec![false; network.len()];
    // Whether the lane has the whole path of a switch.
    let mut within = vec![false; network.len()];
    let mut target = 0;
    for run in network.targets.chunk_by(|one, other| one.switch == other.switch) {
        let destination = run[0].switch as usize;
        let tree = Shortest::to(network, run[0].switch);
        for receiver in run {
            carries.fill(false);
            for &(switch, _) in tree.switches.iter().rev() {
                let way = paths.way(network, switch, target);
                ways[switch as usize] = way;
                let sends = receiver.port != PortNum::ZERO && network.hosts[switch as usize] > 0;
                carries[switch as usize] |= sends;
                carries[network.to[way as usize] as usize] |= carries[switch as usize];
            }
            (ways[destination], within[destination]) = (NO_WAY, true);
            for (switch, shortest) in tree.iter() {
                let after = |way: u32| ways[network.to[way as usize] as usize];
                let goes_on = |way: u32| within[network.to[way as usize] as usize];
                let has = |lane: &Lane, way| after(way) == NO_WAY || lane.has(numbering, (way, after(way)));
                let kept = ways[switch as usize];
                if carries[switch as usize] {
                    within[switch as usize] = goes_on(kept) && has(lane, kept);
                    continue;
                }
                let mut good = shortest.iter().copied().filter(|way| goes_on(*way));
                let found = good
                    .clone()
                    .find(|way| has(lane, *way))
                    .or_else(|| good.find(|way| lane.take_one(network, numbering, (*way, after(*way)))));
                within[switch as usize] = found.is_some();
                if let Some(way) = found {
                    ways[switch as usize] = way;
                    paths.set(network, switch, target, way);
                }
            }
            target += 1;
        }
    }
}
