//! Costs of a run's faults, whoever drives it: the plan says when they began and ended, the driver what was seen of them.

use weft_fault::{Fault, FaultTimes, Sign, fault_times};
use weft_machine::Time;
use weft_topology::{NodeIndex, PortRef};

use crate::{Action, Plan};

type PlanFault = Fault<NodeIndex, PortRef>;

/// The faults of a plan as they are carried out.
#[derive(Debug, Default)]
pub struct FaultLog {
    begun: Vec<(PlanFault, String)>,
    signs: Vec<(Time, Sign<String>)>,
}

impl FaultLog {
    /// Takes note of a step that is carried out now, on the plan's clock.
    pub fn note(&mut self, plan: &Plan, at: Time, action: &Action) {
        let Action::Fault(fault) = action else { return };
        if fault.end().is_some() {
            let Some(key) = plan.event(action) else { return };
            self.signs.push((at, Sign::Begun { key: key.clone(), takes_links: fault.takes_links() }));
            self.begun.push((fault.clone(), key));
        } else if let Some((_, key)) = self.begun.iter().rev().find(|(begun, _)| ends(plan, begun, fault)) {
            self.signs.push((at, Sign::Ended(key.clone())));
        }
    }

    /// What each fault cost, by what else was seen, in any order. A fault is named as [`Plan::event`] does.
    pub fn times(mut self, seen: impl IntoIterator<Item = (Time, Sign<String>)>) -> Vec<FaultTimes<String>> {
        // At the same moment a fault is first.
        self.signs.extend(seen);
        self.signs.sort_by_key(|(at, _)| *at);
        fault_times(self.signs.into_iter().map(|(at, sign)| (at.as_nanos(), sign)))
    }
}

/// Whether a fault ends another. A cable may be plugged in at either end.
fn ends(plan: &Plan, begun: &PlanFault, fault: &PlanFault) -> bool {
    match (begun, fault) {
        (Fault::LinkDown(cut), Fault::LinkUp(whole)) => {
            cut == whole || plan.fabric.peer(*cut) == Some(*whole)
        }
        _ => begun.end().as_ref() == Some(fault),
    }
}
