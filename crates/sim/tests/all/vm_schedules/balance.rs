//! Balance of machines' paths over the links between physical switches, counted by following all pairs.

use std::collections::{BTreeMap, BTreeSet};

use weft_routing::{Lids, Routes, vswitches};
use weft_topology::{Fabric, NodeIndex, PortRef};

use super::replay::Replay;
use super::schedule::Schedule;

impl Schedule<'_> {
    /// Once a subnet manager that rebalances is at rest after a move, the busiest link carries no more pairs of machines than the
    /// operator allows beside fresh tables.
    pub(super) fn links_are_balanced(&mut self) -> Result<(), String> {
        let below = u64::from(self.simulation.options().sm.vm_lids.rebalance_below);
        if below == 0 {
            return Ok(());
        }
        self.counts.one("weighed");
        let (now, fresh) = loads(&self.replay)?;
        if fresh * 1000 >= now * below {
            return Ok(());
        }
        Err(format!("the busiest link carries {now} pairs of machines, and {fresh} by fresh tables"))
    }
}

/// The pairs of machines on the busiest link by the log's tables, and by fresh ones.
fn loads(replay: &Replay) -> Result<(u64, u64), String> {
    let (fabric, lids, now, fresh) = replay.beside_fresh()?;
    Ok((busiest((fabric, lids), now)?, busiest((fabric, lids), &fresh)?))
}

fn busiest((fabric, lids): (&Fabric, &Lids), routes: &Routes) -> Result<u64, String> {
    let adapters = vswitches(fabric, &[]);
    let inner: BTreeSet<NodeIndex> = adapters.iter().map(|adapter| adapter.node).collect();
    let functions: Vec<PortRef> =
        adapters.iter().flat_map(weft_routing::VSwitch::virtual_functions).collect();
    let mut pairs: BTreeMap<PortRef, u64> = BTreeMap::new();
    for to in lids.iter().filter(|one| functions.contains(&one.port)) {
        let senders = functions.iter().filter(|from| **from != to.port);
        for from in senders.filter(|from| lids.iter().any(|one| one.port == **from)) {
            let mut left = fabric.nodes().len();
            let mut at = fabric.peer(*from).map(|peer| peer.node);
            while let Some(node) = at.filter(|node| *node != to.port.node) {
                let exit = PortRef::new(node, routes.port(node, to.base));
                at = fabric.peer(exit).map(|peer| peer.node).filter(|_| left > 0);
                left = left.saturating_sub(1);
                let next = at.ok_or_else(|| format!("no path from {from:?} to LID {}", to.base))?;
                let is_physical = |node: &NodeIndex| fabric.node(*node).is_switch() && !inner.contains(node);
                if is_physical(&node) && is_physical(&next) {
                    *pairs.entry(exit).or_default() += 1;
                }
            }
        }
    }
    Ok(pairs.into_values().max().unwrap_or(0))
}
