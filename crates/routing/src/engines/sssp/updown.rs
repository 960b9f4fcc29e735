//! Orders of all ways that paths up and then down from one switch go with.

use crate::sorted;
use crate::switches::UNREACHED;

use super::network::Network;

/// Ranks of all ways, by way, for each of the `most` switches from which the others are nearest: ways up to it
/// come first, those that begin furthest from it before the others, then ways down, those that begin nearest first.
pub(super) fn ranks(network: &Network, most: usize) -> Vec<Vec<u32>> {
    let hops: Vec<Vec<u32>> =
        (0..network.graph.len() as u32).map(|root| network.graph.hops_from(&[root], |_| true)).collect();
    let far = |root: &u32| -> u64 {
        let hops = &hops[*root as usize];
        hops.iter().filter(|hops| **hops != UNREACHED).map(|hops| u64::from(*hops).pow(2)).sum()
    };
    let mut roots: Vec<u32> = (0..network.graph.len() as u32).collect();
    sorted::by_key(&mut roots, far);
    roots.truncate(most);
    roots.iter().map(|root| below(network, &hops[*root as usize])).collect()
}

/// The order for one root, by the hops to it.
fn below(network: &Network, hops: &[u32]) -> Vec<u32> {
    let height = |switch: u32| (hops[switch as usize], switch);
    let mut order: Vec<u32> = (0..network.from.len() as u32).collect();
    sorted::by_key(&mut order, |way| {
        let (from, to) = (height(network.from[*way as usize]), height(network.to[*way as usize]));
        let is_down = to > from;
        let (hops, switch) = if is_down { from } else { (u32::MAX - from.0, u32::MAX - from.1) };
        (is_down, hops, switch)
    });
    sorted::places(&order)
}
