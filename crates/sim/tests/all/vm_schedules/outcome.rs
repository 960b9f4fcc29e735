//! The outcome of a random schedule: what is counted, and what a failure prints.

use weft_sm::SwitchLids;
use weft_vm::{Event, Reply, Step};

use super::schedule::Schedule;
use super::totals::count_move;

impl Schedule<'_> {
    /// Counts what came of it.
    pub(crate) fn count(&mut self) {
        let Self { simulation, machines } = self;
        let shares = simulation.options().sm.vm_lids.switch_lids == SwitchLids::Shared;
        machines.counts.set("shared LIDs", shares.into());
        for (_, reply) in machines.asked.keys().filter_map(|id| simulation.vmm_reply(*id)) {
            match reply {
                Ok(Reply::Created(_)) => machines.counts.one("created"),
                Ok(Reply::Migrated(moved)) => {
                    moved.counts.iter().for_each(|counts| count_move(&mut machines.counts, counts));
                }
                _ => {}
            }
        }
        let events = simulation.vmm_events();
        let mut count = |name, wanted: fn(&Event) -> bool| {
            let found = events.iter().filter(|(_, event)| wanted(event)).count();
            machines.counts.set(name, found as u64);
        };
        count("moved", |event| matches!(event, Event::MoveStep { step: Step::Done, .. }));
        count("undone", |event| matches!(event, Event::MoveStep { step: Step::Undone, .. }));
        count("lost", |event| matches!(event, Event::Lost { .. }));
    }

    /// What is wrong, and all that led to it.
    pub(crate) fn report(&self, seed: u64, wrong: &str) -> String {
        let sm = &self.simulation.options().sm;
        format!(
            "seed {seed} (WEFT_SEED={seed} replays it): {:?}, switches' LIDs {:?}, {}, unproved moves: {}, rebalance below \
             {}\n{}\n{}\n  {wrong}\n",
            sm.vm_lids.scheme,
            sm.vm_lids.switch_lids,
            sm.routing.chain,
            sm.vm_lids.unproved_moves,
            sm.vm_lids.rebalance_below,
            self.log.join("\n"),
            self.simulation.trace().lines()
        )
    }
}
