//! The process of the VM manager: its machine, its journal, and clients that ask it.
//!
//! ```text
//!   Request ──▶ Station ──▶ MADs to the subnet manager, as every program
//!               │    └────▶ journal: on disk after SimOptions::journal_sync
//!               └─────────▶ Command ──(attach_delay)──▶ the agent of a host ──(attach_delay)──▶ Outcome
//! ```

use std::borrow::Cow;
use std::collections::BTreeMap;

use weft_host::stack::Guids;
use weft_machine::{Machine, Time};
use weft_topology::Fabric;
use weft_vm::station::{Input, Output, Station};
use weft_vm::{
    Event, HostName, HostPart, Places, Reply, Request, RequestId, SaClient, Scheme, VmError, VmManager,
    all_guids,
};
use weft_wire::Guid;

use super::disk::Disk;
use crate::clock::{Rare, VmNews};
use crate::programs::{ProgramEvent, Programs, VMM};
use crate::world::World;
use crate::{Kept, SimOptions};

/// Events and replies that are kept.
pub(crate) const VMM_KEPT_MAX: usize = 1 << 14;

/// The VM manager, when its process runs.
#[derive(Debug)]
pub(crate) struct VmmProcess {
    machine: Option<Station>,
    /// Counts processes, so that answers to an earlier one reach none.
    life: u64,
    pub(crate) disk: Disk,
    pub(crate) events: Kept<(Time, Event), VMM_KEPT_MAX>,
    pub(crate) replies: Kept<(Time, RequestId, Result<Reply, VmError>), VMM_KEPT_MAX>,
    next_request: u64,
    /// The hosts of its configuration, by the place of their adapters in the options.
    parts: BTreeMap<usize, HostPart>,
    /// GUIDs of its fabric that no virtual machine may have.
    guids: Vec<Guid>,
}

impl VmmProcess {
    /// It does not run. Its configuration has the fabric as it is at first.
    pub(super) fn new(fabric: &Fabric, options: &SimOptions, seed: u64) -> Self {
        let adapters = options.adapters.iter().enumerate().filter(|_| options.with_vmm);
        let part = |(host, adapter)| Some((host, HostPart::of(fabric, adapter, "")?));
        Self {
            machine: None,
            life: 0,
            disk: Disk::new(options.disk, seed),
            events: Kept::default(),
            replies: Kept::default(),
            next_request: 0,
            parts: adapters.filter_map(part).collect(),
            guids: if options.with_vmm { all_guids(fabric) } else { Vec::new() },
        }
    }

    /// The manager, if its process runs.
    pub(crate) fn manager(&self) -> Option<&VmManager> {
        self.machine.as_ref().map(|station| &station.manager)
    }

    /// Whether it has nothing under way; one whose process does not run has not.
    pub(super) fn is_at_rest(&self) -> bool {
        self.manager().is_none_or(VmManager::is_at_rest)
    }

    /// Starts its process with the journal that there is.
    pub(crate) fn start(&mut self, at: Time, programs: &mut Programs, world: &mut World) {
        let places = Places::new(self.parts.values().cloned().collect());
        let scheme = Scheme::of(world.options.empty_slots, world.options.host.guids == Guids::Dynamic);
        let mut options = weft_vm::Options { scheme, ..world.options.vmm.clone() };
        let sm = &world.options.sm;
        if !world.options.standbys.is_empty() {
            options =
                options.with_standbys(Time::from_millis(sm.election.polling_ms), sm.election.polling_retries);
        }
        self.life += 1;
        // Answers to the process before match nothing.
        let seed = self.life.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let sa = SaClient::new(sm.keys.sa_key, sm.keys.m_key, seed).waits(options.ask_for);
        let hosts: Vec<HostName> = places.hosts().map(|host| host.name.clone()).collect();
        self.machine = Some(Station::new(VmManager::new(options), sa, places));
        let start = match self.disk.open() {
            Ok(journal) => weft_vm::Input::Start { journal, hosts, guids: self.guids.clone() },
            Err(words) => weft_vm::Input::DiskFailed(words),
        };
        self.feed(Input::Vm(start), programs, world);
        let up = at.max(world.clock.now()) + world.options.attach_delay;
        let hosts: Vec<usize> = self.parts.keys().copied().collect();
        hosts.into_iter().for_each(|host| self.push_news(up, VmNews::HostUp(host), world));
        programs.start(VMM, at, &mut world.clock);
    }

    /// Its process ends.
    pub(crate) fn end(&mut self) {
        self.machine = None;
        self.disk.close();
    }

    /// A host of its configuration, by the place of its adapter in the options.
    pub(crate) fn host(&self, number: usize) -> Option<&HostPart> {
        self.parts.get(&number)
    }

