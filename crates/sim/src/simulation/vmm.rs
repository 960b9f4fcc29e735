//! The process of the VM manager: its machine, its journal, and clients that ask it.
//!
//! ```text
//!   Request ──▶ Station ──▶ MADs to the subnet manager, as every program
//!               │    └────▶ journal: on disk after SimOptions::journal_sync
//!               └─────────▶ Command ──(attach_delay)──▶ the agent of a host (slot_agent.rs) ──(attach_delay)──▶ Outcome
//! ```

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use weft_machine::{Machine, Time};
use weft_topology::NodeIndex;
use weft_vm::journal::{self, Writer};
use weft_vm::station::{Input, Output, Station};
use weft_vm::{
    Change, Event, HostName, HostPart, Places, Record, Reply, Request, RequestId, SaClient, Scheme, VmError,
    VmManager, Write, all_guids,
};
use weft_wire::Guid;

use super::Simulation;
use super::programs::{ProgramEvent, VMM};
use crate::Kept;
use crate::event::{Rare, VmNews};

/// Events and replies that are kept.
const KEPT_MAX: usize = 1 << 14;
/// The laboratory that a journal is of.
const LAB: &str = "simulation";

/// The VM manager, when its process runs.
#[derive(Debug, Default)]
pub(super) struct VmmProcess {
    machine: Option<Station>,
    /// Counts processes, so that answers to an earlier one reach none.
    life: u64,
    disk: Disk,
    events: Kept<(Time, Event), KEPT_MAX>,
    replies: Kept<(Time, RequestId, Result<Reply, VmError>), KEPT_MAX>,
    next_request: u64,
    /// The hosts of its configuration, by the place of their adapters in the options.
    parts: BTreeMap<usize, HostPart>,
    /// GUIDs of its fabric that no virtual machine may have.
    guids: Vec<Guid>,
}

/// The journal's file, which outlives the process; what was not synced does not.
#[derive(Debug, Default)]
struct Disk {
    bytes: Vec<u8>,
    writer: Option<Writer>,
    waiting: VecDeque<Write>,
}

impl Disk {
    /// What a process finds that begins.
    fn open(&mut self) -> Result<Option<Vec<Record>>, String> {
        self.waiting.clear();
        let journal = journal::read(&self.bytes, LAB).map_err(|error| error.to_string())?;
        let records = journal.map(|journal| journal.records);
        self.writer = Some(Writer::new(LAB, records.as_ref().map_or(0, Vec::len)));
        // A laboratory that has just been made has an empty journal.
        Ok(Some(records.unwrap_or_default()))
    }

    /// Everything up to a write is on disk.
    fn sync(&mut self, number: u64) {
        while let Some(write) = self.waiting.pop_front_if(|write| write.number <= number) {
            let Some(writer) = &mut self.writer else { return };
            let text = writer.bytes(&write.change);
            if matches!(write.change, Change::Replace(_)) {
                self.bytes.clear();
            }
            self.bytes.extend(text.into_bytes());
        }
    }
}

impl Simulation {
    /// The VM manager, if its process runs.
    pub fn vmm(&self) -> Option<&VmManager> {
        self.vm_manager.machine.as_ref().map(|station| &station.manager)
    }

    /// What the VM manager said, and when.
    pub fn vmm_events(&self) -> &Kept<(Time, Event), KEPT_MAX> {
        &self.vm_manager.events
    }

    /// Asks the VM manager for something, now. The request's number, by which [`Simulation::vmm_reply`] finds the answer; `None`
    /// when its process does not run.
    pub fn ask_vmm(&mut self, request: Request) -> Option<RequestId> {
        self.vm_manager.machine.as_ref()?;
        let id = RequestId(self.vm_manager.next_request);
        self.vm_manager.next_request += 1;
        self.feed_vmm(weft_vm::Input::Request { id, request });
        Some(id)
    }

    /// The VM manager's answer to a request, and when it came. A process that ends takes the requests with it that it has not
    /// answered.
    pub fn vmm_reply(&self, id: RequestId) -> Option<(Time, &Result<Reply, VmError>)> {
        let replies = self.vm_manager.replies.iter().rev();
        replies.filter(|(_, own, _)| *own == id).map(|(at, _, reply)| (*at, reply)).next()
    }

