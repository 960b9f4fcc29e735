//! Virtual functions that have come or gone: their slots alone are discovered, and the rest of a sweep writes what that changes.
//!
//! ```text
//! trap of a vSwitch ─▶ Look: slots that changed ─▶ Discover those ─▶ Assign ▶ Route ▶ Program ▶ Activate, as in a heavy sweep
//!                        └── anything else, or another manager behind a slot ─▶ a heavy sweep
//! ```
//!
//! Tables are computed and verified as a whole. Only the rows of the new LIDs differ from what switches hold.

use std::collections::BTreeSet;

use weft_machine::Time;

use super::SubnetManager;
use super::sweep::Sweep;
use super::task::Task;
use crate::knowledge::{Changes, Subnet};
use crate::moves::Late;
use crate::sweep::{Discover, Functions, Settings};
use crate::{Event, Reason, SweepKind};

impl SubnetManager {
    /// Sees to functions that a look has found to have come or gone, where there is nothing else; gives the subnet back if not.
    pub(super) fn take_functions(
        &mut self,
        now: Time,
        subnet: Subnet,
        changes: &Changes,
        reason: Reason,
    ) -> Option<Subnet> {
        let functions = Functions::of(changes, &subnet)
            .filter(|_| self.election.state.is_in_charge() && !self.own_port.down);
        let Some((functions, own)) = functions.zip(self.own_port.at) else { return Some(subnet) };
        self.tally.sweeps += 1;
        // The tables that are computed have all rows, as those of a heavy sweep.
        self.desk.late = Late::default();
        self.desk.forget_tables();
        self.sweep = Sweep::repair(now, self.requests.stats().retries, functions.vswitches());
        self.say(Event::SweepStarted { kind: SweepKind::Repair, reason });
        let settings = Settings {
            own_port: own.port,
            own_guid: own.guid,
            clear: true,
            candidate: false,
            ask_managers: true,
            claim: Some(self.options.clone()),
        };
        for slot in functions.gone.keys() {
            let Some(end) = subnet.port(*slot).and_then(|port| port.peer) else { continue };
            // Another device may come with the same GUID: it holds nothing yet, and its host has not subscribed.
            subnet.node(end.node).map(|node| self.known.memory.remove(&node.guid()));
            self.succession.reregistered.remove(&subnet.end_guid(end));
        }
        let discover = Discover::again(settings, subnet, &functions);
        self.turn_to(now, Task::Discover(Box::new(discover)));
        None
    }

    /// The slots have been looked into.
    pub(super) fn functions_found(&mut self, now: Time, discover: Discover, mut before: Subnet) {
        if !discover.managers.is_empty() {
            self.enter(now, None);
            self.known.keep_subnet(before);
            return self.start_heavy(now, Reason::Managers);
        }
        let mut subnet = discover.finish();
        subnet.routed = std::mem::take(&mut before.routed);
        let guid = |node: u32| before.guid(node);
        let place = |node: u32| subnet.by_guid.get(&guid(node)).copied();
        self.agenda.renumber(place);
        let touched: BTreeSet<u32> =
            self.sweep.touched.as_ref().into_iter().flatten().filter_map(|at| place(*at)).collect();
        self.sweep.touched = Some(touched);
        self.begin_configuration(now, subnet);
    }
}
