//! A virtual machine moves across the tree again and again while it talks to four others: the hypervisors carry it over, the
//! subnet manager moves its LID, and no queue pair ends.
//!
//! A move so soon after another one waits until packets of the other one are gone, which is 5 s, so flows are slow here.
//!
//! `WEFT_MOVES` says how many moves (6 if not said; `cargo xtask long` makes 100), `WEFT_SEED` replays one order of them.

use std::io::Write as _;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use rest::quiet;
use vms::{KEY, ask_move, identity, open, port, report, stream};
use weft_host::stack::PathCache;
use weft_host::traffic::FlowSpec;
use weft_machine::Time;
use weft_sim::{SimOptions, Simulation, VmDone, VmStep};
use weft_sm::{LidScheme, SweepPhase};
use weft_topology::generate::{GenerateOptions, xgft};
use weft_topology::{NodeIndex, PortRef, Virtualised};
use weft_wire::*;

use crate::support::rest;
use crate::support::vms;

/// How often it moves.
const MOVES: u64 = 6;

/// The hosts that it talks to, two in each of two leaves.
const PEERS: [usize; 4] = [1, 6, 7, 14];

/// Two hosts of a leaf that it does not come to; what one sends to the other meets none of its packets.
const BYSTANDERS: [usize; 2] = [8, 9];

/// The leaf of the bystanders; each leaf has four hosts.
const THEIR_LEAF: usize = 2;

/// The bytes per second of each of its flows, and of the bystanders'.
const RATE: u64 = 200_000;
const RATE_BESIDE: u64 = 1_000_000;

/// How long hosts wait for an acknowledgement.
const ACK_TIMEOUT: Time = Time::from_secs(4);

/// How long it runs in a place.
const STAY: Time = Time::from_millis(500);

/// What the switches of the tree are: two leaves and both spines are written in a move across (vSwitch paper of 2017, 6.2).
const ACROSS: u32 = 4;

struct Site {
    simulation: Simulation,
    /// Where the machine is: a host, and one of its slots.
    at: (usize, usize),
    /// The last epoch that was used.
    epoch: u64,
}

impl Site {
    fn new(seed: u64, wakes_peers: bool) -> Self {
        Self::with(seed, |options| options.host.wakes_peers = wakes_peers)
    }

    fn with(seed: u64, change: impl FnOnce(&mut SimOptions)) -> Self {
        let whole = xgft(&[4, 4], &[1, 2], &GenerateOptions::default()).unwrap().virtualised(2).unwrap();
        let Virtualised { fabric, adapters } = whole;
        let mut options = SimOptions { hosts: true, recabling: true, adapters, ..SimOptions::default() };
        options.empty_slots = true;
        options.sm.routing.chain = "ftree,no_fallback".parse().unwrap();
        (options.sm.vm_lids.scheme, options.sm.keys.sa_key) = (LidScheme::Dynamic, KEY);
        // Seconds, as hosts really wait: senders are notified of a move, and repeat at once.
        options.host.ack_timeout = ACK_TIMEOUT;
        options.device.data.shaped = true;
        change(&mut options);
        let mut simulation = Simulation::new(&fabric, options, seed);
        quiet(&mut simulation);
        let mut site = Self { simulation, at: (0, 0), epoch: 0 };
        site.step((0, 0), 1, VmStep::Boot(identity(1)));
        quiet(&mut site.simulation);
        site
    }

    fn function(&self, (host, slot): (usize, usize)) -> NodeIndex {
        self.simulation.options().adapters[host].vfs[slot]
    }

    fn host(&self, host: usize) -> PortRef {
        port(self.simulation.options().adapters[host].pf)
    }

    fn vm(&self) -> PortRef {
        port(self.function(self.at))
    }

    /// A step in an epoch that is so much later than the last one.
    fn step(&mut self, at: (usize, usize), later: u64, step: VmStep) -> VmDone {
        self.epoch += later;
        let function = self.function(at);
        vms::step(&mut self.simulation, function, self.epoch, step).unwrap()
    }

