//! Placement of agents on a list of machines: a leaf and its hosts go together.

use std::collections::BTreeMap;

use weft_topology::NodeIndex;

use crate::place::groups::Groups;

/// The machine of each agent.
///
/// A bunch is all agents of one leaf. Those of several agents are dealt out whole and in order; single agents, such as spines, fill
/// each machine up to its share. Where there are fewer bunches than machines, the largest are cut, so that no machine stays empty.
pub(crate) fn deal(groups: &Groups, machines: usize) -> Vec<usize> {
    let agents = groups.members().len();
    let mut of_leaf: BTreeMap<NodeIndex, Vec<usize>> = BTreeMap::new();
    for agent in 0..agents {
        of_leaf.entry(groups.leaf_of(agent)).or_default().push(agent);
    }
    let bunches = cut(of_leaf.into_values().collect(), machines.min(agents));
    let (large, single): (Vec<_>, Vec<_>) = bunches.into_iter().partition(|bunch| bunch.len() > 1);
    let mut dealt: Vec<Vec<usize>> = vec![Vec::new(); machines.max(1)];
    let sizes: Vec<usize> = large.iter().map(Vec::len).collect();
    for (bunch, machine) in large.into_iter().zip(in_order(&sizes, dealt.len())) {
        dealt[machine].extend(bunch);
    }
    fill(&mut dealt, single.concat(), agents);
    let mut machine_of = vec![0; agents];
    for (machine, agents) in dealt.into_iter().enumerate() {
        agents.into_iter().for_each(|agent| machine_of[agent] = machine);
    }
    machine_of
}

/// Cuts the largest into even parts until there are as many as this.
fn cut(bunches: Vec<Vec<usize>>, wanted: usize) -> Vec<Vec<usize>> {
    let mut parts = vec![1; bunches.len()];
    for _ in bunches.len()..wanted {
        let largest = (0..parts.len()).rev().max_by_key(|nth| bunches[*nth].len().div_ceil(parts[*nth]));
        largest.into_iter().for_each(|nth| parts[nth] += 1);
    }
    let cut = bunches.into_iter().zip(parts).flat_map(|(mut left, parts)| {
        (1..=parts).rev().map(move |parts| {
            let rest = left.split_off(left.len().div_ceil(parts));
            std::mem::replace(&mut left, rest)
        })
    });
    cut.collect()
}

/// The machine of each bunch: the one whose share of all has the bunch's middle in it. None is passed over while bunches are left.
fn in_order(sizes: &[usize], machines: usize) -> Vec<usize> {
    let all: usize = sizes.iter().sum();
    let (mut before, mut next) = (0, 0);
    let place = |(nth, size): (usize, &usize)| {
        let due = (2 * before + size) * machines / (2 * all);
        // As many machines as there are bunches left want one each.
        let at_least = (machines + nth).saturating_sub(sizes.len());
        let machine = due.max(at_least).min(next);
        (before, next) = (before + size, machine + 1);
        machine
    };
    sizes.iter().enumerate().map(place).collect()
}

/// Gives each machine single agents up to its share, and each that is empty one at least.
fn fill(dealt: &mut [Vec<usize>], single: Vec<usize>, agents: usize) {
    let (each, more) = (agents / dealt.len(), agents % dealt.len());
    let share = |machine: usize| each + usize::from(machine < more);
    let mut left = single.into_iter();
    for machine in 0..dealt.len() {
        let wants_one = |later: &usize| dealt[*later].is_empty() && share(*later) > 0;
        let kept = (machine + 1..dealt.len()).filter(wants_one).count();
        let room = share(machine).saturating_sub(dealt[machine].len());
        let takes = room.min(left.len().saturating_sub(kept));
        dealt[machine].extend(left.by_ref().take(takes));
    }
    // There is room for all; what was kept for a machine that did not want it goes to the last one.
    dealt.last_mut().into_iter().for_each(|last| last.extend(left.by_ref()));
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "in a test a panic is the report")]
mod tests {
    use weft_topology::Fabric;
    use weft_topology::generate::{
        GenerateOptions, RandomFabric, dragonfly, kary_ntree, mesh, random, ring, xgft,
    };

    use super::*;
    use crate::place::groups::Pack;

    const PACKS: [Pack; 5] = [Pack::Devices(1), Pack::Devices(2), Pack::Devices(10), Pack::Leaf, Pack::All];

    fn x5() -> Fabric {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../topologies/psmn-x5.topo");
        crate::topology_file::load(std::path::Path::new(path)).unwrap()
    }

