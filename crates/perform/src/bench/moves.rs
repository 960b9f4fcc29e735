//! Time of the subnet manager from a request to move a virtual machine's LID until the last switch has
//! acknowledged its rows, within a leaf and from one leaf to another.
//!
//! Times are the subnet manager's own, those of its events `move-done`. The machine is the bench's: it ends with it.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde::Serialize;
use weft_bundle::config::managers::VmmPart;
use weft_bundle::failure::{Failure, Interrupted};
use weft_bundle::folder::{LabFolder, bundle};
use weft_bundle::names::VMM;
use weft_control::event::SmEvent;
use weft_control::vmm::{VmCreate, VmMigrate, VmMigration, VmWay};
use weft_control::{Answer, EventFilter, EventKind, Request};
use weft_lab::managers::{in_charge, subnet_managers};
use weft_lab::signals::{SIGHUP, SIGINT, SIGTERM, Signals};
use weft_lab::view::Lab;
use weft_lab::vms;
use weft_process::{Client, readable, unexpected};
use weft_topology::{Fabric, NodeIndex};
use weft_vm::HostPart;
use weft_wire::Guid;

use super::placement::processes;
use super::quiet::{self, Watch};

/// The machine that moves.
const MACHINE: &str = "bench-move";

/// How long a process may take to answer, and an event to come once the move is over.
const PATIENCE: Duration = Duration::from_secs(10);

/// The moves to make.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Moves within a leaf, and as many across.
    pub count: u32,
    /// Seconds before each move.
    pub pause_s: u64,
    /// Give numbers even if something else used the processor meanwhile.
    pub allow_busy: bool,
}

/// The result.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Processor, cores and kernel.
    pub machine: String,
    /// The laboratory's name.
    pub lab: String,
    /// Its processes.
    pub processes: usize,
    /// Seconds between two moves.
    pub pause_s: u64,
    /// Moves between two hosts of a leaf.
    pub within_a_leaf: Series,
    /// Moves from one leaf to another.
    pub across: Series,
    /// What else ran meanwhile, in shares of one core.
    pub others_used: f64,
}

/// Moves of one kind.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Series {
    /// From where to where, of each move.
    pub hosts: Vec<[String; 2]>,
    /// Blocks of forwarding tables, of each move.
    pub smps: Vec<u32>,
    /// Of each move.
    pub rounds: Vec<u32>,
    /// From the request to the last acknowledgement, by the subnet manager.
    pub took_ms: Vec<f64>,
    /// From freezing the machine until it runs again, by the VM manager.
    pub downtime_ms: Vec<f64>,
    /// Of `took_ms`.
    pub took: Spread,
    /// Of `downtime_ms`.
    pub downtime: Spread,
}

/// Milliseconds: the least number that this many of the samples do not exceed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// Half of them.
    pub median_ms: f64,
    /// Nine of ten.
    pub p90_ms: f64,
}

impl Spread {
    fn of(samples: &[f64]) -> Self {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |tenths: usize| {
            let rank = (sorted.len() * tenths).div_ceil(10);
            sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
        };
        Self { median_ms: at(5), p90_ms: at(9) }
    }
}

/// What the subnet manager reports of a move.
#[derive(Clone, Copy)]
struct BySm {
    smps: u32,
    /// From the request to the last acknowledgement.
    took_ns: u64,
}

impl Series {
    fn add(&mut self, way: [&str; 2], migration: &VmMigration, by_sm: BySm) {
        self.hosts.push(way.map(str::to_owned));
        self.smps.push(by_sm.smps);
        self.rounds.extend(migration.counts.as_ref().map(|counts| counts.rounds));
        self.took_ms.push(by_sm.took_ns as f64 / 1e6);
        self.downtime_ms.extend(migration.downtime_ns.map(|ns| ns as f64 / 1e6));
        self.took = Spread::of(&self.took_ms);
        self.downtime = Spread::of(&self.downtime_ms);
    }
}