    /// Asks the subnet manager from a hypervisor that is not its own.
    fn ask(&mut self, kind: VmMoveKind, to: (usize, usize)) -> VmMove {
        let place = |(host, slot): (usize, usize)| {
            let adapter = &self.simulation.options().adapters[host];
            (self.simulation.fabric().node(adapter.vswitch).guid, PortNum(3 + slot as u8))
        };
        let ((from_switch, from_port), (to_switch, to_port)) = (place(self.at), place(to));
        let ask = VmMove {
            kind,
            from_switch,
            from_port,
            to_switch,
            to_port,
            guid: identity(1).port_guid,
            epoch: self.epoch,
            ..VmMove::default()
        };
        let from = self.host(3).node;
        loop {
            let (status, answer) = ask_move(&mut self.simulation, from, &ask).expect("an answer");
            if answer.result == VmMoveResult::Later {
                // Packets of the move before are under way, and the machine runs on.
                assert_eq!(kind, VmMoveKind::Hold);
                self.pass(Time::from_micros(answer.took_us.into()));
                continue;
            }
            assert_eq!(status, weft_wire::status::OK, "{kind}: {}", answer.reason_text());
            return answer;
        }
    }

    /// One move. What the subnet manager says of it.
    fn migrate(&mut self, to: (usize, usize)) -> VmMove {
        self.migrate_seen(to, |_| {}).0
    }

    /// The same, with when the machine was frozen and for how long; `seen` looks before that.
    fn migrate_seen(&mut self, to: (usize, usize), seen: impl FnOnce(&Self)) -> (VmMove, (Time, Time)) {
        let from = self.at;
        self.ask(VmMoveKind::Hold, to);
        seen(self);
        let began = self.simulation.now();
        self.step(from, 1, VmStep::Freeze);
        let frozen_in = self.epoch;
        let image = self.step(from, 0, VmStep::Export).image;
        let import = VmStep::Import { identity: identity(1), from_epoch: frozen_in, image };
        self.step(to, 1, import);
        let moved = self.ask(VmMoveKind::Copy, to);
        self.step(to, 1, VmStep::Activate);
        let frozen = self.simulation.now() - began;
        self.step(from, 1, VmStep::Release { leave: None });
        self.at = to;
        (moved, (began, frozen))
    }

    /// A reliable connection that sends for ever.
    fn flow(&mut self, number: u32, from: PortRef, (to, guid): (PortRef, Guid), rate: u64) {
        let spec = FlowSpec { message_bytes: 2048, bytes_per_second: Some(rate), ..stream(number, guid) };
        open(&mut self.simulation, from, to, spec);
    }

    /// The requests for path records that the subnet manager has received, from all hosts and machines.
    fn path_queries(&self) -> u64 {
        self.simulation.sm().unwrap().sa_counts().path_queries
    }

    /// What each of the machine's flows has delivered: to its peers, and from them.
    fn delivered(&self) -> Vec<u64> {
        let ends = (0..)
            .zip(PEERS)
            .flat_map(|(nth, host)| [(self.host(host), 2 * nth), (self.vm(), 2 * nth + 1)].into_iter());
        let received = |(at, flow)| {
            let report = report(&self.simulation, at, flow, false);
            assert_eq!((report.disorder, report.error), (0, None), "flow {flow}");
            report.bytes
        };
        ends.map(received).collect()
    }

    fn pass(&mut self, time: Time) {
        let until = self.simulation.now() + time;
        self.simulation.run_until(until);
    }
}

/// Bytes per second of virtual time.
fn rate(bytes: u64, time: Time) -> f64 {
    bytes as f64 / time.as_nanos() as f64 * 1e9
}

