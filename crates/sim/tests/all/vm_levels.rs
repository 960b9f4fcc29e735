//! Machines that move where service levels differ by pair: they get the levels of their new place, their peers and they send on those after
//! the move, and queue pairs are held where a mixture could close a circle.
//!
//! A ring of six switches for `lash` and `dfsssp`, three leaves for `vftree` and `pftree`.

use std::collections::BTreeMap;

use rest::quiet;
use vms::{KEY, open, port, report, stream};
use weft_host::stack::Notices;
use weft_host::traffic::FlowReport;
use weft_machine::{Random, Time};
use weft_routing::{DEFAULT_PKEY, Isolation, Member, Partition, Partitions};
use weft_sim::{Fault, Process, SimOptions, Simulation};
use weft_sm::{Event, LidScheme, RepathUse};
use weft_topology::generate::{GenerateOptions, ring, xgft};
use weft_topology::{NodeIndex, PortRef, Virtualised};
use weft_vm::{Create, Detach, Hypervisor, Migrate, MoveCounts, Reply, Request, RequestId, Route};
use weft_wire::{Guid, ServiceLevel};

use crate::support::rest;
use crate::support::seeds;
use crate::support::vms;

/// The time that a request may take.
const PATIENCE: Time = Time::from_secs(200);
/// Until hosts have asked for their paths again.
const SETTLE: Time = Time::from_secs(12);
/// The same after deaths: until holds have ended by themselves, and what was lost is repeated.
const HELD_AT_MOST: Time = Time::from_secs(150);
const WINDOW: Time = Time::from_millis(500);

/// The machine's GUID with dynamic LIDs.
const MACHINE: Guid = Guid(0x0211_0000_0000_0001);

/// What each flow sends, in bytes per second.
const RATE: u64 = 2_000_000;

/// Flows from hosts to the machine, and from the machine to hosts, by host.
const TO: u32 = 100;
const FROM: u32 = 200;

/// The number of a peer that is a machine.
const FRIEND: u32 = 9;

struct Site {
    simulation: Simulation,
    /// Hosts that talk to the machine, both ways.
    peers: Vec<u32>,
}

impl Site {
    fn new(engine: &str, is_dynamic: bool, seed: u64, rate: u64) -> Self {
        Self::with(engine, is_dynamic, seed, rate, Notices::All)
    }

    /// Where servers hand notices on, another machine is a peer as well.
    fn with(engine: &str, is_dynamic: bool, seed: u64, rate: u64, notices: Notices) -> Self {
        let is_tree = matches!(engine, "vftree" | "pftree");
        let options = GenerateOptions::default();
        // Tenants share links where there is one spine.
        let spines = if engine == "pftree" { 1 } else { 3 };
        let physical = if is_tree { xgft(&[2, 3], &[1, spines], &options) } else { ring(6, 1, &options) };
        let Virtualised { fabric, adapters } = physical.unwrap().virtualised(2).unwrap();
        let mut options = SimOptions { hosts: true, recabling: true, adapters, ..SimOptions::default() };
        options.sm.routing.chain = format!("{engine},no_fallback").parse().unwrap();
        options.sm.keys.sa_key = KEY;
        // 67 ms, so that packets of an old way are gone soon.
        options.sm.lanes.packet_life_time = 14;
        if is_dynamic {
            (options.empty_slots, options.sm.vm_lids.scheme) = (true, LidScheme::Dynamic);
        }
        if engine == "pftree" {
            // Hosts of even numbers are one tenant's, and those of odd ones another's. The machine talks to all by the default partition.
            let members = |rest: u32| (0..6).filter(move |host| host % 2 == rest);
            let guid =
                |host: u32| fabric.port(port(fabric.find(&format!("host-{host}")).unwrap())).unwrap().guid;
            let partition = |rest: u32| Partition {
                name: String::new(),
                pkey: 1 + rest as u16,
                members: members(rest).map(|host| Member { guid: guid(host), full: true }).collect(),
                isolation: Isolation::Vlane,
            };
            let ends = fabric.hosts().filter_map(|(node, _)| Some(fabric.port(port(node))?.guid));
            let all = ends.chain([MACHINE]).map(|guid| Member { guid, full: true }).collect();
            let by_default = Partition {
                name: String::new(),
                pkey: DEFAULT_PKEY,
                members: all,
                isolation: Isolation::Def,
            };
            let list = vec![partition(0), partition(1), by_default];
            options.sm.routing.engine.partitions = Some(Partitions { list, ..Partitions::default() });
        }
        options.with_vmm = true;
        options.vmm.patience = Time::from_secs(2);
        options.host.message_overhead_ns = 50_000;
        options.host.notices = notices;
        let simulation = Simulation::new(&fabric, options, seed);
        let mut site = Self { simulation, peers: vec![1, 2, 4] };
        quiet(&mut site.simulation);
        let mut made = Create::new("web".parse().unwrap(), Some("host-0".parse().unwrap()));
        // A prepopulated function has its own.
        made.guid = is_dynamic.then_some(MACHINE);
        assert!(matches!(site.ask(Request::Create(made)), Reply::Created(_)));
        if notices == Notices::Server {
            let friend = Create::new("friend".parse().unwrap(), Some("host-2".parse().unwrap()));
            assert!(matches!(site.ask(Request::Create(friend)), Reply::Created(_)));
            site.peers.push(FRIEND);
        }
        quiet(&mut site.simulation);
        for peer in site.peers.clone() {
            let (vm, host) = (port(site.vm()), site.host(peer));
            let (of_vm, of_host) = (site.guid(vm), site.guid(host));
            for (from, to, flow, guid) in [(host, vm, TO + peer, of_vm), (vm, host, FROM + peer, of_host)] {
                let spec = stream(flow, guid);
                open(
                    &mut site.simulation,
                    from,
                    to,
                    weft_host::traffic::FlowSpec {
                        bytes_per_second: Some(rate),
                        message_bytes: 8192,
                        ..spec
                    },
                );
            }
        }
        site.pass(Time::from_secs(1));
        site
    }

