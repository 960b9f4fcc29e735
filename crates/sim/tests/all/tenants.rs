//! Random changes of partitions beside deaths of managers, hosts and switches: keys keep their places, strangers hear nothing, two members
//! go on talking, and tables end as the file says.
//!
//! `WEFT_SCHEDULES` says how many (40 if not said), `WEFT_SEED` replays one and prints its trace on failure.

use std::collections::{BTreeMap, BTreeSet};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use weft_host::traffic::{Command, Destination, FlowId, FlowSpec, LearntPath, Transport};
use weft_machine::Time;
use weft_routing::{Isolation, Member, Partition, Partitions};
use weft_sim::{Fault, Process, SimOptions, Simulation, StandbyOptions, TraceMode};
use weft_topology::generate::{GenerateOptions, xgft};
use weft_topology::{Fabric, NodeIndex, PortRef};
use weft_wire::*;

use crate::support::counts::Counts;
use crate::support::seeds;
use crate::support::workload::{Rest, Tables, Workload, carry_out};
use seeds::run_part;

const SCHEDULES: u64 = 40;
const TWICE: u64 = 1;
const PATIENCE: Time = Time::from_secs(600);

/// Changes of a schedule.
const CHANGES: u64 = 12;
/// What happens in any forty schedules.
const HAPPENS: [&str; 8] =
    ["changes", "kept", "joined", "left", "manager deaths", "host deaths", "switch deaths", "restarts"];
/// The partition of the two that go on talking.
const STEADY: u16 = 0x0777;
/// The others' partitions.
const TENANTS: [u16; 5] = [0x0010, 0x0020, 0x0900, 0x0901, 0x0902];
/// From one look at tables to the next: longer than a change takes, so that no place comes and goes between two looks.
const LOOK: Time = Time::from_millis(250);

/// How long a place rests that a key has left.
const REST: Time = Time::from_secs(40);

/// The hosts by what they do: two of the steady partition and a stranger to it are never killed; the rest come and go, and so do all
/// switches but the leaf of the steady two.
struct Roles {
    steady: [PortRef; 2],
    stranger: PortRef,
    others: Vec<PortRef>,
    switches: Vec<NodeIndex>,
}

struct Tenants {
    random: Pcg64,
    roles: Roles,
    now: Partitions,
    /// By host, its table at the last look.
    tables: BTreeMap<PortRef, Vec<PKey>>,
    /// Places that keys have left: whose they were, and when that was seen.
    left: BTreeMap<(PortRef, usize), (u16, Time)>,
    /// Hosts whose tables begin again.
    restarted: BTreeSet<PortRef>,
    down: Option<NodeIndex>,
    switch_down: Option<NodeIndex>,
    counts: Counts,
}

fn guid(fabric: &Fabric, port: PortRef) -> Guid {
    fabric.port(port).expect("a port").guid
}

fn table(simulation: &Simulation, host: PortRef) -> Option<Vec<PKey>> {
    let device = simulation.device(host.node)?;
    Some(device.own_p_keys(host.port).to_vec())
}

impl Tenants {
    fn new(fabric: &Fabric, seed: u64, sm_ports: &[PortRef]) -> Self {
        let random = Pcg64::seed_from_u64(seed);
        let hosts = fabric.hosts().map(|(node, _)| PortRef::new(node, PortNum(1)));
        let mut free: Vec<PortRef> = hosts.filter(|host| !sm_ports.contains(host)).collect();
        let others = free.split_off(3);
        let own = fabric.peer(free[0]).expect("a leaf").node;
        let switches = fabric.switches().map(|(node, _)| node).filter(|node| *node != own).collect();
        let roles = Roles { steady: [free[0], free[1]], stranger: free[2], others, switches };
        let now = Partitions::default();
        let counts = Counts::of(&HAPPENS);
        let (tables, left, restarted) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        let mut tenants =
            Self { random, roles, now, tables, left, restarted, down: None, switch_down: None, counts };
        tenants.now = tenants.drawn(fabric);
        tenants
    }

    /// Who is where: the steady two in their partition, all others by chance in the others, the stranger among them.
    fn drawn(&mut self, fabric: &Fabric) -> Partitions {
        let [one, two] = self.roles.steady;
        let full = |port: PortRef| Member { guid: guid(fabric, port), full: true };
        let partition =
            |pkey, members| Partition { name: String::new(), pkey, members, isolation: Isolation::Def };
        let mut list = vec![partition(STEADY, vec![full(one), full(two)])];
        for pkey in TENANTS {
            let mut members = Vec::new();
            for host in self.roles.others.iter().chain(&self.roles.steady).chain([&self.roles.stranger]) {
                if self.random.random_bool(0.4) {
                    members.push(Member { guid: guid(fabric, *host), full: self.random.random_bool(0.7) });
                }
            }
            list.push(partition(pkey, members));
        }
        Partitions { list, ..Partitions::default() }
    }

