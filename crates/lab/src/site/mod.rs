//! The one place that knows where the processes of a laboratory run, and what follows from it: who signals and starts them, where
//! their files are, and which verbs act on them.
//!
//! ```text
//!   Machine   processes of this machine: locks, signals, files            (machine)
//!   Hosts     a share on each of several hosts, and a hub here            (hosts: weft there, run by ssh)
//!   Door      processes behind a hub's door, which something else starts  (door: requests to each process)
//! ```
//!
//! On every site a process answers at its socket in the laboratory's folder: its own, or one that a hub carries to it.

pub mod dial;
pub mod door;
pub mod frozen;
pub mod hosts;
mod machine;
pub mod metrics;
mod places;
pub mod status;
pub mod table;

use std::path::PathBuf;
use std::process::Child;
use std::time::Duration;

use anyhow::Context;
use weft_bundle::folder::LabFolder;
use weft_bundle::folder::bundle::Bundle;
use weft_bundle::names::{AGENT, HUB, IBSIM, what};
use weft_bundle::record::LabRecord;
use weft_fault::{FaultId, Word};
use weft_process::lock::holder;

use crate::teardown::{self, TakenDown};
use door::Door;
use hosts::Shares;
use machine::Machine;
use table::{Acts, Kind};

pub(crate) use places::{host_of, remotes};

pub use machine::thaw_when_over;
pub use places::refuse_other_hosts;

/// Where the processes of a laboratory run.
#[derive(Debug)]
pub struct Site<'a> {
    lab: &'a LabFolder,
    /// Of a laboratory on several hosts.
    shares: Option<Shares>,
}

/// The site of a laboratory.
///
/// # Errors
/// When the file cannot be read that says on which hosts its processes run.
pub fn of(lab: &LabFolder) -> anyhow::Result<Site<'_>> {
    Ok(Site { lab, shares: Shares::load(lab)? })
}

impl Site<'_> {
    /// Which kind of site it is.
    pub fn kind(&self) -> Kind {
        match (&self.shares, self.lab.remote()) {
            (Some(_), _) => Kind::Hosts,
            (None, Some(_)) => Kind::Door,
            (None, None) => Kind::Machine,
        }
    }

    /// What a verb acts on here, or an error that says what to do instead.
    pub fn allows(&self, verb: &str) -> anyhow::Result<Acts> {
        table::of(verb, self.kind()).map_err(|refusal| refusal.failure(self.lab.name()))
    }

    /// Whether a process is one of this machine: its lock and its files are here, and it takes signals.
    pub fn is_local(&self, process: &str) -> bool {
        match self.kind() {
            Kind::Machine => true,
            Kind::Hosts => process == HUB,
            Kind::Door => false,
        }
    }

    /// Whether the hub here starts the processes, and keeps what they need to start again. A hub of remote processes only watches.
    pub fn starts_processes(&self) -> bool {
        self.kind() == Kind::Machine
    }

    /// Whether a recabling changes files here: agents' configurations, the topology and the record, with a journal. If not, the hub
    /// writes down which cables there are.
    pub fn has_agents_files(&self) -> bool {
        self.kind() == Kind::Machine
    }

    /// Whether the kernel here shows every process: its lock, its memory and its descriptors.
    pub fn shows_processes(&self) -> bool {
        self.kind() == Kind::Machine
    }

    /// Whether orders to processes go by the hub, so that none gets through without it.
    pub fn goes_by_hub(&self) -> bool {
        self.kind() != Kind::Machine
    }

    /// Whether a person's identity is shown to agents themselves. If not, a hub or its door leads to them, and asks for its own.
    pub fn dials_agents(&self) -> bool {
        self.kind() == Kind::Machine
    }

    /// Removes what a crashed laboratory has left, if nothing of it lives. One with remote processes may live where nothing of it does
    /// here.
    pub fn clear_dead(&self) -> anyhow::Result<bool> {
        Ok(self.kind() == Kind::Machine && teardown::clear_dead(self.lab)?)
    }

    /// The number of a process that runs.
    pub fn pid(&self, process: &str) -> anyhow::Result<Option<i32>> {
        if let Some(pids) = self.lab.remote() {
            return Ok(pids.get(process).copied());
        }
        let lock = self.lab.locks().join(process);
        let holder = holder(&lock).with_context(|| format!("cannot ask who locks {}", lock.display()))?;
        Ok(holder.map(|pid| pid.as_raw_nonzero().get()))
    }

    /// Where programs that use libibumad attach to an agent; `None` where a program of this machine has no way but the hub's.
    pub fn umad_socket(&self, agent: &str) -> Option<PathBuf> {
        self.is_local(agent).then(|| self.lab.umad_socket(agent))
    }

    /// The bundle here that its processes, or the hub that watches them, read; `None` where the hub keeps its own.
    pub fn bundle(&self) -> Option<Bundle> {
        (self.kind() != Kind::Door).then(|| self.lab.bundle())
    }

    /// Puts identities that a bundle has where these processes read theirs. Returns the hosts that did not take them, and why.
    pub fn hand_over(
        &self,
        from: &Bundle,
        record: &LabRecord,
        names: &[String],
    ) -> anyhow::Result<Vec<(String, anyhow::Error)>> {
        self.allows("identity renew")?;
        machine::copy_identities(from, &self.lab.bundle(), names)?;
        match &self.shares {
            Some(shares) => hosts::hand_over(shares, from, record, names),
            None => Ok(Vec::new()),
        }
    }

    /// A name that no fault of the laboratory has had, and the number in it.
    pub fn next_fault(&self) -> anyhow::Result<(FaultId, u32)> {
        if self.kind() != Kind::Machine {
            // Clients in other places count for themselves.
            let number = rand::random::<u32>();
            return Ok((format!("f{number:08x}").parse()?, number));
        }
        machine::next_fault(self.lab)
    }

    /// Does something to a process, and calls `noted` with that at the moment at which the event log is to have it. A child is to be
    /// waited for where the caller goes on for long: a process that was started, or one that ends a fault in time.
    pub fn carry_out(
        &self,
        order: Order,
        process: &LabProcess,
        noted: Noted<'_>,
    ) -> anyhow::Result<Option<Child>> {
        match &self.shares {
            _ if self.is_local(&process.name) => self.machine(process, noted).carry_out(order),
            Some(shares) => shares.carry_out(self.lab, order, process, noted).map(|()| None),
            None => self.door(process, noted).carry_out(order).map(|()| None),
        }
    }

    /// Has a process run that was killed.
    pub fn revive(&self, process: &LabProcess, noted: Noted<'_>) -> anyhow::Result<Option<Child>> {
        match self.kind() {
            Kind::Door => self.door(process, noted).await_return().map(|()| None),
            Kind::Machine | Kind::Hosts => self.carry_out(Order::Restart, process, noted),
        }
    }

    /// Freezes a process that may not run: then there is nothing to freeze. One behind a door is killed, and awaited.
    pub fn freeze_if_running(
        &self,
        process: &LabProcess,
        lasts: Duration,
        noted: Noted<'_>,
    ) -> anyhow::Result<Option<Child>> {
        let runs = match self.kind() {
            Kind::Door => {
                self.carry_out(Order::Kill, process, noted)?;
                return self.revive(process, noted);
            }
            _ if self.is_local(&process.name) => self.machine(process, noted).holder()?.is_some(),
            // What ran when the verb began may have ended.
            _ => status::pids(self.lab)?.is_some_and(|pids| pids.contains_key(&process.name)),
        };
        if runs { self.carry_out(Order::Freeze(Some(lasts)), process, noted) } else { Ok(None) }
    }

    /// Ends all that runs. `forget`: what cannot be reached is left. As long as something else is left, the laboratory stays known.
    pub fn stop(&self, forget: bool) -> anyhow::Result<Stopped> {
        self.allows("down")?;
        let hosts = self.shares.as_ref().map(|shares| shares.end(self.lab, forget)).transpose()?;
        Ok(Stopped { here: teardown::take_down(self.lab)?, hosts: hosts.unwrap_or_default() })
    }

    fn machine<'a>(&'a self, process: &'a LabProcess, noted: Noted<'a>) -> Machine<'a> {
        Machine { lab: self.lab, process, noted }
    }

    fn door<'a>(&'a self, process: &'a LabProcess, noted: Noted<'a>) -> Door<'a> {
        Door { lab: self.lab, process, noted }
    }
}