/// The bench's machine: it ends however the measurement does.
struct Machine<'a> {
    lab: &'a Lab,
    guid: Guid,
}

impl Drop for Machine<'_> {
    fn drop(&mut self) {
        if let Err(error) = vms::ask(self.lab, VMM, Request::VmDestroy { vm: MACHINE.to_owned() }) {
            self.lab.folder.say(&format!("warning: `{MACHINE}` still runs: {error:#}"));
        }
    }
}

impl<'a> Machine<'a> {
    fn start(lab: &'a Lab, host: &str) -> anyhow::Result<Self> {
        let create =
            VmCreate { name: MACHINE.to_owned(), host: Some(host.to_owned()), ..VmCreate::default() };
        let ports = vms::start(lab, VMM, create, &mut |_| {})?;
        let port = ports.first().context("the VM manager started nothing")?;
        let guid = u64::from_str_radix(&port.virtual_port_guid, 16).context("its GUID is none")?;
        let machine = Self { lab, guid: Guid(guid) };
        anyhow::ensure!(
            port.virtual_port_lid > 0,
            "`{MACHINE}` gets no LID\nhint: `weft status` tells how the subnet manager is"
        );
        Ok(machine)
    }

    /// Moves it, and gives what the VM manager says, and what the subnet manager does.
    fn migrate(&self, to: &str, sm: &mut Client) -> anyhow::Result<(VmMigration, BySm)> {
        let way = VmWay { vm: MACHINE.to_owned(), host: to.to_owned(), ..VmWay::default() };
        let request = Request::VmMigrate(VmMigrate { way, ..VmMigrate::default() });
        let Answer::VmMigrate(migration) = vms::ask(self.lab, VMM, request)? else {
            return unexpected("vm-migrate");
        };
        let until = Instant::now() + PATIENCE;
        while let Some(event) = sm.next_event(until.saturating_duration_since(Instant::now()))? {
            if let EventKind::Sm(SmEvent::MoveDone { guid, smps, took_ns, .. }) = event.kind
                && guid.0 == self.guid
            {
                return Ok((*migration, BySm { smps, took_ns }));
            }
        }
        bail!("the subnet manager tells of no move of `{MACHINE}` to {to}")
    }
}

/// Moves a machine of its own in a laboratory that runs.
///
/// # Errors
/// Where the laboratory has too few hosts or no VM manager, a move fails, or something else used the processor meanwhile.
pub fn run(folder: &LabFolder, options: &Options) -> anyhow::Result<Report> {
    let lab = vms::load(folder)?;
    let mut stop = Signals::watch(&[SIGINT, SIGTERM, SIGHUP])?;
    let part: VmmPart = bundle::load(&lab.folder.bundle().manager(VMM))?;
    let route = round_trip(&lab, &part.hosts)?;
    let managers = subnet_managers(folder, &lab.record)?;
    let sm = in_charge(&managers).ok_or_else(|| {
        Failure::new("no subnet manager of this laboratory tells of moves").hint("leave out `--sm opensm`")
    })?;
    let mut sm = Client::connect(&folder.control(&sm.name))?;
    let kinds = vec!["move-done".to_owned()];
    let machine = Machine::start(&lab, &route[0])?;
    sm.ask(Request::Events(EventFilter { kinds, ..EventFilter::default() }), PATIENCE)?;
    let mut all = [Series::default(), Series::default()];
    let (watch, mut work) = (Watch::start(folder)?, folder.front().listener.work());
    for nth in 0..2 * options.count as usize {
        if readable(&stop, Some(Duration::from_secs(options.pause_s)))? && stop.arrived() {
            return Err(Interrupted::NO_RESULT.into());
        }
        let way = [nth, nth + 1].map(|at| route[at % route.len()].as_str());
        work.is_at(&|| format!("{} of {} moves", nth + 1, 2 * options.count));
        let (migration, done) = machine.migrate(way[1], &mut sm)?;
        all[nth % 2].add(way, &migration, done);
    }
    drop(work);
    let others_used = watch.others_used(Duration::ZERO)?;
    drop(machine);
    quiet::judge(others_used, options.allow_busy)?;
    let [within_a_leaf, across] = all;
    Ok(Report {
        machine: quiet::machine(),
        lab: folder.name().to_owned(),
        processes: processes(folder)?.len(),
        pause_s: options.pause_s,
        within_a_leaf,
        across,
        others_used,
    })
}

