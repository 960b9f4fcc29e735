//! Knowledge of agents, and commands that they have not answered.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use weft_machine::Time;
use weft_wire::Guid;

use crate::agent::{
    Act, Adapter, Command, Content, Deed, HostReport, Image, Outcome, Refusal, cut, verify_content,
    verify_report,
};
use crate::identity::PortIdentity;
use crate::names::{HostName, Place, Slot};
use crate::record::Proof;
use ports::Ports;

mod ports;

/// How far the conversation with an agent is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Link {
    /// It does not answer.
    #[default]
    Away,
    /// It was asked what it has.
    Greeting,
    /// What it has is known, and it takes commands.
    Ready,
}

/// What is known of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SlotView {
    pub(crate) configured: PortIdentity,
    pub(crate) content: Content,
    /// The epoch of its last command.
    pub(crate) epoch: u64,
}

/// What is known of a host.
#[derive(Clone, Debug, Default)]
pub(crate) struct Host {
    link: Link,
    /// Whether the driver has a connection.
    connected: bool,
    /// When it was last ready.
    ready_at: Time,
    incarnation: Option<u64>,
    /// The incarnation that has ended, and how.
    ended: Option<(Option<u64>, String)>,
    pub(crate) adapter: Adapter,
    pub(crate) slots: BTreeMap<u8, SlotView>,
    inspection: Option<Pending>,
    pending: BTreeMap<u8, Pending>,
}

/// A command without an answer.
#[derive(Clone, Debug)]
struct Pending {
    command: Command,
    sent_at: Time,
    tries: u32,
}

/// What an answer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// It belongs to no command.
    Stray,
    /// What the host has. The highest generation and epoch that it has seen.
    Report { generation: u64, epoch: u64 },
    /// A report that cannot be.
    BadReport(String),
    /// A command for a slot was carried out.
    Done(Slot),
    /// An image was exported.
    Image(Slot, Image),
    /// It was not.
    Refused(Slot, Deed, Refusal),
    /// Another manager has taken over.
    Superseded(u64),
}

/// All hosts.
#[derive(Clone, Debug)]
pub(crate) struct Hosts {
    hosts: BTreeMap<HostName, Host>,
    /// Whose adapter has a GUID.
    adapters: BTreeSet<(Guid, HostName)>,
    /// Which slots have a GUID, as the slots above have it.
    ports: Ports,
    /// Those that have never reported what they have.
    unknown: BTreeSet<HostName>,
    /// 0 while the manager has none: then agents are only asked.
    generation: u64,
    timeout: Time,
    tries: u32,
    number: u64,
    pub(crate) outputs: VecDeque<(HostName, Command)>,
}

impl Hosts {
    pub(crate) fn new(timeout: Time, tries: u32) -> Self {
        let (hosts, adapters, outputs) = (BTreeMap::new(), BTreeSet::new(), VecDeque::new());
        let (ports, unknown) = (Ports::default(), BTreeSet::new());
        Self { hosts, adapters, ports, unknown, generation: 0, timeout, tries, number: 0, outputs }
    }

    pub(crate) fn add(&mut self, now: Time, name: HostName) {
        if let Entry::Vacant(entry) = self.hosts.entry(name) {
            self.unknown.insert(entry.key().clone());
            entry.insert(Host { ready_at: now, ..Host::default() });
        }
    }

