//! Random schedules of faults on random fabrics with traffic running: whatever goes wrong, every packet is accounted for
//! at every moment, buffers and credits are as they can be, and when the traffic ends all of it comes to an end.
//!
//! `WEFT_SCHEDULES` says how many (40 if not said), `WEFT_SEED` replays one.

use std::cell::Cell;
use std::rc::Rc;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use seeds::number;
use support::anywhere::Anywhere;
use weft_machine::Time;
use weft_sim::{RandomLoss, Rule, Schedule, TraceMode, TrafficAccount, Verdict};
use weft_topology::PortRef;
use weft_wire::{Packet, VlCap};

use crate::support;
use crate::support::seeds;

const SCHEDULES: u64 = 40;

/// How long a fabric may take to come to rest after its last fault.
const PATIENCE: Time = Time::from_secs(300);

/// When the traffic ends: a while after the faults.
const TRAFFIC_UNTIL: Time = Time::from_secs(5);

/// How long what is under way then may take: nothing waits longer in a switch than a few of its lifetimes.
const DRAIN: Time = Time::from_secs(60);

/// How often everything is added up meanwhile.
const LOOK_EVERY: Time = Time::from_millis(20);

/// Decides about data lanes too.
struct Everything(RandomLoss);

impl Rule for Everything {
    fn judges_data(&self) -> bool {
        true
    }

    fn judge(&mut self, now: Time, from: PortRef, packet: &Packet, random: &mut Pcg64) -> Verdict {
        self.0.judge(now, from, packet, random)
    }
}

fn schedule(seed: u64) -> (Schedule, Pcg64) {
    let mut random = Pcg64::seed_from_u64(!seed);
    let mut schedule = Schedule::random(seed).unwrap();
    let lanes = [VlCap::Vl0, VlCap::Vl0To1, VlCap::Vl0To3];
    schedule.options.device.vl_cap = lanes[random.random_range(0..3u64) as usize];
    let data = &mut schedule.options.device.data;
    (data.shaped, data.dilation) = (true, 1000);
    data.host_limit_mbps = [0, 12_900, 4_000][random.random_range(0..3u64) as usize];
    data.buffer_packets = random.random_range(1..17);
    // 1 to 4 ms at the head of a queue and 4 to 16 ms in a switch, of fabric time: any routing may deadlock.
    let sm = &mut schedule.options.sm;
    (sm.lanes.hoq_life, sm.lanes.leaf_hoq_life) = (random.random_range(8..11), random.random_range(8..11));
    sm.lanes.packet_life_time = random.random_range(10..13);
    if seed % 4 < 2 {
        // Cables as long as a packet, so that a cut takes something with it.
        schedule.options.link_delay = Time::from_micros(500);
    }
    schedule.loss.delay_max = Time::from_millis(random.random_range(0..20));
    (schedule, random)
}

/// What became of the packets of one schedule, and the trace's hash.
fn run(seed: u64, trace: TraceMode) -> (TrafficAccount, u64) {
    let (mut schedule, mut random) = schedule(seed);
    schedule.options.trace = trace;
    let mut simulation = schedule.simulation();
    if random.random_bool(0.3) {
        let late_per_mille = schedule.loss.late_per_mille.min(5);
        simulation.set_rule(Everything(RandomLoss { lost_per_mille: 5, late_per_mille, ..schedule.loss }));
    }
    let over = Rc::new(Cell::new(false));
    simulation.set_load(Anywhere::new(schedule.options.device.vl_cap.lanes(), Rc::clone(&over), random));
    while simulation.now() < TRAFFIC_UNTIL {
        simulation.run_until(simulation.now() + LOOK_EVERY);
        support::anywhere::sound(&simulation, seed);
    }
    over.set(true);
    simulation.run_until_quiet(PATIENCE).unwrap_or_else(|error| panic!("WEFT_SEED={seed}: {error}"));
    simulation.run_until(simulation.now() + DRAIN);
    let total = support::anywhere::sound(&simulation, seed);
    // The manager goes on sweeping, but what hosts have sent is not there any more.
    let held: Vec<String> = support::anywhere::stuck(&simulation);
    assert!(held.is_empty(), "WEFT_SEED={seed}: after a minute {held:?} still wait: {total:?}");
    assert_eq!(simulation.statistics().credit_overruns, 0, "WEFT_SEED={seed}");
    let known = simulation.check();
    known.unwrap_or_else(|violations| panic!("WEFT_SEED={seed}: {}", violations[0]));
    (total, simulation.trace().hash())
}

fn part(part: u64) {
    if let Some(seed) = number("WEFT_SEED") {
        if part == 0 {
            run(seed, TraceMode::Off);
        }
        return;
    }
    let count = number("WEFT_SCHEDULES").unwrap_or(SCHEDULES);
    let mut all = [0; 6];
    let mut seeds = 0;
    for seed in (0..count).filter(|seed| seed % 2 == part) {
        seeds += 1;
        let twice = seed < 4;
        let trace = if twice { TraceMode::Hash } else { TraceMode::Off };
        let found = run(seed, trace);
        if twice {
            assert_eq!(run(seed, trace), found, "WEFT_SEED={seed}: something else the second time");
        }
        let TrafficAccount { delivered, dropped, lost, cut_off, powered_off, moved_in, .. } = found.0;
        for (sum, one) in all.iter_mut().zip([delivered, dropped, lost, cut_off, powered_off, moved_in]) {
            *sum += one;
        }
    }
    if seeds >= 20 {
        let [delivered, dropped, lost, cut_off, powered_off, _] = all;
        let happened = [delivered, dropped, lost, cut_off, powered_off];
        assert!(happened.iter().all(|&count| count > 0), "something never happened: {all:?}");
        assert!(delivered > 10 * seeds, "hosts do reach each other: {all:?}");
    }
}

#[test]
fn part_0() {
    part(0);
}

#[test]
fn part_1() {
    part(1);
}
