//! A virtual machine moves between hosts of unlike rates and keeps its LID: path caches of its peers, and its own, follow.
//!
//! ```text
//!   H1 ─┐            ┌─ H3   1xSDR, 2 Gb/s of data
//!       S1 ═ DDR ═ S2 ─ H4   4xDDR, 16 Gb/s
//!   H2 ─┘            └─ H5
//! ```
//!
//! A sender that takes the way for faster than it is fills the buffers before the slow host, and the bystander H2 to H5, which shares the
//! cable, falls to the slow host's rate (IBA 9.11). One that takes it for slower stays slow for ever.

use rest::quiet;
use vms::{KEY, open, port, report, stream};
use weft_host::traffic::FlowSpec;
use weft_machine::Time;
use weft_sim::{SimOptions, Simulation};
use weft_sm::{Event, LidScheme, RepathUse};
use weft_topology::{NodeIndex, PortRef, Virtualised, parse};
use weft_vm::{Create, Detach, Hypervisor, Migrate, Reply, Request, Route};
use weft_wire::Guid;

use crate::support::rest;
use crate::support::vms;

const TOPOLOGY: &str = include_str!("../../../../topologies/unlike-hosts.topo");

/// Seconds of the fabric that are one of its own.
const DILATION: u32 = 1000;

/// How long a request may take, and until queues of a move have drained.
const PATIENCE: Time = Time::from_secs(130);
const SETTLE: Time = Time::from_secs(8);
const WINDOW: Time = Time::from_secs(10);

/// To the machine, from it, and from H2 to H5 beside it; and one to the machine that has ended, whose path stays in the cache of H5.
const TO: u32 = 1;
const FROM: u32 = 2;
const BESIDE: u32 = 3;
const ENDED: u32 = 4;

/// Paths in caches that end at the machine, of H1 and H5; and those in its own cache, to H1.
const AT_HOSTS: u64 = 2;
const OWN: u64 = 1;

struct Site {
    simulation: Simulation,
    vm: NodeIndex,
    is_dynamic: bool,
}

/// What flows deliver, in Gb/s of whole packets.
#[derive(Debug)]
struct Rates {
    to: f64,
    from: f64,
    beside: f64,
}