    /// A manager, a host or a switch dies, or begins again.
    fn fault(&mut self, simulation: &mut Simulation) {
        match self.random.random_range(0..5) {
            0 => {
                let master = simulation.master().unwrap_or(Process::Sm);
                simulation.apply(Fault::Kill(master));
                self.counts.one("manager deaths");
            }
            1 => {
                simulation.apply(Fault::Restart(Process::Sm));
                simulation.apply(Fault::Restart(Process::Standby(0)));
                self.counts.one("restarts");
            }
            2 if self.down.is_none() => {
                let host = self.roles.others[self.random.random_range(0..self.roles.others.len())];
                simulation.apply(Fault::Kill(Process::Agent(host.node)));
                self.down = Some(host.node);
                self.restarted.insert(host);
                self.counts.one("host deaths");
            }
            3 if self.switch_down.is_none() => {
                let switch = self.roles.switches[self.random.random_range(0..self.roles.switches.len())];
                simulation.apply(Fault::Kill(Process::Agent(switch)));
                self.switch_down = Some(switch);
                self.counts.one("switch deaths");
            }
            _ => self.revive(simulation),
        }
    }

    /// The host and the switch that are dead begin again.
    fn revive(&mut self, simulation: &mut Simulation) {
        let down = [self.down.take(), self.switch_down.take()];
        down.into_iter().flatten().for_each(|node| simulation.apply(Fault::Restart(Process::Agent(node))));
    }

    /// No key has another place than at the last look.
    fn look(&mut self, simulation: &Simulation) -> Result<(), String> {
        let all = self.roles.others.iter().chain(&self.roles.steady).chain([&self.roles.stranger]);
        for host in all.copied().collect::<Vec<_>>() {
            let Some(now) = table(simulation, host) else { continue };
            let before = self.tables.insert(host, now.clone()).unwrap_or_default();
            if self.restarted.remove(&host) {
                self.left.retain(|(of, _), _| *of != host);
                continue;
            }
            for (place, key) in before.iter().enumerate().filter(|(_, key)| key.partition() != 0) {
                let there = now.iter().position(|other| other.partition() == key.partition());
                match there {
                    Some(there) if there == place => self.counts.one("kept"),
                    Some(there) => {
                        let name = simulation.fabric().port_name(host);
                        return Err(format!("{name}: {key} went from place {place} to {there}"));
                    }
                    None => {
                        self.left.insert((host, place), (key.partition(), simulation.now()));
                        self.counts.one("left");
                    }
                }
            }
            let is_new = |key: PKey| {
                key.partition() != 0 && !before.iter().any(|other| other.partition() == key.partition())
            };
            for (place, key) in now.iter().enumerate().filter(|(_, key)| is_new(**key)) {
                self.counts.one("joined");
                let Some((whose, at)) = self.left.remove(&(host, place)) else { continue };
                if whose != key.partition() && simulation.now() + LOOK < at + REST {
                    let name = simulation.fabric().port_name(host);
                    return Err(format!("{name}: {key} has place {place}, which {whose:#06x} left at {at}"));
                }
            }
        }
        Ok(())
    }

    /// A flow with the key of the steady partition, whoever sends it.
    fn flow(&self, simulation: &mut Simulation, number: u32, from: PortRef) -> Result<(), String> {
        let to = self.roles.steady[1];
        let fabric = simulation.fabric().clone();
        let lid = |port: PortRef| {
            let device = simulation.device(port.node)?;
            Some(device.port_snapshot(port.port)?.lid)
        };
        let dlid = lid(to).ok_or("a host without a LID")?;
        let (rate, p_key) = (PathRate::default(), PKey::new(STEADY, true));
        let learnt = LearntPath { to: guid(&fabric, to), dlid, service_level: ServiceLevel(0), p_key, rate };
        let transport = Transport::UnreliableDatagram;
        let expect = Command::Expect {
            flow: FlowId(number),
            from: Some(guid(&fabric, from)),
            transport,
            work: Default::default(),
            message_bytes: 256,
        };
        let spec = FlowSpec {
            flow: FlowId(number),
            to: Destination::One(guid(&fabric, to)),
            transport,
            work: Default::default(),
            message_bytes: 256,
            packet_bytes: 256,
            bytes_per_second: Some(25_600),
            bytes_max: None,
            paths: Default::default(),
            move_by: Default::default(),
        };
        let taken = simulation.command(to, expect)
            && simulation.command(from, Command::LearnPaths(vec![learnt]))
            && simulation.command(from, Command::Open(spec));
        if taken { Ok(()) } else { Err("a host takes no command".to_owned()) }
    }

    /// Packets of a flow that have arrived.
    fn arrived(&self, simulation: &Simulation, number: u32) -> u64 {
        let reports = simulation.host_reports(self.roles.steady[1].node);
        let own = reports.iter().filter(|report| !report.sender && report.flow == FlowId(number));
        own.map(|report| report.packets).sum()
    }

