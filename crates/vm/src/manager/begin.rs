//! A manager's start: its journal, its generation, and what was under way.

use weft_machine::Time;
use weft_vocabulary::vm::Event;
use weft_wire::Guid;

use super::{Phase, VmManager};
use crate::Step;
use crate::agent::{COUNT_MAX, Content};
use crate::book::Book;
use crate::error::Why;
use crate::names::{HostName, Slot, VmName};
use crate::record::{Record, State};
use crate::request::VMS_MAX;
use crate::task::Task;

/// Hosts at most: every one has a LID.
const HOSTS_MAX: usize = VMS_MAX;

impl VmManager {
    pub(super) fn start(
        &mut self,
        now: Time,
        journal: Option<&[Record]>,
        hosts: Vec<HostName>,
        guids: Vec<Guid>,
    ) {
        if self.phase != Phase::Idle {
            return;
        }
        if hosts.len() > HOSTS_MAX || guids.len() > 1 << 20 {
            return self.stop(format!("the laboratory has more than {HOSTS_MAX} hosts, or too many GUIDs"));
        }
        match Book::replay(journal.unwrap_or_default()) {
            Ok(book) => self.book = book,
            Err(wrong) => return self.stop(format!("the journal: {wrong}")),
        }
        let scheme = self.options.scheme;
        if !self.book.vms().is_empty() && self.book.scheme != scheme {
            let own = self.book.scheme;
            return self.stop(format!("the journal has virtual machines with {own} LIDs, not {scheme}"));
        }
        self.book.adopts |= journal.is_none();
        self.book.next_guid = self.book.next_guid.max(self.options.first_guid);
        self.taken = guids.into_iter().collect();
        let known: Vec<HostName> = self.book.vms().values().map(|vm| vm.place.slot.host.clone()).collect();
        hosts.into_iter().chain(known).for_each(|host| self.hosts.add(now, host));
        self.phase = Phase::Gathering { until: now + self.options.gather, heard: 0 };
    }

    /// Chooses a generation when agents have reported theirs, and begins when it is on disk.
    pub(super) fn gathered(&mut self, now: Time) {
        match self.phase {
            Phase::Gathering { until, heard } if until <= now || self.hosts.all_known() => {
                self.choose_generation(heard, true);
            }
            Phase::Starting { write, first } if write <= self.disk.synced => {
                self.phase = Phase::Running;
                self.hosts.begin(now, self.book.generation);
                let (generation, vms) = (self.book.generation, self.book.vms().len() as u64);
                self.event(Event::ManagerStarted { generation, vms, adopts: self.book.adopts });
                if first {
                    self.recover(now);
                }
            }
            _ => {}
        }
    }

    fn choose_generation(&mut self, heard: u64, first: bool) {
        let Some(generation) = self.book.generation.max(heard).checked_add(1) else {
            return self
                .stop(Why::with_hint("an agent has heard of the highest generation", "restart the agents"));
        };
        let Book { adopts, epoch, next_guid, .. } = self.book;
        let scheme = self.options.scheme;
        if let Err(wrong) = self.book.apply(&Record::Started { generation, scheme, adopts, epoch, next_guid })
        {
            return self.stop(format!("the journal: {wrong}"));
        }
        let write = self.write_whole();
        if matches!(self.phase, Phase::Stopped(_)) {
            return;
        }
        self.phase = Phase::Starting { write, first };
    }

    /// An agent knows a later generation. Without its journal a manager cannot know what earlier ones were: it goes higher. With its
    /// journal, it knows that another manager was started, and leaves the field to it.
    pub(super) fn superseded(&mut self, other: u64) {
        if self.phase == Phase::Running
            && self.book.adopts
            && (self.book.generation..=COUNT_MAX).contains(&other)
        {
            return self.choose_generation(other, false);
        }
        if self.phase == Phase::Running && other > self.book.generation {
            let own = self.book.generation;
            let words = format!(
                "another VM manager has taken over: agents know its generation {other}, and this one's is {own}"
            );
            self.stop(Why::with_hint(words, "stop one of them, and start the other again"));
        }
    }

    /// Goes on with what an earlier manager had begun: before COMMIT back, after it forward.
    fn recover(&mut self, now: Time) {
        let busy = |state: &State| matches!(state, State::Starting | State::Stopping | State::Moving(_));
        let vms = self.book.vms().iter().filter(|(_, vm)| busy(&vm.state));
        let names: Vec<VmName> = vms.map(|(name, _)| name.clone()).collect();
        for name in names {
            let mut task = Task::new(now, None, self.options.answer_within);
            task.recovered = true;
            self.begin(name.clone(), task);
            let step = self.book.moving(&name).map(|(_, moving)| moving.step);
            if step.is_some_and(|step| Step::Undo.may_follow(step)) {
                self.fail(&name, "the VM manager died before the move was committed");
            }
        }
    }

    /// A host has reported what it has.
    pub(super) fn reported(&mut self, now: Time, host: &HostName, generation: u64) {
        if let Phase::Gathering { heard, .. } = &mut self.phase {
            *heard = generation.max(*heard);
            return;
        }
        if generation > self.book.generation {
            return self.superseded(generation);
        }
        let names: Vec<VmName> = self.book.claims_of(host).map(|(_, name)| name.clone()).collect();
        self.check.extend(names);
        let is_free = |slot: &Slot| self.book.claim(slot).is_none();
        let learns = self.book.adopts && self.hosts.all_known();
        let slots = self.hosts.iter().flat_map(|(name, view)| {
            // With the last report it is known which identities are nowhere.
            let of_interest = move |bare: bool| name == host || (learns && bare);
            let slots = view.slots.iter().filter(move |(_, view)| of_interest(view.content == Content::Bare));
            slots.map(|(vf, _)| Slot { host: name.clone(), vf: *vf })
        });
        let slots: Vec<Slot> = slots.filter(is_free).collect();
        slots.into_iter().for_each(|slot| self.mark_slot(now, slot, None));
    }
}
