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

use anyhow::Context as _;
use weft_bundle::config::managers::{QuicPart, RemoteAgent, VmmPart};
use weft_bundle::folder::{LabFolder, bundle};
use weft_bundle::partitions::{PartitionsSource, by_port};
use weft_bundle::topology_file;
use weft_control::process::ProcessKind;
use weft_link::Peer;
use weft_machine::{Machine as _, Time};
use weft_vm::station::Station;
use weft_vm::{Input, Places, SaClient, VmManager, all_guids};
use weft_wire::Guid;

use crate::door::reach::{Far, Remote};
use crate::door::serve;
use crate::manager::{Process, Seat};
use crate::start::Start;

/// Set in every GUID that the manager chooses: it is a local one (EUI-64), and none of a virtual function's configuration.
const LOCAL_GUIDS: u64 = 0x0276 << 48;

/// Where an agent is found, and what it must prove to be.
fn remote(agent: &RemoteAgent) -> Remote {
    let QuicPart { address, node } = agent.quic.clone();
    Remote { name: agent.name.clone(), address, peer: Peer::Node(node) }
}

/// Runs as the bundle says until a signal asks it to end. `metrics_port`: where it serves metrics on loopback, if not where the bundle
/// says. `die_after`: the kind of record after which the process dies, a fault for tests.
pub fn run(start: &Start, metrics_port: Option<u16>, die_after: Option<String>) -> anyhow::Result<()> {
    let (bundle, name) = (&start.bundle, &start.name);
    let VmmPart { seat, scheme, hosts, partitions, polls, agents } = bundle::load(&bundle.manager(name))?;
    let source = PartitionsSource::of(bundle);
    let partitions = source.read()?.map(|partitions| by_port(&partitions)).or(partitions);
    let folder = start.run_folder(&seat.lab)?;
    let mut seat = Seat::new(seat, start, metrics_port)?;
    if !agents.is_empty() && seat.post.papers.is_none() {
        seat.post.papers = Some(start.papers(None)?);
    }
    let papers = seat.post.papers.clone().filter(|_| !agents.is_empty());
    let (lab, keys) = (seat.post.lab.clone(), start.keys()?);
    let process = Process::begin(seat, name, ProcessKind::Vmm)?;
    let (mut journal, records) = journal::JournalFile::open(&folder.vm_journal(name), &lab)?;
    journal.die_after = die_after;
    let fabric = topology_file::load(&bundle.topology())?;
    let first_guid = Guid(LOCAL_GUIDS | u64::from(rand::random::<u32>()) << 16 | 1);
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
    let are_here = papers.is_none();
    let near = match papers {
        None => folder,
        Some(papers) => {
            // In a folder of their own: on its host some of these agents have sockets in the manager's run folder.
            let near = LabFolder::of_run(&folder.path().join(name), &lab)?;
            near.prepare_for(name)?;
            let remotes = agents.iter().map(remote).collect();
            serve::open(None, Some(Far::of(&near, &papers, remotes)))?;
            near
        }
    };
    let agents = agents::Agents::start(&near, name, &places, are_here)
        .context("cannot start the thread for agents")?;
    let sa = SaClient::new(keys.sa_key, keys.m_key, rand::random()).waits(ask_for);
    let station = Station::new(manager, sa, places);
    let names = fabric.iter().map(|(index, node)| (node.guid, fabric.label(index)));
    let names: BTreeMap<Guid, String> = names.collect();
    let driver = driver::Driver::new(station, journal, agents, process.events(), names, source);
    process.run(driver)
}