    /// Tables of live hosts hold exactly the keys of the file, and their switches let in no other.
    fn as_the_file_says(&self, simulation: &Simulation) -> Result<(), String> {
        let fabric = simulation.fabric();
        let all = self.roles.others.iter().chain(&self.roles.steady).chain([&self.roles.stranger]);
        for host in all {
            let Some(held) = table(simulation, *host) else { continue };
            let own = guid(fabric, *host);
            let keys = self.now.list.iter().flat_map(|partition| {
                let members = partition.members.iter().filter(move |member| member.guid == own);
                members.map(|member| PKey::new(partition.pkey, member.full))
            });
            let wanted: BTreeSet<PKey> = keys.chain([PKey(0x7fff)]).collect();
            let leaf = fabric.peer(*host).expect("a leaf");
            let filter = simulation.device(leaf.node).expect("it is on").own_p_keys(leaf.port).to_vec();
            for (what, table) in [("the host", held), ("its switch", filter)] {
                let has: BTreeSet<PKey> = table.into_iter().filter(|key| key.partition() != 0).collect();
                if has != wanted {
                    let name = fabric.port_name(*host);
                    return Err(format!("{name}: {what} has {has:?} instead of {wanted:?}"));
                }
            }
        }
        Ok(())
    }
}

impl Workload for Tenants {
    fn start(&mut self, simulation: &mut Simulation) -> Result<(), String> {
        simulation.run_until_quiet(PATIENCE).map_err(|error| error.to_string())?;
        self.flow(simulation, 1, self.roles.steady[0])?;
        self.flow(simulation, 2, self.roles.stranger)?;
        self.look(simulation)?;
        for _ in 0..CHANGES {
            if self.random.random_bool(0.5) {
                self.fault(simulation);
            }
            let fabric = simulation.fabric().clone();
            self.now = self.drawn(&fabric);
            simulation.set_partitions(&self.now);
            self.counts.one("changes");
            let before = self.arrived(simulation, 1);
            for _ in 0..self.random.random_range(2..40) {
                simulation.run_until(simulation.now() + LOOK);
                self.look(simulation)?;
            }
            if self.arrived(simulation, 1) == before {
                return Err("the two who stay together do not hear each other".to_owned());
            }
        }
        simulation.apply(Fault::Restart(Process::Sm));
        self.revive(simulation);
        Ok(())
    }

    fn check(&mut self, simulation: &mut Simulation, counts: &mut Counts) -> Result<(), String> {
        // Newcomers may wait as long as places rest.
        let rested = simulation.now() + Time::from_secs(90);
        while simulation.now() < rested {
            simulation.run_until(simulation.now() + LOOK);
            self.look(simulation)?;
        }
        simulation.run_until_quiet(simulation.now() + PATIENCE).map_err(|error| error.to_string())?;
        self.as_the_file_says(simulation)?;
        match self.arrived(simulation, 2) {
            0 => {}
            packets => return Err(format!("{packets} packets of a stranger were delivered")),
        }
        counts.sum(self.counts.clone());
        Ok(())
    }
}

/// What is wrong after the schedule of `seed`, if anything is; otherwise what happened, and the trace's hash.
fn run(seed: u64, trace: TraceMode) -> Result<(Counts, u64), String> {
    let fabric = xgft(&[3, 3], &[1, 2], &GenerateOptions::default()).map_err(|error| error.to_string())?;
    let hosts: Vec<PortRef> = fabric.hosts().map(|(node, _)| PortRef::new(node, PortNum(1))).collect();
    let (first, second) = (hosts[0], hosts[4]);
    let mut tenants = Tenants::new(&fabric, seed, &[first, second]);
    let mut options = SimOptions {
        hosts: true,
        trace,
        sm_port: Some(first),
        standbys: vec![StandbyOptions { port: second, priority: 0, sm_key: None }],
        link_jitter: Time::from_micros(50),
        ..SimOptions::default()
    };
    options.sm.election.priority = 1;
    (options.sm.election.polling_ms, options.sm.election.polling_retries) = (500, 1);
    options.sm.sweeps.sweep_interval_ms = 2_000;
    options.sm.routing.engine.partitions = Some(tenants.now.clone());
    let mut simulation = Simulation::new(&fabric, options, seed);
    let workloads: &mut [&mut dyn Workload] = &mut [&mut tenants, &mut Rest(PATIENCE), &mut Tables];
    let checked = carry_out(&mut simulation, workloads);
    let checked = checked.map(|totals| (totals, simulation.trace().hash()));
    checked.map_err(|error| {
        let lines = simulation.trace().lines();
        format!("seed {seed} (WEFT_SEED={seed} replays it)\n  {error}\n{lines}")
    })
}

/// The seeds of one of four parts, so that they run beside each other.
fn part(part: u64) {
    let Some((counts, seeds)) = run_part(part, (SCHEDULES, TWICE), run, Counts::sum) else { return };
    if seeds >= SCHEDULES / 4 {
        let never: Vec<_> = HAPPENS.into_iter().filter(|name| counts.get(name) == 0).collect();
        assert!(never.is_empty(), "{never:?} never happened: {counts:?}");
    }
}

seeds::four_parts!(part);