#[test]
fn a_machine_moves_and_every_queue_pair_lives() {
    let number =
        |name: &str, usual| std::env::var(name).map_or(usual, |text| text.parse().expect("a number"));
    let (seed, moves) = (number("WEFT_SEED", 1), number("WEFT_MOVES", MOVES));
    writeln!(std::io::stderr(), "WEFT_SEED={seed}").unwrap();
    let (mut site, mut random) = (Site::new(seed, true), Pcg64::seed_from_u64(seed));
    for (nth, host) in (0..).zip(PEERS) {
        let (peer, vm) = (site.host(host), site.vm());
        let guid = site.simulation.fabric().port(peer).unwrap().guid;
        site.flow(2 * nth, vm, (peer, guid), RATE);
        site.flow(2 * nth + 1, peer, (vm, identity(1).port_guid), RATE);
    }
    let [from, to] = BYSTANDERS.map(|host| site.host(host));
    let guid = site.simulation.fabric().port(to).unwrap().guid;
    site.flow(100, from, (to, guid), RATE_BESIDE);
    site.pass(STAY);
    let bystander = |site: &Site| (site.simulation.now(), report(&site.simulation, to, 100, false).bytes);
    let (began, at_first) = bystander(&site);
    site.pass(Time::from_secs(1));
    let (undisturbed, by_then) = bystander(&site);
    let alone = rate(by_then - at_first, undisturbed - began);

    // A path to each of four peers, and the bystanders' one; from each peer to the machine.
    assert_eq!(site.path_queries(), 2 * PEERS.len() as u64 + 1, "each path is asked for once");
    let (before, mut physical, mut vswitches) = (site.simulation.lft_writes(), 0, 0);
    let sweeps = site.simulation.summaries().len();
    for nth in 0..moves {
        let to = loop {
            let to = (random.random_range(0..16), random.random_range(0..2));
            if ![site.at.0 / 4, THEIR_LEAF].contains(&(to.0 / 4)) {
                break to;
            }
        };
        let delivered = site.delivered();
        let moved = site.migrate(to);
        assert_eq!((moved.physical, moved.vswitches), (ACROSS, 2), "move {nth} to {to:?}");
        // A machine that is frozen waits for no packets: these may be under way for seconds.
        assert!(moved.took_us < 1_000_000, "move {nth} to {to:?} took {} us", moved.took_us);
        (physical, vswitches) = (physical + moved.physical_smps, vswitches + moved.vswitch_smps);
        site.pass(STAY);
        let now = site.delivered();
        let stopped = now.iter().zip(&delivered).position(|(now, before)| now <= before);
        assert_eq!(stopped, None, "a flow has stopped after move {nth} to {to:?}: {delivered:?}, {now:?}");
        assert_eq!(
            site.path_queries(),
            2 * PEERS.len() as u64 + 1,
            "move {nth} to {to:?}: someone asks again"
        );
    }
    let written = site.simulation.lft_writes() - before;
    assert_eq!(written, u64::from(physical + vswitches), "switches were written by moves alone");

    let (end, in_the_end) = bystander(&site);
    let beside = rate(in_the_end - by_then, end - undisturbed);
    assert!((beside / alone - 1.0).abs() < 0.01, "{beside} beside the moves, {alone} without, seed {seed}");
    assert_eq!(report(&site.simulation, from, 100, true).repeated, 0, "bystanders repeat nothing");
    site.simulation.check_traffic().unwrap_or_else(|all| panic!("seed {seed}: {all:?}"));
    let mut phases = site.simulation.summaries().iter().skip(sweeps).flat_map(|(_, one)| &one.phases);
    assert!(phases.all(|one| one.phase != SweepPhase::Discover), "no move led to a heavy sweep");
    site.simulation.check_picture().unwrap_or_else(|all| panic!("seed {seed}: {all:?}"));
}

/// One host of each leaf sends to a machine that moves to any host of any leaf. Where the plan says that no switch gets its rows late,
/// each of them is without the machine for no longer than that is frozen, and until its next message after that.
#[test]
fn a_host_of_every_leaf_reaches_a_machine_that_moves_50_times() {
    const MOVES: u32 = 50;
    let seed = std::env::var("WEFT_SEED").map_or(1, |text| text.parse().expect("a number"));
    writeln!(std::io::stderr(), "WEFT_SEED={seed}").unwrap();
    let (mut site, mut random) = (Site::new(seed, true), Pcg64::seed_from_u64(seed));
    let peers = [1, 6, 11, 14];
    for (number, host) in (0..).zip(peers) {
        let (peer, vm) = (site.host(host), site.vm());
        site.flow(number, peer, (vm, identity(1).port_guid), RATE);
    }
    site.pass(STAY);
    let received = |site: &Site| {
        let flow = |number: u32| {
            let report = report(&site.simulation, site.vm(), number, false);
            assert_eq!((report.disorder, report.error), (0, None), "flow {number}, seed {seed}");
            report.bytes
        };
        (0..peers.len() as u32).map(flow).collect::<Vec<_>>()
    };
    // Two messages of a flow may be what is missing: the one that found the machine frozen, and the next one.
    let messages = Time::from_nanos(2 * 2048 * 1_000_000_000 / RATE);
    for nth in 0..MOVES {
        let to = loop {
            let to = (random.random_range(0..16), random.random_range(0..2));
            if to.0 != site.at.0 && !peers.contains(&to.0) {
                break to;
            }
        };
        let mut before = Vec::new();
        let (moved, frozen) = site.migrate_seen(to, |site| before = received(site));
        assert_eq!(moved.late, 0, "an intact tree needs no late rows: seed {seed}, move {nth}");
        let limit = frozen.0 + frozen.1 + messages + Time::from_millis(1);
        let is_served = |site: &Site| received(site).iter().zip(&before).all(|(now, before)| now > before);
        while !is_served(&site) {
            let (now, all) = (site.simulation.now(), received(&site));
            assert!(
                now < limit,
                "move {nth} to {to:?}, frozen for {}: {before:?} {all:?}, seed {seed}",
                frozen.1
            );
            site.pass(Time::from_micros(500));
        }
        site.pass(STAY);
    }
    site.simulation.check_traffic().unwrap_or_else(|all| panic!("seed {seed}: {all:?}"));
}