impl Site {
    /// A machine on a host, and all flows.
    fn new(is_dynamic: bool, host: &str) -> Self {
        let Virtualised { fabric, adapters } =
            parse("unlike-hosts.topo", TOPOLOGY).unwrap().virtualised(1).unwrap();
        let mut options = SimOptions { hosts: true, recabling: true, adapters, ..SimOptions::default() };
        options.sm.routing.chain = "minhop,no_fallback".parse().unwrap();
        options.sm.keys.sa_key = KEY;
        if is_dynamic {
            (options.empty_slots, options.sm.vm_lids.scheme) = (true, LidScheme::Dynamic);
        }
        options.with_vmm = true;
        options.host.dilation = DILATION;
        let data = &mut options.device.data;
        (data.shaped, data.dilation, data.host_limit_mbps) = (true, DILATION, 12_900);
        let mut simulation = Simulation::new(&fabric, options, 1);
        quiet(&mut simulation);
        let mut site = Self { simulation, vm: NodeIndex(0), is_dynamic };
        let made = Create::new("web".parse().unwrap(), Some(host.parse().unwrap()));
        assert!(matches!(site.ask(Request::Create(made)), Reply::Created(_)));
        quiet(&mut site.simulation);
        site.vm = site.simulation.find_vm("web").unwrap().0;
        let (h1, h2, h5, vm) = (site.host("H1"), site.host("H2"), site.host("H5"), port(site.vm));
        let (of_h1, of_h5, of_vm) = (site.guid(h1), site.guid(h5), site.guid(vm));
        let short = FlowSpec { bytes_max: Some(2048), message_bytes: 2048, ..stream(ENDED, of_vm) };
        open(&mut site.simulation, h5, vm, short);
        site.pass(SETTLE);
        assert_eq!(report(&site.simulation, h5, ENDED, true).state, "done");
        for (number, from, to, guid) in [(TO, h1, vm, of_vm), (FROM, vm, h1, of_h1), (BESIDE, h2, h5, of_h5)]
        {
            open(&mut site.simulation, from, to, stream(number, guid));
        }
        site.pass(SETTLE);
        site
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

    fn migrate(&mut self, host: &str) {
        let route = Route::default();
        let (vm, host) = ("web".parse().unwrap(), host.parse().unwrap());
        let hypervisor = Hypervisor::default();
        let ask = Migrate { vm, host, cold: false, detach: Detach::Late, hypervisor, route };
        assert!(matches!(self.ask(Request::Migrate(ask)), Reply::Migrated(_)));
        self.vm = self.simulation.find_vm("web").unwrap().0;
        self.pass(SETTLE);
    }

    fn host(&self, name: &str) -> PortRef {
        port(self.simulation.fabric().find(name).unwrap())
    }

    fn guid(&self, at: PortRef) -> Guid {
        self.simulation.fabric().port(at).unwrap().guid
    }

    fn pass(&mut self, time: Time) {
        self.simulation.run_until(self.simulation.now() + time);
    }

    /// Over a window.
    fn rates(&mut self) -> Rates {
        let ends = |site: &Self| [(port(site.vm), TO), (site.host("H1"), FROM), (site.host("H5"), BESIDE)];
        let bytes = |site: &Self| {
            ends(site).map(|(at, flow)| {
                let report = report(&site.simulation, at, flow, false);
                assert_eq!((report.disorder, report.error), (0, None), "flow {flow}");
                report.bytes
            })
        };
        let before = bytes(self);
        self.pass(WINDOW);
        let after = bytes(self);
        // LRH, BTH, ICRC and VCRC around 2048 bytes.
        let gbps = |at: usize| {
            let packets = (after[at] - before[at]) as f64 * 2074.0 / 2048.0;
            packets * 8.0 / WINDOW.as_secs_f64() * f64::from(DILATION) / 1e9
        };
        Rates { to: gbps(0), from: gbps(1), beside: gbps(2) }
    }

    /// Ports with a host's software behind them: those of the physical functions, and those of functions that are plugged in.
    fn subscribers(&self) -> u64 {
        let adapters = &self.simulation.options().adapters;
        let functions = if self.is_dynamic { 1 } else { adapters.len() };
        (adapters.len() + functions) as u64
    }

    /// Hosts, without functions: the notices of rates that they have heard, and the paths that they have asked for again.
    fn heard(&self) -> [u64; 2] {
        let adapters = self.simulation.options().adapters.iter();
        let counts =
            adapters.map(|adapter| self.simulation.stack(port(adapter.pf)).unwrap().suspension_counts());
        counts.fold([0; 2], |[heard, renewed], counts| {
            [heard + counts.rates_heard, renewed + counts.paths_renewed]
        })
    }

    /// Hosts that the subnet manager has notified of rates, by its events.
    fn told(&self) -> u64 {
        let told = |(_, event): &(Time, Event)| match event {
            Event::Repath { kind: RepathUse::Rate, told, .. } => u64::from(*told),
            _ => 0,
        };
        self.simulation.repaths().iter().map(told).sum()
    }

    fn queries(&self) -> u64 {
        self.simulation.sm().unwrap().sa_counts().path_queries
    }
}

#[track_caller]
fn near(rate: f64, expected: f64, within: f64, what: &str) {
    assert!((rate / expected - 1.0).abs() < within, "{what}: {rate:.2} Gb/s, expected {expected}");
}

/// Every host has its DDR link: two flows share the cable between the switches, 16 / 2, and the one the other way has its host's limit.
#[track_caller]
fn assert_fast(rates: &Rates, when: &str) {
    near(rates.to, 8.0, 0.1, &format!("to the machine, {when}"));
    near(rates.beside, 8.0, 0.1, &format!("the bystander, {when}"));
    near(rates.from, 12.9, 0.03, &format!("from the machine, {when}"));
}

/// The machine's host has one lane of SDR, 2.5 x 8/10 Gb/s; the bystander has its own hosts' limit, less than the 14 that are left.
#[track_caller]
fn assert_slow(rates: &Rates, when: &str) {
    near(rates.to, 2.0, 0.03, &format!("to the machine, {when}"));
    near(rates.from, 2.0, 0.03, &format!("from the machine, {when}"));
    near(rates.beside, 12.9, 0.03, &format!("the bystander, {when}"));
}

/// A move between unlike hosts costs a notice for each subscriber and each function that moves, and a query for each path in a cache that
/// ends at the machine or begins there; one between like hosts costs neither.
fn moves_between_unlike_hosts(is_dynamic: bool) {
    let mut site = Site::new(is_dynamic, "H4");
    assert_fast(&site.rates(), "at first");
    let hosts = site.simulation.options().adapters.len() as u64;
    let (mut queries, mut heard, mut told) = (site.queries(), [0, 0], 0);
    assert_eq!((site.heard(), site.told()), (heard, told));
    // With prepopulated LIDs it changes places with an idle function, whose paths are others too.
    let moved = if is_dynamic { 1 } else { 2 };
    for (host, is_slow, is_unlike) in [
        ("H3", true, true),
        ("H4", false, true),
        ("H5", false, false),
        ("H3", true, true),
        ("H4", false, true),
    ] {
        site.migrate(host);
        if is_unlike {
            heard = [heard[0] + moved * hosts, heard[1] + AT_HOSTS];
            (told, queries) = (told + moved * site.subscribers(), queries + AT_HOSTS + OWN);
        }
        assert_eq!(site.heard(), heard, "notices, and paths asked for again, after the move to {host}");
        assert_eq!((site.told(), site.queries()), (told, queries), "after the move to {host}");
        let rates = site.rates();
        match is_slow {
            true => assert_slow(&rates, host),
            false => assert_fast(&rates, host),
        }
    }
    site.simulation.check_traffic().unwrap_or_else(|all| panic!("{all:?}"));
}

#[test]
fn rates_follow_a_machine_with_a_dynamic_lid() {
    moves_between_unlike_hosts(true);
}

#[test]
fn rates_follow_a_machine_with_a_prepopulated_lid() {
    moves_between_unlike_hosts(false);
}

/// The slow host first: its peers have asked while it was there, and so has the machine.
#[test]
fn a_machine_that_leaves_a_slow_host_is_as_fast_as_its_new_one() {
    for is_dynamic in [true, false] {
        let mut site = Site::new(is_dynamic, "H3");
        assert_slow(&site.rates(), "at first");
        site.migrate("H4");
        assert_fast(&site.rates(), "on H4");
    }
}
