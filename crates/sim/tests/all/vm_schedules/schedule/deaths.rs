//! Managers that die at steps of moves, in the middle of a rebalance, or when their disk is full.

use weft_machine::{Machine, Time};
use weft_sim::Process;
use weft_sm::SmTimer;
use weft_vm::{Event, Step};

use super::{LOOK, Schedule};

/// How long the writes of a move take at most.
const WRITES: Time = Time::from_micros(200);

/// How long nothing more goes wrong where the subnet manager rebalances, so that it gets to that; how often slots are looked at
/// meanwhile, and how closely the manager is while it rebalances.
const CALM: Time = Time::from_millis(1_500);
const CALM_LOOK: Time = Time::from_millis(10);
const CLOSE: Time = Time::from_micros(5);
const CLOSE_LOOKS: u32 = 100;

impl Schedule<'_> {
    /// Lets time pass in which the subnet manager may rebalance. It may die on the way, between two writes of a plan for that.
    pub(crate) fn rebalances(&mut self) -> Result<(), String> {
        let mut is_to_die = self.random.below(3) > 0;
        self.say(if is_to_die { "the subnet manager dies as it rebalances" } else { "calm" });
        let until = self.simulation.now() + CALM;
        while self.simulation.now() < until {
            let timer = self.simulation.sm().and_then(Machine::next_timer);
            let next = (self.simulation.now() + CALM_LOOK).min(until);
            let weighs = |reason: &SmTimer| matches!(reason, SmTimer::Proof | SmTimer::Rebalance);
            match timer.filter(|timer| is_to_die && weighs(&timer.reason) && timer.at < next) {
                None => self.look_at(next)?,
                Some(timer) => {
                    self.simulation.run_until(timer.at);
                    is_to_die = !self.dies_as_it_rebalances()?;
                }
            }
        }
        Ok(())
    }

    /// Looks at the subnet manager's log for a moment; whether it has died in the middle of a plan.
    fn dies_as_it_rebalances(&mut self) -> Result<bool, String> {
        for _ in 0..CLOSE_LOOKS {
            let log = self.simulation.take_history();
            self.go_on(log)?;
            if self.replay.is_rebalancing() {
                let more = self.random.below(20) * CLOSE.as_nanos() as u32;
                self.simulation.run_until(self.simulation.now() + Time::from_nanos(u64::from(more)));
                self.kill(Process::Sm);
                return Ok(true);
            }
            self.simulation.run_until(self.simulation.now() + CLOSE);
        }
        Ok(false)
    }

    /// A manager dies at the step that it is to die at.
    pub(super) fn see_steps(&mut self) {
        let Self { simulation, machines } = self;
        let events = simulation.vmm_events();
        let news = events.since(machines.heard);
        let is_news = |doom: &Step| {
            news.iter().any(|(_, event)| matches!(event, Event::MoveStep { step, .. } if step == doom))
        };
        let [doomed, sm_doomed] = [machines.doom, machines.sm_doom].map(|doom| doom.filter(is_news));
        let ended = news.iter().filter_map(|(_, event)| match event {
            Event::Lost { vm, .. } | Event::Gone { vm } => Some(vm.to_string()),
            _ => None,
        });
        for ended in ended {
            machines.ended += machines.lids.extract_if(.., |(_, vm), _| *vm == ended).count() as u64;
        }
        let is_stopped = news.iter().any(|(_, event)| matches!(event, Event::ManagerStopped { .. }));
        machines.heard = events.count();
        if let Some(step) = sm_doomed {
            self.sm_doom = None;
            // It may have begun to write, or be done.
            let more = if self.random.below(2) == 0 { WRITES } else { LOOK };
            let more = Time::from_nanos(u64::from(self.random.below(more.as_nanos() as u32)));
            self.simulation.run_until(self.simulation.now() + more);
            if let Some(master) = self.simulation.master() {
                self.say(&format!("the subnet manager dies, at {step}"));
                self.kill(master);
                self.counts.one("killed within");
            }
        }
        if is_stopped {
            self.say("the VM manager has stopped, and is killed");
            self.kill(Process::Vmm);
        }
        if let Some(step) = doomed {
            self.doom = None;
            // Its record may be on disk by then, or not.
            let sync = self.simulation.options().journal_sync;
            let more = Time::from_nanos(u64::from(self.random.below(2 * sync.as_nanos() as u32)));
            self.simulation.run_until(self.simulation.now() + more);
            self.say(&format!("the VM manager dies, at {step}"));
            self.kill(Process::Vmm);
        }
    }
}