    fn fabrics() -> Vec<(String, Fabric)> {
        let options = GenerateOptions::default();
        let mut fabrics = vec![
            ("X5".to_owned(), x5()),
            ("tree".to_owned(), xgft(&[4, 6], &[1, 4], &options).unwrap()),
            ("tree of three levels".to_owned(), kary_ntree(3, 3, &options).unwrap()),
            ("star".to_owned(), xgft(&[7], &[1], &options).unwrap()),
            ("mesh".to_owned(), mesh(&[3, 3], 2, &options).unwrap()),
            ("dragonfly".to_owned(), dragonfly(4, 2, 1, None, &options).unwrap()),
            ("ring".to_owned(), ring(5, 1, &options).unwrap()),
            ("ring of switches".to_owned(), ring(11, 0, &options).unwrap()),
        ];
        for seed in 0..20 {
            let parameters = RandomFabric {
                switches: 2 + seed % 8,
                hosts: 2 * seed,
                extra_cables: seed % 4,
                parallel_cables: 0,
            };
            let fabric = random(&parameters, u64::from(seed), &options).unwrap();
            fabrics.push((format!("random, seed {seed}"), fabric));
        }
        fabrics
    }

    /// The agents of each machine.
    fn loads(machine_of: &[usize], machines: usize) -> Vec<usize> {
        (0..machines).map(|machine| machine_of.iter().filter(|of| **of == machine).count()).collect()
    }

    #[test]
    fn placement_keeps_leaves_whole_and_balances_machines() {
        for (name, fabric) in fabrics() {
            for (pack, machines) in PACKS.into_iter().flat_map(|pack| (1..9).map(move |count| (pack, count)))
            {
                let what = format!("{name}, --pack {pack}, {machines} machines");
                let groups = Groups::new(&fabric, &[], pack);
                let agents = groups.members().len();
                let machine_of = deal(&groups, machines);
                let loads = loads(&machine_of, machines);
                assert_eq!((machine_of.len(), loads.iter().sum::<usize>()), (agents, agents), "{what}");
                let empty = loads.iter().filter(|load| **load == 0).count();
                assert_eq!(empty, machines.saturating_sub(agents), "{what}: {loads:?}");

                let mut bunches: BTreeMap<NodeIndex, Vec<usize>> = BTreeMap::new();
                (0..agents).for_each(|agent| bunches.entry(groups.leaf_of(agent)).or_default().push(agent));
                let largest = bunches.values().map(Vec::len).max().unwrap();
                // Every boundary is within half a bunch of where it would be if bunches could be cut.
                assert!(
                    *loads.iter().max().unwrap() <= agents.div_ceil(machines) + largest,
                    "{what}: {loads:?}"
                );
                if bunches.len() < machines {
                    continue;
                }
                for agents in bunches.values() {
                    assert!(agents.iter().all(|agent| machine_of[*agent] == machine_of[agents[0]]), "{what}");
                }
                // The same said of devices.
                for (index, host) in fabric.hosts().filter(|_| pack == Pack::Devices(1)) {
                    let (_, peer) = host.cabled_ports().next().unwrap();
                    let machine = |node| machine_of[groups.agent_of(node)];
                    assert_eq!(machine(index), machine(peer.node), "{what}: {}", host.description);
                }
            }
        }
    }

    /// Nothing belongs together there: they share the agents in order, the first ones one more.
    #[test]
    fn switches_without_hosts_are_shared_in_order() {
        let ring = ring(11, 0, &GenerateOptions::default()).unwrap();
        let groups = Groups::new(&ring, &[], Pack::Devices(1));
        assert_eq!(deal(&groups, 3), [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2]);
        assert_eq!(deal(&groups, 1), [0; 11]);
        assert!(deal(&groups, 20).into_iter().eq(0..11));
    }

    #[test]
    fn leaves_stay_in_order_and_spines_fill_up() {
        let tree = xgft(&[4, 6], &[1, 4], &GenerateOptions::default()).unwrap();
        let groups = Groups::new(&tree, &[], Pack::Devices(1));
        let machine_of = deal(&groups, 3);
        assert_eq!(loads(&machine_of, 3), [12, 11, 11]);
        let leaves: BTreeMap<NodeIndex, usize> = tree
            .hosts()
            .map(|(_, host)| host.cabled_ports().next().unwrap().1.node)
            .map(|leaf| (leaf, machine_of[groups.agent_of(leaf)]))
            .collect();
        assert_eq!(leaves.into_values().collect::<Vec<_>>(), [0, 0, 1, 1, 2, 2]);
    }

    #[test]
    fn one_leaf_is_cut_only_as_far_as_machines_would_stay_empty() {
        let star = xgft(&[7], &[1], &GenerateOptions::default()).unwrap();
        let groups = Groups::new(&star, &[], Pack::Devices(1));
        for (machines, expected) in [
            (1, &[8][..]),
            (2, &[4, 4]),
            (3, &[3, 3, 2]),
            (4, &[2; 4]),
            (8, &[1; 8]),
            (9, &[1, 1, 1, 1, 1, 1, 1, 1, 0]),
        ] {
            assert_eq!(loads(&deal(&groups, machines), machines), expected, "{machines} machines");
        }
    }
}