    fn vm(&self) -> NodeIndex {
        self.simulation.find_vm("web").unwrap().0
    }

    fn ask(&mut self, request: Request) -> Reply {
        let id = self.simulation.ask_vmm(request).expect("a VM manager runs");
        let limit = self.simulation.now() + PATIENCE;
        while self.simulation.vmm_reply(id).is_none() {
            assert!(self.simulation.now() < limit, "no answer within {PATIENCE}");
            self.pass(Time::from_millis(10));
        }
        self.simulation.vmm_reply(id).unwrap().1.clone().unwrap()
    }

    fn wish(host: u32) -> Migrate {
        let (vm, host) = ("web".parse().unwrap(), format!("host-{host}").parse().unwrap());
        let hypervisor = Hypervisor::default();
        Migrate { vm, host, cold: false, detach: Detach::Late, hypervisor, route: Route::default() }
    }

    fn migrate(&mut self, host: u32) -> MoveCounts {
        let Reply::Migrated(migration) = self.ask(Request::Migrate(Self::wish(host))) else {
            panic!("it moves to host-{host}")
        };
        self.pass(SETTLE);
        migration.counts.unwrap()
    }

    fn host(&self, number: u32) -> PortRef {
        if number == FRIEND {
            return port(self.simulation.find_vm("friend").unwrap().0);
        }
        port(self.simulation.fabric().find(&format!("host-{number}")).unwrap())
    }

    fn guid(&self, at: PortRef) -> Guid {
        self.simulation.fabric().port(at).unwrap().guid
    }

    fn vm_guid(&self) -> Guid {
        self.simulation.slot(self.vm()).unwrap().identity.port_guid
    }

    fn pass(&mut self, time: Time) {
        self.simulation.run_until(self.simulation.now() + time);
    }

    /// Where flows begin and end, with the GUIDs that path records are about.
    fn flows(&self) -> Vec<(u32, [PortRef; 2], [Guid; 2])> {
        let (vm, of_vm) = (port(self.vm()), self.vm_guid());
        let of = |peer: &u32| {
            let (host, of_host) = (self.host(*peer), self.guid(self.host(*peer)));
            [(TO + peer, [host, vm], [of_host, of_vm]), (FROM + peer, [vm, host], [of_vm, of_host])]
        };
        self.peers.iter().flat_map(of).collect()
    }

    /// The level of a path record.
    fn level(&self, from: Guid, to: Guid) -> ServiceLevel {
        let paths = self.simulation.sm().unwrap().paths_from(from);
        paths.into_iter().find(|path| path.dgid.guid == to).unwrap().sl
    }

    /// Every flow goes on, in order and on the level of today's path record, by its sender's word and by its packets'. The levels.
    fn judge(&mut self, when: &str) -> BTreeMap<u32, ServiceLevel> {
        let flows = self.flows();
        let ends = |site: &Self| -> Vec<(FlowReport, FlowReport)> {
            let both = |(flow, [from, to], _): &(u32, [PortRef; 2], [Guid; 2])| {
                (report(&site.simulation, *from, *flow, true), report(&site.simulation, *to, *flow, false))
            };
            flows.iter().map(both).collect()
        };
        let before = ends(self);
        self.pass(WINDOW);
        let mut levels = BTreeMap::new();
        for (((flow, _, [from, to]), (_, earlier)), (sender, receiver)) in
            flows.iter().zip(&before).zip(ends(self))
        {
            let state = (&*sender.state, sender.error.as_deref());
            assert_eq!(state, ("sending", None), "flow {flow}, {when}");
            assert_eq!((receiver.disorder, receiver.error), (0, None), "flow {flow}, {when}");
            assert!(receiver.bytes > earlier.bytes, "flow {flow} stands still, {when}");
            let level = self.level(*from, *to);
            assert_eq!(sender.service_level, Some(level), "flow {flow}, {when}");
            levels.insert(*flow, level);
        }
        self.simulation.check_traffic().unwrap_or_else(|all| panic!("{when}: {all:?}"));
        levels
    }