    /// Lets everything happen until the VM manager answers somebody, or until `limit`. Whether it has answered.
    pub fn run_until_vmm_replies(&mut self, limit: Time) -> bool {
        let before = self.vm_manager.replies.count();
        while self.vm_manager.replies.count() == before {
            if !self.step(limit) {
                self.now = self.now.max(limit);
                return false;
            }
        }
        true
    }

    /// Whether the VM manager has nothing under way; one whose process does not run has not.
    pub(super) fn is_vmm_at_rest(&self) -> bool {
        let process = &self.vm_manager;
        process.machine.as_ref().is_none_or(|station| station.manager.is_at_rest())
    }

    /// Starts the VM manager's process with the journal that there is.
    pub(super) fn start_vmm(&mut self, at: Time) {
        let places = Places::new(self.vm_manager.parts.values().cloned().collect());
        let mut options = weft_vm::Options { scheme: self.scheme(), ..self.options.vmm.clone() };
        if !self.options.standbys.is_empty() {
            let sm = &self.options.sm;
            options = options.with_standbys(Time::from_millis(sm.polling_ms), sm.polling_retries);
        }
        self.vm_manager.life += 1;
        // Answers to the process before match nothing.
        let seed = self.vm_manager.life.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let keys = (self.options.sm.sa_key, self.options.sm.m_key);
        let sa = SaClient::new(keys, seed).waits(options.ask_for);
        let hosts: Vec<HostName> = places.hosts().map(|host| host.name.clone()).collect();
        self.vm_manager.machine = Some(Station::new(VmManager::new(options), sa, places));
        let start = match self.vm_manager.disk.open() {
            Ok(journal) => weft_vm::Input::Start { journal, hosts, guids: self.vm_manager.guids.clone() },
            Err(words) => weft_vm::Input::DiskFailed(words),
        };
        self.feed_vmm(start);
        let up = at.max(self.now) + self.options.attach_delay;
        let hosts: Vec<usize> = self.vm_manager.parts.keys().copied().collect();
        hosts.into_iter().for_each(|host| self.push_vm_news(up, VmNews::HostUp(host)));
        self.start_program(VMM, at);
    }

    /// The VM manager's process ends.
    pub(super) fn kill_vmm(&mut self) {
        self.vm_manager.machine = None;
        self.vm_manager.disk.waiting.clear();
        self.end_program(VMM);
    }

    fn scheme(&self) -> Scheme {
        if self.options.empty_slots { Scheme::Dynamic } else { Scheme::Prepopulated }
    }

    /// What the VM manager is told of the fabric: as it is at first.
    pub(super) fn configure_vmm(&mut self) {
        if !self.options.with_vmm {
            return;
        }
        let adapters = self.options.adapters.iter().enumerate();
        let part = |(host, adapter)| Some((host, HostPart::of(&self.fabric, adapter, "")?));
        self.vm_manager.parts = adapters.filter_map(part).collect();
        self.vm_manager.guids = all_guids(&self.fabric);
    }

    /// A host of the VM manager's configuration.
    pub(super) fn host_part(&self, host: usize) -> Option<&HostPart> {
        self.vm_manager.parts.get(&host)
    }

