//! Faults of the world around the manager.

use weft_machine::Time;
use weft_vm::{Input, Record};

use super::{Fault, Happening, World};

impl World {
    /// A host of a move dies at its record.
    pub(super) fn strike(&mut self, record: &Record) {
        let name = match record {
            Record::Reserve { name, to, .. } => {
                if let Some(from) = self.running(name) {
                    self.ways.insert(name.clone(), [from.host, to.slot.host.clone()]);
                }
                name
            }
            Record::Step { name, .. } => name,
            _ => return,
        };
        let Some(index) = self.strikes.iter().position(|(step, _)| *step == record.name()) else { return };
        let (_, side) = self.strikes.remove(index);
        let host = self.ways.get(name).map(|way| way[side as usize].clone());
        let Some(number) = host.and_then(|host| self.index(&host)) else { return };
        let delay = Time::from_millis(u64::from(self.random.below(120)));
        let down = Time::from_millis(u64::from(self.random.below(3000)));
        self.at(self.now + delay, Happening::Fault(Fault::KillAgent(number as u8)));
        self.at(self.now + delay + down, Happening::Fault(Fault::RestartAgent(number as u8)));
    }

    pub(crate) fn fault(&mut self, fault: &Fault) -> Result<(), String> {
        self.note(|| format!("{fault:?}"));
        match *fault {
            Fault::KillAgent(number) => self.kill_agent(number),
            Fault::RestartAgent(number) => {
                let agent = &mut self.agents[usize::from(number)];
                if !agent.alive {
                    let incarnation = agent.incarnation + 1;
                    agent.restart(incarnation);
                    self.tell_up(number);
                }
            }
            Fault::Cut(number) => {
                self.cut.insert(number);
                self.tell_down(number);
            }
            Fault::Mend(number) => {
                self.cut.remove(&number);
                self.tell_up(number);
            }
            Fault::KillSm => self.sm.alive = false,
            Fault::RestartSm => {
                if !self.sm.alive {
                    self.sm.restart();
                }
            }
            Fault::KillManager => self.kill_manager(),
            Fault::RestartManager => {
                if self.manager.is_none() {
                    self.start_manager()?;
                }
            }
            Fault::LoseJournal => {
                if self.manager.is_none() {
                    self.disk.lose();
                    self.options.first_guid.0 += 1 << 32;
                    self.journals_lost += 1;
                }
            }
        }
        Ok(())
    }

    pub(super) fn tell_up(&mut self, number: u8) {
        let agent = &self.agents[usize::from(number)];
        if agent.alive && !self.cut.contains(&number) {
            let input = Input::HostUp(agent.name.clone());
            self.soon(Happening::ToManager(self.life, input));
        }
    }

    /// A driver may notice, or hear nothing at all.
    pub(super) fn tell_down(&mut self, number: u8) {
        if self.random.below(2) == 0 {
            let input = Input::HostDown(self.host(number));
            self.soon(Happening::ToManager(self.life, input));
        }
    }

    pub(super) fn kill_agent(&mut self, number: u8) {
        let agent = &mut self.agents[usize::from(number)];
        if !agent.alive {
            return;
        }
        agent.alive = false;
        let there = agent.slots.values().filter_map(|slot| slot.content.occupant());
        self.mourned.extend(there.map(|occupant| occupant.vm.clone()));
        let (host, incarnation) = (agent.name.clone(), agent.incarnation);
        if self.random.below(2) == 0 {
            // A driver that has not met this life knows that none is left.
            let incarnation = (self.random.below(2) == 0).then_some(incarnation);
            let input = Input::HostEnded { host, incarnation, how: "signal 9".to_owned() };
            self.soon(Happening::ToManager(self.life, input));
        }
        self.tell_down(number);
    }
}