    pub(crate) fn get(&self, name: &HostName) -> Option<&Host> {
        self.hosts.get(name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&HostName, &Host)> {
        self.hosts.iter()
    }

    /// The first host whose adapter has a GUID.
    pub(crate) fn adapter_of(&self, guid: Guid) -> Option<&HostName> {
        let from = (guid, HostName::lowest());
        let (found, name) = self.adapters.range(from..).next()?;
        (*found == guid).then_some(name)
    }

    /// What is known of a slot, if its host can be reached.
    pub(crate) fn view(&self, slot: &Slot) -> Option<&SlotView> {
        self.hosts.get(&slot.host).filter(|host| host.is_ready())?.slots.get(&slot.vf)
    }

    pub(crate) fn is_ready(&self, name: &HostName) -> bool {
        self.hosts.get(name).is_some_and(Host::is_ready)
    }

    /// Whether a host does not answer. One that is only asked what it has is not away.
    pub(crate) fn is_away(&self, name: &HostName) -> bool {
        self.hosts.get(name).is_none_or(|host| host.link == Link::Away)
    }

    /// Whether all hosts have reported what they have.
    pub(crate) fn all_known(&self) -> bool {
        self.unknown.is_empty()
    }

    /// Whether another slot than `but` has one of a port's GUIDs, by what agents reported last.
    pub(crate) fn has_elsewhere(&self, port: &PortIdentity, but: &Slot) -> bool {
        self.ports.is_besides(port, but)
    }

    /// Since when a host cannot be reached.
    pub(crate) fn away_since(&self, name: &HostName) -> Option<Time> {
        self.hosts.get(name).filter(|host| !host.is_ready()).map(|host| host.ready_at)
    }

    /// The incarnation of a host's agent that is known to live, or was last.
    pub(crate) fn incarnation(&self, name: &HostName) -> Option<u64> {
        self.hosts.get(name)?.incarnation
    }

    /// The proof that nothing runs at a place any more, if there is one.
    pub(crate) fn death(&self, place: &Place) -> Option<Proof> {
        let host = self.hosts.get(&place.slot.host)?;
        let (name, was) = (place.slot.host.clone(), place.incarnation);
        if let Some(is) = host.incarnation.filter(|is| *is != was) {
            return Some(Proof::Incarnation { host: name, was, is });
        }
        let (ended, how) = host.ended.as_ref()?;
        ended.is_none_or(|ended| ended == was).then(|| Proof::Exit { host: name, how: how.clone() })
    }

    /// Whether a slot has a command without an answer.
    pub(crate) fn is_busy(&self, slot: &Slot) -> bool {
        self.hosts.get(&slot.host).is_some_and(|host| host.pending.contains_key(&slot.vf))
    }

    /// From now on commands are of this generation. Everyone is asked again, and hears of it.
    pub(crate) fn begin(&mut self, now: Time, generation: u64) {
        self.generation = generation;
        let connected = self.hosts.iter().filter(|(_, host)| host.connected);
        let connected: Vec<HostName> = connected.map(|(name, _)| name.clone()).collect();
        connected.iter().for_each(|name| self.inspect(now, name));
    }

    pub(crate) fn up(&mut self, now: Time, name: &HostName) {
        if let Some(host) = self.hosts.get_mut(name) {
            host.connected = true;
            self.inspect(now, name);
        }
    }

    pub(crate) fn down(&mut self, now: Time, name: &HostName) {
        if let Some(host) = self.hosts.get_mut(name) {
            host.connected = false;
            host.leave(now, Link::Away);
        }
    }

    pub(crate) fn ended(&mut self, now: Time, name: &HostName, incarnation: Option<u64>, how: &str) {
        let Some(host) = self.hosts.get_mut(name) else { return };
        if incarnation.is_none() || host.incarnation.is_none() || host.incarnation == incarnation {
            host.ended = Some((incarnation, cut(how)));
            host.leave(now, Link::Away);
        }
    }

    /// Asks a host what it has. Commands that it has not answered are sent again later, if need be.
    pub(crate) fn inspect(&mut self, now: Time, name: &HostName) {
        self.number += 1;
        let command = Command { number: self.number, generation: self.generation, act: Act::Inspect };
        let Some(host) = self.hosts.get_mut(name) else { return };
        host.leave(now, Link::Greeting);
        host.inspection = Some(Pending { command: command.clone(), sent_at: now, tries: 1 });
        self.outputs.push_back((name.clone(), command));
    }

    /// The last command to a slot is not repeated any more. It may yet be done.
    pub(crate) fn drop_command(&mut self, slot: &Slot) {
        if let Some(host) = self.hosts.get_mut(&slot.host) {
            host.pending.remove(&slot.vf);
        }
    }

    /// Orders an agent to do something with a slot, unless it has that order or a later one.
    pub(crate) fn command(&mut self, now: Time, slot: &Slot, epoch: u64, deed: Deed) {
        let Some(host) = self.hosts.get_mut(&slot.host).filter(|host| host.is_ready()) else { return };
        let Some(incarnation) = host.incarnation else { return };
        if host.pending.get(&slot.vf).is_some_and(|pending| pending.epoch() >= Some(epoch)) {
            return;
        }
        self.number += 1;
        let act = Act::Slot { vf: slot.vf, incarnation, epoch, deed };
        let command = Command { number: self.number, generation: self.generation, act };
        host.pending.insert(slot.vf, Pending { command: command.clone(), sent_at: now, tries: 1 });
        self.outputs.push_back((slot.host.clone(), command));
    }

    /// Takes an answer.
    pub(crate) fn answer(&mut self, now: Time, name: &HostName, number: u64, outcome: Outcome) -> Heard {
        let generation = self.generation;
        let Some(host) = self.hosts.get_mut(name) else { return Heard::Stray };
        if host.inspection.as_ref().is_some_and(|pending| pending.command.number == number) {
            let before = guids_of(&host.adapter);
            self.ports.note_all(name, &host.slots, false);
            let heard = host.greeted(now, generation, outcome);
            self.ports.note_all(name, &host.slots, true);
            if host.incarnation.is_some() {
                self.unknown.remove(name);
            }
            let after = guids_of(&host.adapter);
            if before != after {
                for guid in before {
                    self.adapters.remove(&(guid, name.clone()));
                }
                self.adapters.extend(after.map(|guid| (guid, name.clone())));
            }
            return heard;
        }
        let mut pending = host.pending.iter();
        let found = pending.find(|(_, pending)| pending.command.number == number).map(|(vf, _)| *vf);
        let Some(pending) = found.and_then(|vf| host.pending.remove(&vf)) else { return Heard::Stray };
        let Act::Slot { vf, epoch, deed, .. } = pending.command.act else { return Heard::Stray };
        let slot = Slot { host: name.clone(), vf };
        match outcome {
            Outcome::Done(content) if verify_content(&content).is_ok() => {
                if let Some(view) = host.slots.get_mut(&vf) {
                    self.ports.note(&slot, &view.content, false);
                    self.ports.note(&slot, &content, true);
                    (view.content, view.epoch) = (content, epoch);
                }
                Heard::Done(slot)
            }
            Outcome::Image(image) if image.0.len() <= crate::agent::IMAGE_BYTES_MAX => {
                Heard::Image(slot, image)
            }
            Outcome::Refused(Refusal::Generation(other)) => Heard::Superseded(other),
            Outcome::Refused(Refusal::Words(words)) => {
                Heard::Refused(slot, deed, Refusal::Words(cut(&words)))
            }
            Outcome::Refused(refusal) => Heard::Refused(slot, deed, refusal),
            Outcome::Done(_) | Outcome::Image(_) | Outcome::Report(_) => {
                let words = Refusal::Words("the agent's answer is not one to that command".to_owned());
                Heard::Refused(slot, deed, words)
            }
        }
    }

    /// A port has got its LID.
    pub(crate) fn lid(&mut self, place: &Place, port: &PortIdentity) {
        let Some(host) = self.hosts.get_mut(&place.slot.host) else { return };
        if host.incarnation != Some(place.incarnation) {
            return;
        }
        let Some(view) = host.slots.get_mut(&place.slot.vf) else { return };
        if let Some(own) = view.content.port_mut()
            && own.port_guid == port.port_guid
        {
            own.lid = port.lid;
        }
    }

    /// Repeats commands that were not answered in time. Whether a host counts as away from now on.
    pub(crate) fn expire(&mut self, now: Time) -> bool {
        let mut has_left = false;
        let (timeout, tries) = (self.timeout, self.tries);
        let is_due = |pending: &&mut Pending| pending.sent_at + timeout <= now;
        for (name, host) in &mut self.hosts {
            let mut silent = false;
            for pending in host.pending.values_mut().chain(&mut host.inspection).filter(is_due) {
                silent |= pending.tries >= tries;
                pending.tries = pending.tries.saturating_add(1);
                pending.sent_at = now;
                self.outputs.push_back((name.clone(), pending.command.clone()));
            }
            if silent && host.link != Link::Away {
                // From now on only an inspection is repeated: a host that answers it is back.
                self.number += 1;
                let command = Command { number: self.number, generation: self.generation, act: Act::Inspect };
                host.leave(now, Link::Away);
                has_left = true;
                host.inspection = Some(Pending { command: command.clone(), sent_at: now, tries: 1 });
                self.outputs.push_back((name.clone(), command));
            }
        }
        has_left
    }

    /// When [`Hosts::expire`] has something to do.
    pub(crate) fn next_expiry(&self) -> Option<Time> {
        let pending = self.hosts.values().flat_map(|host| host.pending.values().chain(&host.inspection));
        pending.map(|pending| pending.sent_at + self.timeout).min()
    }
}

fn guids_of(adapter: &Adapter) -> [Guid; 2] {
    [adapter.port_guid, adapter.system_guid]
}

impl Pending {
    fn epoch(&self) -> Option<u64> {
        match self.command.act {
            Act::Slot { epoch, .. } => Some(epoch),
            Act::Inspect => None,
        }
    }
}

impl Host {
    /// Whether it takes commands.
    pub(crate) fn is_ready(&self) -> bool {
        self.link == Link::Ready
    }