    fn told(&self, kind: RepathUse) -> usize {
        let is_it = |event: &Event| matches!(event, Event::Repath { kind: of, .. } if *of == kind);
        self.simulation.repaths().iter().filter(|(_, event)| is_it(event)).count()
    }
}

/// How often some level was another after a move, and how often queue pairs were held.
fn moves(engine: &str, is_dynamic: bool) -> (usize, usize) {
    let mut site = Site::new(engine, is_dynamic, 1, RATE);
    let mut levels = site.judge("at first");
    let (mut changed, mut held) = (0, 0);
    for host in [3, 5, 1, 2, 0] {
        let counts = site.migrate(host);
        let when = format!("{engine}, dynamic {is_dynamic}, on host-{host}: {counts:?}");
        let now = site.judge(&when);
        changed += usize::from(now != levels);
        held += usize::from(counts.held > Time::ZERO);
        assert_eq!(site.told(RepathUse::Hold), held, "one notice a held move, {when}");
        if counts.held > Time::ZERO {
            assert!(counts.fallbacks.iter().any(|why| why.starts_with("VL ")), "{when}");
        }
        levels = now;
    }
    assert!(site.told(RepathUse::Levels) >= changed, "{engine}: {changed} moves");
    (changed, held)
}

#[test]
fn vftree_s_levels_follow_a_machine() {
    for is_dynamic in [true, false] {
        let (changed, held) = moves("vftree", is_dynamic);
        assert!(changed > 0 && held == 0, "a tree has no circle on any lane: {changed}, {held}");
    }
}

#[test]
fn pftree_s_levels_follow_a_machine() {
    for is_dynamic in [true, false] {
        let (changed, held) = moves("pftree", is_dynamic);
        assert!(changed > 0 && held == 0, "a tree has no circle on any lane: {changed}, {held}");
    }
}

#[test]
fn lash_s_levels_follow_a_machine() {
    for is_dynamic in [true, false] {
        let (changed, held) = moves("lash", is_dynamic);
        assert!(changed > 0 && held > 0, "a ring's mixtures have circles: {changed}, {held}");
    }
}

#[test]
fn dfsssp_s_levels_follow_a_machine() {
    for is_dynamic in [true, false] {
        let (changed, _) = moves("dfsssp", is_dynamic);
        assert!(changed > 0, "{changed}");
    }
}

/// A process dies at some moment of a move, and is back a little later. Whatever became of the move, no queue pair is held for ever, and all
/// flows go on in order on today's levels.
fn death(seed: u64, engine: &str) -> usize {
    let mut random = Random::of_purpose(seed, "levels");
    let mut site = Site::new(engine, random.below(2) == 0, seed, RATE / 10);
    let spare = site.host(5).node;
    for round in 0..3 {
        let host = [3, 5, 0, 1][random.below(4) as usize];
        let asked = site.simulation.ask_vmm(Request::Migrate(Site::wish(host)));
        assert!(asked.is_some(), "a VM manager runs");
        site.pass(Time::from_micros(u64::from(random.below(900_000))));
        let process = match random.below(3) {
            0 => Process::Sm,
            1 => Process::Vmm,
            // A host that neither has the machine nor talks to it.
            _ if site.simulation.find_vm("web").is_some_and(|(node, _)| node != spare) && host != 5 => {
                Process::Agent(spare)
            }
            _ => Process::Sm,
        };
        site.simulation.apply(Fault::Kill(process));
        site.pass(Time::from_millis(100 + u64::from(random.below(900))));
        site.simulation.apply(Fault::Restart(process));
        site.pass(HELD_AT_MOST);
        site.judge(&format!(
            "WEFT_SEED={seed}: {engine}, round {round}, {process:?} has died in a move to host-{host}"
        ));
    }
    site.told(RepathUse::Hold)
}

#[test]
fn no_queue_pair_is_held_for_ever() {
    let count = seeds::number("WEFT_SCHEDULES").unwrap_or(2);
    let all = seeds::number("WEFT_SEED").map_or(0..count, |seed| seed..seed + 1);
    let mut held = 0;
    for seed in all {
        held +=
            ["lash", "vftree", "dfsssp", "pftree"].iter().map(|engine| death(seed, engine)).sum::<usize>();
    }
    assert!(held > 0, "some move on a ring was held");
}