/// What a peer has sent while the machine was away is lost, and its window is full. It is notified
/// that the machine has moved, and repeats; without the notice it waits for its timeout.
#[test]
fn a_peer_that_is_told_does_not_wait_for_its_timeout() {
    for wakes_peers in [true, false] {
        let mut site = Site::new(1, wakes_peers);
        let (peer, guid) = (site.host(6), identity(1).port_guid);
        let to = site.vm();
        open(&mut site.simulation, peer, to, FlowSpec { message_bytes: 2048, ..stream(1, guid) });
        site.pass(Time::from_millis(1));
        site.migrate((14, 0));
        let received = |site: &Site| report(&site.simulation, site.vm(), 1, false).bytes;
        let (since, before) = (site.simulation.now(), received(&site));
        while received(&site) == before {
            assert!(site.simulation.now() - since < ACK_TIMEOUT + ACK_TIMEOUT, "the flow has stopped");
            site.pass(Time::from_millis(1));
        }
        let waited = site.simulation.now() - since;
        match wakes_peers {
            true => assert!(waited < Time::from_millis(100), "{waited}"),
            false => assert!(waited > Time::from_secs(3), "{waited}"),
        }
        assert_eq!(report(&site.simulation, site.vm(), 1, false).disorder, 0);
    }
}

/// The subnet manager does not know that a machine goes, and reports its port as gone and come. Its
/// peer asks for the path again, which the count of a move would show.
#[test]
fn a_peer_asks_again_when_a_machine_was_gone_without_a_move() {
    let mut site = Site::new(1, true);
    let (peer, vm, guid) = (site.host(6), site.vm(), identity(1).port_guid);
    site.flow(1, peer, (vm, guid), RATE);
    site.pass(STAY);
    let asked = site.path_queries();
    assert_eq!(asked, 1);
    let from = site.at;
    site.step(from, 1, VmStep::Freeze);
    let image = site.step(from, 0, VmStep::Export).image;
    let frozen_in = site.epoch;
    site.step(from, 1, VmStep::Release { leave: None });
    quiet(&mut site.simulation);
    site.step((14, 0), 1, VmStep::Import { identity: identity(1), from_epoch: frozen_in, image });
    site.step((14, 0), 1, VmStep::Activate);
    site.at = (14, 0);
    quiet(&mut site.simulation);
    site.pass(STAY);
    assert_eq!(site.path_queries(), asked + 1);
}

/// Thesis 003, lines 170–174 and 548–554: without a cache each peer asks again after each move; with one, no peer does.
#[test]
fn without_a_cache_each_peer_asks_again_after_a_move() {
    for cache in PathCache::ALL {
        let mut site = Site::with(1, |options| options.host.path_cache = cache);
        for (nth, host) in (0..).zip(PEERS) {
            let (peer, vm) = (site.host(host), site.vm());
            site.flow(nth, peer, (vm, identity(1).port_guid), RATE);
        }
        site.pass(STAY);
        let peers = PEERS.len() as u64;
        assert_eq!(site.path_queries(), peers, "{cache}");
        for moves in 1..=2 {
            site.migrate(if moves == 1 { (13, 0) } else { (5, 1) });
            site.pass(STAY);
            let again = if cache == PathCache::Off { moves * peers } else { 0 };
            assert_eq!(site.path_queries(), peers + again, "{cache}, move {moves}");
        }
    }
}