    fn leave(&mut self, now: Time, link: Link) {
        if self.is_ready() {
            self.ready_at = now;
        }
        self.link = link;
        self.inspection = None;
        self.pending.clear();
    }

    /// An answer to an inspection.
    fn greeted(&mut self, now: Time, own_generation: u64, outcome: Outcome) -> Heard {
        let report = match outcome {
            Outcome::Report(report) => report,
            Outcome::Refused(Refusal::Generation(other)) => return Heard::Superseded(other),
            Outcome::Refused(refusal) => return Heard::BadReport(cut(&refusal.to_string())),
            Outcome::Done(_) | Outcome::Image(_) => {
                return Heard::BadReport("it answers an inspection with something else".to_owned());
            }
        };
        if let Err(wrong) = verify_report(&report) {
            return Heard::BadReport(wrong);
        }
        self.inspection = None;
        let HostReport { incarnation, generation, adapter, slots } = *report;
        let epoch = slots.iter().map(|slot| slot.epoch).max().unwrap_or(0);
        self.incarnation = Some(incarnation);
        self.ended = self.ended.take().filter(|(ended, _)| *ended == Some(incarnation));
        self.adapter = adapter;
        let view = |slot: crate::agent::SlotReport| {
            let (configured, content, epoch) = (slot.configured, slot.content, slot.epoch);
            (slot.vf, SlotView { configured, content, epoch })
        };
        self.slots = slots.into_iter().map(view).collect();
        self.ready_at = now;
        // A manager without a generation has only asked.
        self.link = if own_generation > 0 && self.ended.is_none() { Link::Ready } else { Link::Greeting };
        Heard::Report { generation, epoch }
    }
}