impl Site {
    /// Moves the machine until a move is held, and stops in its middle: peers hold their queue pairs, and rows are not written yet. The host
    /// that the machine leaves, and the request.
    fn begin_held_move(&mut self) -> (u32, RequestId) {
        let mut at = 0;
        for host in [3, 5, 1, 2, 0] {
            let before = self.told(RepathUse::Hold);
            let id = self.simulation.ask_vmm(Request::Migrate(Self::wish(host))).expect("a VM manager runs");
            while self.simulation.vmm_reply(id).is_none() {
                self.pass(Time::from_millis(1));
                if self.told(RepathUse::Hold) > before && self.is_held_by_peers() {
                    return (at, id);
                }
            }
            at = host;
            self.pass(SETTLE);
        }
        panic!("no move of the tour is held")
    }

    fn is_held_by_peers(&self) -> bool {
        let holds = |peer: &u32| report(&self.simulation, self.host(*peer), TO + peer, true).state == "held";
        self.peers.iter().all(holds)
    }
}

/// A peer dies before it confirms, or after: the move is refused or carried out, and the other peers go on in either case.
#[test]
fn peers_go_on_when_another_one_dies_in_a_hold() {
    for later in [0, 300] {
        let mut site = Site::new("lash", true, 1, RATE / 10);
        let (source, _) = site.begin_held_move();
        site.pass(Time::from_millis(later));
        // One that is not where the machine comes from or goes to.
        let dying = if source == 1 { 2 } else { 1 };
        let dead = site.host(dying).node;
        site.simulation.apply(Fault::Kill(Process::Agent(dead)));
        site.pass(Time::from_millis(500));
        site.simulation.apply(Fault::Restart(Process::Agent(dead)));
        site.pass(HELD_AT_MOST);
        // Its own flows have ended with it.
        site.peers.retain(|peer| *peer != dying);
        site.judge(&format!("host-{dying} has died {later} ms after it held its queue pairs"));
    }
}

/// The host that the machine leaves dies while peers hold: the request is answered, the machine runs or is said to be lost, and no queue pair
/// is held any more.
#[test]
fn a_source_that_dies_in_a_hold_leaves_no_one_waiting() {
    for later in [0, 20, 300] {
        let mut site = Site::new("lash", true, 1, RATE / 10);
        let (source, request) = site.begin_held_move();
        site.pass(Time::from_millis(later));
        let when = format!("host-{source} has died {later} ms after its machine's peers held");
        let dead = site.host(source).node;
        site.simulation.apply(Fault::Kill(Process::Agent(dead)));
        site.pass(Time::from_millis(500));
        site.simulation.apply(Fault::Restart(Process::Agent(dead)));
        site.pass(HELD_AT_MOST);
        site.peers.retain(|peer| *peer != source);
        for peer in &site.peers {
            let flow = report(&site.simulation, site.host(*peer), TO + peer, true);
            assert_ne!(flow.state, "held", "flow to the machine from host-{peer}, {when}");
        }
        let (_, reply) = site.simulation.vmm_reply(request).unwrap_or_else(|| panic!("no answer: {when}"));
        let said = reply.as_ref().map_or_else(ToString::to_string, |_| String::new());
        assert!(reply.is_ok() || said.contains("host-"), "the answer names a host: {said:?}, {when}");
        let Reply::List(list) = site.ask(Request::List) else { panic!("a list") };
        let [vm] = &list[..] else { panic!("one machine: {list:?}") };
        match vm.vm_state.as_str() {
            "running" => drop(site.judge(&when)),
            "lost" => assert!(site.simulation.find_vm("web").is_none(), "{when}"),
            other => panic!("{other}: {vm:?}, {said}, {when}"),
        }
    }
}

/// One notice a server, which the physical function hands on: it confirms for all of its functions, and a machine behind it holds too.
#[test]
fn a_server_that_hands_notices_on_holds_for_its_machines() {
    let mut site = Site::with("lash", false, 1, RATE, Notices::Server);
    let mut levels = site.judge("at first");
    let mut held = 0;
    for host in [3, 5, 1, 2, 0] {
        let counts = site.migrate(host);
        let when = format!("on host-{host}, by server: {counts:?}");
        let now = site.judge(&when);
        held += usize::from(counts.held > Time::ZERO);
        assert_eq!(site.told(RepathUse::Hold), held, "one notice a held move, {when}");
        levels = now;
    }
    assert!(held > 0 && !levels.is_empty(), "a ring's mixtures have circles");
    let friend = site.simulation.stack(site.host(FRIEND)).unwrap().suspension_counts();
    assert!(friend.holds_heard >= held as u64 && friend.senders_held > 0, "{friend:?}");
}