/// The laboratory as a verb may use it: with its remote processes that run, where the verb acts on these.
///
/// # Errors
/// When the verb does not act on such a laboratory, or its hub does not answer.
pub fn enter(lab: LabFolder, verb: &str) -> anyhow::Result<LabFolder> {
    let acts = of(&lab)?.allows(verb)?;
    match acts {
        Acts::OnFolder => Ok(lab),
        Acts::OnProcesses => hosts::entered(lab),
    }
}

/// The number of a process that runs.
///
/// # Errors
/// When its lock cannot be asked.
pub fn pid(lab: &LabFolder, process: &str) -> anyhow::Result<Option<i32>> {
    of(lab)?.pid(process)
}

/// What can be done to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// End it at once. One that does not run stays dead.
    Kill,
    /// Start it again, and kill it first if it runs.
    Restart,
    /// Freeze it, for so long where that is known. Agents freeze their nodes themselves.
    Freeze(Option<Duration>),
    /// Let it go on.
    Thaw,
}

/// What hears that something is done to a process.
pub type Noted<'a> = &'a dyn Fn(Word);

/// What was ended.
#[derive(Debug)]
pub struct Stopped {
    /// On this machine.
    pub here: TakenDown,
    /// The other hosts on which all was ended.
    pub hosts: Vec<String>,
}

/// A process of a laboratory.
#[derive(Clone, Debug)]
pub struct LabProcess {
    /// Its name among the processes.
    pub name: String,
    /// As somebody has named it: an agent by a node.
    pub given: String,
    /// The hidden verb that runs it.
    pub verb: &'static str,
    /// The devices that go with it.
    pub devices: Vec<String>,
}

impl LabProcess {
    /// Whether it runs devices, and freezes them itself.
    pub fn is_agent(&self) -> bool {
        self.verb == AGENT
    }

    /// What it is, for people.
    pub fn what(&self) -> String {
        match self.devices.as_slice() {
            [] if self.name == HUB => "the hub".to_owned(),
            [] if self.name == IBSIM => "the server for ibsim's programs".to_owned(),
            [] => what(&self.name).unwrap_or_else(|| self.name.clone()),
            [device] => format!("`{device}` ({})", self.name),
            [device, others @ ..] => {
                format!("`{device}` and {} more devices ({})", others.len(), self.name)
            }
        }
    }
}