    /// The slots as the VM manager knows them; none when its process does not run.
    pub(super) fn slot_places(&self) -> Cow<'_, Places> {
        self.vm_manager.machine.as_ref().map_or_else(Cow::default, |station| Cow::Borrowed(&station.places))
    }

    /// The name of a host as the VM manager has it, by its physical function.
    pub fn host_name(&self, pf: NodeIndex) -> Option<HostName> {
        let host = self.options.adapters.iter().position(|adapter| adapter.pf == pf)?;
        self.host_part(host).map(|part| part.name.clone())
    }

    pub(super) fn push_vm_news(&mut self, at: Time, news: VmNews) {
        if self.vm_manager.machine.is_some() {
            let life = self.vm_manager.life;
            self.push_rare(at, Rare::Vm { life, news: Box::new(news) });
        }
    }

    /// Something has arrived at the VM manager, or at an agent that it tells something.
    pub(super) fn vm_news(&mut self, life: u64, news: VmNews) {
        if life != self.vm_manager.life || self.vm_manager.machine.is_none() {
            return;
        }
        match news {
            VmNews::Command(host, command) => self.slot_command(host, *command),
            VmNews::Answer(input) => self.feed_vmm(*input),
            VmNews::Synced(number) => {
                self.vm_manager.disk.sync(number);
                self.feed_vmm(weft_vm::Input::Synced(number));
            }
            VmNews::HostUp(host) if self.device(self.options.adapters[host].pf).is_some() => {
                if let Some(host) = self.host_part(host).map(|part| part.name.clone()) {
                    self.feed_vmm(weft_vm::Input::HostUp(host));
                }
            }
            VmNews::HostUp(_) => {}
            VmNews::HostEnded(host) => {
                let Some(host) = self.host_part(host).map(|part| part.name.clone()) else { return };
                self.feed_vmm(weft_vm::Input::HostDown(host.clone()));
                let how = "no process holds its lock".to_owned();
                self.feed_vmm(weft_vm::Input::HostEnded { host, incarnation: None, how });
            }
        }
    }

    fn feed_vmm(&mut self, input: weft_vm::Input) {
        self.feed_station(Input::Vm(input));
    }

    pub(super) fn feed_station(&mut self, input: Input) {
        let Some(input) = self.keep_for_frozen_vmm(input) else { return };
        let now = self.now;
        if let Some(station) = &mut self.vm_manager.machine {
            station.handle_input(now, input);
            self.drain_vmm();
        }
    }

    pub(super) fn tell_vmm(&mut self, event: ProgramEvent<'_>) {
        let (_, _, port) = self.guids_at(VMM);
        self.feed_station(match event {
            ProgramEvent::Attached => Input::Attached(port),
            ProgramEvent::Detached => Input::Detached,
            ProgramEvent::Receive(mad) => Input::Mad(*mad),
            ProgramEvent::PortChanged(_) => Input::PortChanged,
        });
    }

    pub(super) fn wake_vmm(&mut self) {
        let now = self.now;
        if let Some(station) = &mut self.vm_manager.machine {
            station.handle_timeout(now);
            self.drain_vmm();
        }
    }

    pub(super) fn drain_vmm(&mut self) {
        while let Some(output) = self.vm_manager.machine.as_mut().and_then(Machine::poll_output) {
            match output {
                Output::Send(mad) => self.push_mad(VMM, true, Box::new(mad)),
                Output::Vm(output) => self.vmm_output(output),
            }
        }
        let due = self.vm_manager.machine.as_ref().and_then(Machine::poll_timeout);
        self.wake_program_at(VMM, due);
    }

    fn vmm_output(&mut self, output: weft_vm::Output) {
        match output {
            weft_vm::Output::Journal(write) => {
                let at = self.now + self.options.journal_sync;
                self.push_vm_news(at, VmNews::Synced(write.number));
                self.vm_manager.disk.waiting.push_back(write);
            }
            weft_vm::Output::Command { host, command } => {
                let at = self.now + self.options.attach_delay;
                if let Some(host) = self.host_number(&host) {
                    self.push_vm_news(at, VmNews::Command(host, Box::new(command)));
                }
            }
            weft_vm::Output::Reply { id, result } => self.vm_manager.replies.push((self.now, id, result)),
            weft_vm::Output::Event(event) => {
                if self.trace.is_on() {
                    self.trace.line(
                        self.now,
                        "vmm",
                        format_args!("{:<24}", "vmm"),
                        format_args!("{event:?}"),
                    );
                }
                self.disturb();
                self.vm_manager.events.push((self.now, event));
            }
            // The station asks the subnet manager itself.
            weft_vm::Output::AskSm(_) => {}
        }
    }

    /// The adapter of a host, by its place in the options.
    fn host_number(&self, name: &HostName) -> Option<usize> {
        self.vm_manager.parts.iter().find(|(_, part)| part.name == *name).map(|(host, _)| *host)
    }
}