    /// The slots as it knows them; none when its process does not run.
    pub(crate) fn places(&self) -> Cow<'_, Places> {
        self.machine.as_ref().map_or_else(Cow::default, |station| Cow::Borrowed(&station.places))
    }

    /// A client asks for something; `None` when the process does not run.
    pub(crate) fn ask(
        &mut self,
        request: Request,
        programs: &mut Programs,
        world: &mut World,
    ) -> Option<RequestId> {
        self.machine.as_ref()?;
        let id = RequestId(self.next_request);
        self.next_request += 1;
        self.feed(Input::Vm(weft_vm::Input::Request { id, request }), programs, world);
        Some(id)
    }

    /// The answer to a request, and when it came.
    pub(crate) fn reply(&self, id: RequestId) -> Option<(Time, &Result<Reply, VmError>)> {
        let replies = self.replies.iter().rev();
        replies.filter(|(_, own, _)| *own == id).map(|(at, _, reply)| (*at, reply)).next()
    }

    /// News for the process that runs now, or for an agent from it.
    pub(crate) fn push_news(&self, at: Time, news: VmNews, world: &mut World) {
        if self.machine.is_some() {
            world.clock.push_rare(at, Rare::Vm { life: self.life, news: Box::new(news) });
        }
    }

    /// Whether news is of the process that runs now.
    pub(crate) fn is_alive(&self, life: u64) -> bool {
        life == self.life && self.machine.is_some()
    }

    /// The journal is to be on disk up to a write.
    pub(crate) fn sync(&mut self, number: u64, programs: &mut Programs, world: &mut World) {
        let input = match self.disk.sync(number) {
            Ok(()) => weft_vm::Input::Synced(number),
            Err(words) => weft_vm::Input::DiskFailed(words),
        };
        self.feed(Input::Vm(input), programs, world);
    }

    /// There is a connection to a host's agent.
    pub(crate) fn host_up(&mut self, number: usize, programs: &mut Programs, world: &mut World) {
        if let Some(host) = self.host(number).map(|part| part.name.clone()) {
            self.feed(Input::Vm(weft_vm::Input::HostUp(host)), programs, world);
        }
    }

    /// A host's agent has ended, as its parent process knows.
    pub(crate) fn host_ended(&mut self, number: usize, programs: &mut Programs, world: &mut World) {
        let Some(host) = self.host(number).map(|part| part.name.clone()) else { return };
        self.feed(Input::Vm(weft_vm::Input::HostDown(host.clone())), programs, world);
        let how = "no process holds its lock".to_owned();
        let ended = weft_vm::Input::HostEnded { host, incarnation: None, how };
        self.feed(Input::Vm(ended), programs, world);
    }

    /// Gives it something; where it is frozen, that waits.
    pub(crate) fn feed(&mut self, input: Input, programs: &mut Programs, world: &mut World) {
        let Some(input) = programs.keep_for_vmm(input) else { return };
        if let Some(station) = &mut self.machine {
            station.handle_input(world.clock.now(), input);
            self.drain(programs, world);
        }
    }

    pub(super) fn tell(&mut self, event: ProgramEvent, programs: &mut Programs, world: &mut World) {
        let (_, _, port) = programs.guids(VMM, &world.fabric);
        let input = match event {
            ProgramEvent::Attached => Input::Attached(port),
            ProgramEvent::Detached => Input::Detached,
            ProgramEvent::Receive(mad) => Input::Mad(*mad),
            ProgramEvent::PortChanged(_) => Input::PortChanged,
        };
        self.feed(input, programs, world);
    }

    pub(super) fn wake(&mut self, programs: &mut Programs, world: &mut World) {
        if let Some(station) = &mut self.machine {
            station.handle_timeout(world.clock.now());
            self.drain(programs, world);
        }
    }

    pub(super) fn drain(&mut self, programs: &mut Programs, world: &mut World) {
        while let Some(output) = self.machine.as_mut().and_then(Machine::poll_output) {
            match output {
                Output::Send(mad) => programs.push_mad(VMM, true, Box::new(mad), world),
                Output::Vm(output) => self.output(output, world),
            }
        }
        let due = self.machine.as_ref().and_then(Machine::poll_timeout);
        programs.wake_at(VMM, due, &mut world.clock);
    }

    fn output(&mut self, output: weft_vm::Output, world: &mut World) {
        match output {
            weft_vm::Output::Journal(write) => {
                let at = world.clock.now() + world.options.journal_sync;
                self.push_news(at, VmNews::Synced(write.number), world);
                self.disk.push(write);
            }
            weft_vm::Output::Command { host, command } => {
                let host = self.parts.iter().find(|(_, part)| part.name == host).map(|(host, _)| *host);
                if let Some(host) = host {
                    self.push_news(world.when_attached(), VmNews::Command(host, Box::new(command)), world);
                }
            }
            weft_vm::Output::Reply { id, result } => self.replies.push((world.clock.now(), id, result)),
            weft_vm::Output::Event(event) => {
                world.trace("vmm", format_args!("{:<24}", "vmm"), format_args!("{event:?}"));
                world.clock.disturb();
                self.events.push((world.clock.now(), event));
            }
            // The station asks the subnet manager itself.
            weft_vm::Output::AskSm(_) => {}
        }
    }
}