/// Two hosts of a leaf and two of one that is farthest from it: from each to the next, and from the last to the first, moves are
/// within a leaf and across in turns. The subnet manager's host is used where there is no other.
fn round_trip(lab: &Lab, hosts: &[HostPart]) -> anyhow::Result<[String; 4]> {
    let fabric = &lab.fabric;
    let sm = lab.record.sm.as_ref().and_then(|sm| fabric.by_guid(sm.node));
    let is_sm = |host: &HostPart| {
        let mut ports = sm.into_iter().flat_map(|sm| fabric.node(sm).end_ports());
        ports.any(|(_, port)| port.guid == host.adapter.port_guid)
    };
    let mut leaves: BTreeMap<NodeIndex, Vec<(bool, String)>> = BTreeMap::new();
    for host in hosts {
        leaves.entry(leaf_of(fabric, host)?).or_default().push((is_sm(host), host.name.to_string()));
    }
    let mut pairs = Vec::new();
    for (leaf, mut hosts) in leaves {
        hosts.sort_by_key(|(is_sm, _)| *is_sm);
        hosts.truncate(2);
        if let [(_, one), (has_sm, other)] = &hosts[..] {
            pairs.push((*has_sm, leaf, [one.clone(), other.clone()]));
        }
    }
    pairs.sort();
    let few = || {
        Failure::new("no two leaves have two hosts with virtual functions each")
            .hint("use a larger topology, as `weft topo gen xgft --children 2,2 --parents 1,2` makes it")
    };
    let (_, leaf, near) = pairs.first().ok_or_else(few)?;
    let away = hops(fabric, *leaf);
    let farther = pairs.iter().skip(1).rev().max_by_key(|(_, leaf, _)| away.get(leaf).copied());
    let (_, _, far) = farther.ok_or_else(few)?;
    Ok([&near[0], &near[1], &far[0], &far[1]].map(String::clone))
}

/// The switch above a host's vSwitch.
fn leaf_of(fabric: &Fabric, host: &HostPart) -> anyhow::Result<NodeIndex> {
    let above = fabric.by_guid(host.vswitch).and_then(|vswitch| {
        let mut peers = fabric.node(vswitch).cabled_ports().map(|(_, peer)| peer.node);
        peers.find(|peer| fabric.node(*peer).is_switch())
    });
    above.with_context(|| format!("the vSwitch of {} has no cable", host.name))
}

/// How many cables away nodes are.
fn hops(fabric: &Fabric, from: NodeIndex) -> BTreeMap<NodeIndex, u32> {
    let (mut hops, mut todo) = (BTreeMap::from([(from, 0)]), VecDeque::from([from]));
    while let Some(node) = todo.pop_front() {
        let next = hops[&node] + 1;
        for (_, peer) in fabric.node(node).cabled_ports() {
            if let Entry::Vacant(new) = hops.entry(peer.node) {
                new.insert(next);
                todo.push_back(peer.node);
            }
        }
    }
    hops
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_samples_does_not_exceed_its_quantile() {
        let samples: Vec<f64> = (1..=10).rev().map(f64::from).collect();
        assert_eq!(Spread::of(&samples), Spread { median_ms: 5.0, p90_ms: 9.0 });
        assert_eq!(Spread::of(&samples[..3]), Spread { median_ms: 9.0, p90_ms: 10.0 });
        assert_eq!(Spread::of(&[7.0]), Spread { median_ms: 7.0, p90_ms: 7.0 });
        assert_eq!(Spread::of(&[]), Spread::default());
    }
}
