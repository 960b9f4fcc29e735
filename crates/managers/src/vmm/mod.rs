//! The VM manager's process: the loop of [`crate::manager`] around its machine, connections to agents, and the journal.
//!
//! ```text
//!   agents ◀─ talk.rs ─ agents.rs ─┐            ┌─ journal.rs ─▶ vms.journal
//!                                  ├─ driver.rs ┤
//!   subnet manager ◀─ MADs ──────────┘            └─ control (`weft vm`, `weft status`), /metrics
//! ```

mod agents;
mod contents;
mod driver;
mod figures;
mod journal;
mod news;
mod page;
mod talk;
mod translate;

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Context as _;
use weft_bundle::config::keys::Keys;
use weft_bundle::config::managers::{QuicPart, RemoteAgent, VmmPart};
use weft_bundle::folder::{LabFolder, bundle};
use weft_bundle::topology_file;
use weft_control::process::ProcessKind;
use weft_link::{Credentials, Line, Peer};
use weft_machine::{Machine as _, Time};
use weft_vm::station::Station;
use weft_vm::{Input, Places, SaClient, VmManager, all_guids};
use weft_wire::Guid;

use crate::door::reach::{Far, Remote};
use crate::door::serve;
use crate::manager::{Process, Seat, loopback};
use crate::start::Start;

/// Set in every GUID that the manager chooses: it is a local one (EUI-64), and none of a virtual function's configuration.
const LOCAL_GUIDS: u64 = 0x0276 << 48;

/// Where an agent is found, and what it must prove to be.
fn remote(agent: &RemoteAgent) -> Remote {
    let QuicPart { address, node } = agent.quic.clone();
    Remote { name: agent.name.clone(), address, peer: Peer::Node(node) }
}

/// What the VM manager's process goes by.
pub struct VmmConfig {
    /// Its name among the processes.
    name: String,
    seat: Seat,
    part: VmmPart,
    keys: Keys,
    folder: LabFolder,
    topology: PathBuf,
    /// Agents that run elsewhere, and what the manager proves itself to them with.
    remotes: Option<(Credentials, Vec<Remote>)>,
    /// The kind of record after which the process dies.
    die_after: Option<String>,
}

impl VmmConfig {
    /// From the laboratory's bundle. `die_after`: the kind of record after which the process dies, a fault for tests.
    pub fn of_bundle(
        process: &Start,
        metrics_port: Option<u16>,
        die_after: Option<String>,
    ) -> anyhow::Result<Self> {
        let bundle = &process.bundle;
        let part: VmmPart = bundle::load(&bundle.manager(&process.name))?;
        let mut seat = Seat::new(part.seat.clone(), process)?;
        seat.metrics = metrics_port.map(loopback).or(seat.metrics);
        let folder = process.run_folder(&part.seat.lab)?;
        let mut remotes = None;
        if !part.agents.is_empty() {
            let papers = match seat.papers.take() {
                Some(papers) => papers,
                None => process.papers(None)?,
            };
            let agents = part.agents.iter().map(remote).collect();
            remotes = Some((papers.credentials().clone(), agents));
            seat.papers = Some(papers);
        }
        let (keys, topology) = (process.keys()?, bundle.topology());
        let name = process.name.clone();
        Ok(Self { name, seat, part, keys, folder, topology, remotes, die_after })
    }
}

/// Runs until a signal asks it to end.
pub fn run(config: VmmConfig) -> anyhow::Result<()> {
    let VmmConfig { name, seat, part, keys, folder, topology, remotes, die_after } = config;
    let process = Process::begin(&seat, &name, ProcessKind::Vmm)?;
    let (mut journal, records) = journal::JournalFile::open(&folder.vm_journal(&name), &seat.lab)?;
    journal.die_after = die_after;
    let fabric = topology_file::load(&topology)?;
    let first_guid = Guid(LOCAL_GUIDS | u64::from(rand::random::<u32>()) << 16 | 1);
    let VmmPart { scheme, hosts, partitions, polls, .. } = part;
    let mut options = weft_vm::Options { scheme, first_guid, partitions, ..weft_vm::Options::default() };
    if let Some((polling_ms, retries)) = polls {
        options = options.with_standbys(Time::from_millis(polling_ms), retries);
    }
    let ask_for = options.ask_for;
    let places = Places::new(hosts);
    let mut manager = VmManager::new(options);
    let hosts = places.hosts().map(|host| host.name.clone()).collect();
    let guids = all_guids(&fabric);
    manager.handle_input(Time::ZERO, Input::Start { journal: records, hosts, guids });
    let are_here = remotes.is_none();
    let near = match remotes {
        None => folder,
        Some((credentials, remotes)) => {
            // In a folder of their own: on its host some of these agents have sockets in the manager's run folder.
            let near = LabFolder::of_run(&folder.path().join(&name), &seat.lab)?;
            near.prepare_for(&name)?;
            let (folder, counts) = (near.clone(), weft_process::DoorCounts::default());
            let line = Line::for_calls(remotes.len());
            serve::open(None, Some(Far { folder, credentials, remotes, counts, line }))?;
            near
        }
    };
    let agents = agents::Agents::start(&near, (&name, &places), are_here)
        .context("cannot start the thread for agents")?;
    let sa = SaClient::new(keys.sa_key, keys.m_key, rand::random()).waits(ask_for);
    let station = Station::new(manager, sa, places);
    let names = fabric.iter().map(|(index, node)| (node.guid, fabric.label(index)));
    let names: BTreeMap<Guid, String> = names.collect();
    let driver = driver::Driver::new(station, (journal, agents), process.events(), names);
    process.run(driver)
}
