//! Lanes held to their shares of links ([`LaneShare`]), in closed form: on one switch, and in the papers' trees, where such an arbiter is a
//! possible reason of figures that one that leaves nothing idle does not give.

use fabric::{DDR, Fabric, Flow, HOST_LIMIT};
use weft_device::{Crossbar, DataPathOptions, LaneShare};
use weft_machine::{Random, Time};
use weft_wire::PortNum;

use crate::fabric;
use crate::shares::{close, flow, options, star, tree_with};

/// What a DDR 4x link carries, in megabits per second.
const LINK: f64 = 16_000.0;
const LIMIT: f64 = HOST_LIMIT as f64;

/// Switches that hold lanes to shares, between hosts as fast as their links.
fn held(lane_share: LaneShare, crossbar: Crossbar) -> DataPathOptions {
    let crossbar = Crossbar { host_bus_percent: 0, ..crossbar };
    DataPathOptions { lane_share, crossbar, host_limit_mbps: 0, ..options() }
}

/// All senders send to host 1, each on a lane of its own: what each gets where the table has these weights.
fn into_one(options: &DataPathOptions, weights: &[(u8, u8)], lanes: &[u8]) -> Vec<f64> {
    let mut fabric = star(lanes.len() as u16 + 1, options);
    fabric.arbitrate(weights, &[], 0);
    run(&mut fabric, lanes)
}

fn run(fabric: &mut Fabric, lanes: &[u8]) -> Vec<f64> {
    let flows: Vec<Flow> = (2..).zip(lanes).map(|(from, lane)| flow(from, 1, *lane)).collect();
    let rates = fabric.run(&flows, Time::from_secs(1), Time::from_secs(6));
    fabric.check();
    rates
}

#[test]
fn a_lane_alone_has_its_share_or_the_whole_link() {
    let half = [(0, 4), (1, 4)];
    let quarter = [(0, 1), (1, 3)];
    for crossbar in [Crossbar::IS4, Crossbar::FIFO, Crossbar::UNLIMITED] {
        for (weights, lane, share) in [(half, 0, 0.5), (half, 1, 0.5), (quarter, 0, 0.25), (quarter, 1, 0.75)]
        {
            for (lane_share, wanted) in
                [(LaneShare::Fixed, share * LINK), (LaneShare::Waiting, LINK), (LaneShare::Lent, LINK)]
            {
                let rates = into_one(&held(lane_share, crossbar), &weights, &[lane]);
                close(rates[0], wanted, 0.01);
            }
        }
    }
}

/// Two lanes with packets at all times have the link between them, and neither the other's part.
#[test]
fn lanes_that_are_all_busy_leave_nothing_idle() {
    for crossbar in [Crossbar::IS4, Crossbar::FIFO, Crossbar::UNLIMITED] {
        for lane_share in [LaneShare::Fixed, LaneShare::Waiting] {
            for (weights, wanted) in [([(0, 9), (1, 9)], [0.5, 0.5]), ([(0, 1), (1, 3)], [0.25, 0.75])] {
                let rates = into_one(&held(lane_share, crossbar), &weights, &[0, 1]);
                rates.iter().zip(wanted).for_each(|(rate, wanted)| close(*rate, wanted * LINK, 0.01));
            }
        }
    }
}

/// Lanes of the high table are not held. The low table has every second packet where the limit is one packet, and its lanes their shares of
/// the link, or of what is left.
#[test]
fn the_high_table_is_held_by_its_limit_alone() {
    for (lanes, wanted) in
        [(&[2][..], &[1.0][..]), (&[0], &[0.5]), (&[2, 0], &[0.5, 0.5]), (&[2, 0, 1], &[0.5, 0.25, 0.25])]
    {
        let mut fabric = star(lanes.len() as u16 + 1, &held(LaneShare::Fixed, Crossbar::IS4));
        fabric.arbitrate(&[(0, 4), (1, 4)], &[(2, 4)], 0);
        let rates = run(&mut fabric, lanes);
        rates.iter().zip(wanted).for_each(|(rate, wanted)| close(*rate, wanted * LINK, 0.01));
    }
}

/// Before the tables are written no lane has a share.
#[test]
fn lanes_in_no_table_are_not_held() {
    for lane_share in LaneShare::ALL {
        let mut fabric = star(2, &held(lane_share, Crossbar::IS4));
        close(run(&mut fabric, &[3])[0], LINK, 0.01);
    }
}

/// A port whose lane has had its share waits: PortXmitWait counts missing arbitration as it counts missing credit.
#[test]
fn a_port_waits_while_a_lane_has_had_its_share() {
    let mut fabric = star(2, &held(LaneShare::Fixed, Crossbar::IS4));
    fabric.arbitrate(&[(0, 1), (1, 3)], &[], 0);
    run(&mut fabric, &[0]);
    let wait = |fabric: &Fabric| fabric.snapshot(0, PortNum(1)).counters.port_xmit_wait;
    let before = wait(&fabric);
    fabric.run_until(fabric.now() + Time::from_secs(1));
    close((wait(&fabric) - before) as f64, 0.75 * 1.0e9 / 4000.0, 0.01);
}

/// Random weights, lanes, packet sizes and crossbars: a fixed share is a lane's weight over all weights, a kept one its weight over those of
/// the lanes with packets.
#[test]
fn shares_follow_from_weights_whatever_they_are() {
    for seed in 1..=12 {
        let mut random = Random::new(seed);
        let count = 2 + random.below(4) as u8;
        let weights: Vec<(u8, u8)> = (0..count).map(|lane| (lane, 1 + random.below(12) as u8)).collect();
        let mut lanes: Vec<u8> = (0..count).filter(|_| random.below(3) > 0).collect();
        if lanes.is_empty() {
            lanes.push(0);
        }
        let crossbar = [Crossbar::IS4, Crossbar::FIFO, Crossbar::UNLIMITED][random.below(3) as usize];
        let payloads: Vec<u16> = lanes.iter().map(|_| 256 << random.below(4)).collect();
        let sum = |of: &dyn Fn(u8) -> bool| -> f64 {
            weights.iter().filter(|(lane, _)| of(*lane)).map(|(_, weight)| f64::from(*weight)).sum()
        };
        for (lane_share, all) in
            [(LaneShare::Fixed, sum(&|_| true)), (LaneShare::Waiting, sum(&|lane| lanes.contains(&lane)))]
        {
            let mut fabric = star(lanes.len() as u16 + 1, &held(lane_share, crossbar));
            fabric.payloads = payloads.clone();
            fabric.arbitrate(&weights, &[], 0);
            let rates = run(&mut fabric, &lanes);
            for (rate, lane) in rates.iter().zip(&lanes) {
                let wanted = LINK * f64::from(weights[usize::from(*lane)].1) / all;
                let off = (rate / wanted - 1.0).abs();
                assert!(
                    off < 0.02,
                    "seed {seed}, {lane_share}, {crossbar}, lane {lane} of {weights:?}: {rate:.0}, not {wanted:.0}"
                );
            }
        }
    }
}

/// What the flows of a paper's tree get, in Mb/s, with `lanes` lanes of equal weight.
fn papers(lane_share: LaneShare, hosts: u16, lanes: u8, flows: &[(u16, u16, u8)]) -> Vec<f64> {
    let mut fabric = tree_with(&DataPathOptions { lane_share, ..options() }, hosts, DDR);
    let weights: Vec<(u8, u8)> = (0..lanes).map(|lane| (lane, 4)).collect();
    fabric.arbitrate(&weights, &[], 0);
    let flows: Vec<Flow> = flows.iter().map(|&(from, to, lane)| flow(from, to, lane)).collect();
    let rates = fabric.run(&flows, Time::from_secs(3), Time::from_secs(6));
    fabric.check();
    rates
}

/// For each flow what it gets with shares lent, kept while packets wait, and always kept.
fn all_three(hosts: u16, lanes: u8, flows: &[(u16, u16, u8)], wanted: &[[f64; 3]]) {
    for (nth, lane_share) in LaneShare::ALL.into_iter().enumerate() {
        let rates = papers(lane_share, hosts, lanes, flows);
        for ((rate, wanted), flow) in rates.iter().zip(wanted).zip(flows) {
            let wanted = wanted[nth];
            let off = (rate / wanted - 1.0).abs();
            assert!(
                off < 0.03,
                "{lanes} lanes, {lane_share}, {flow:?}: {rate:.0}, not {wanted:.0} of {rates:.0?}"
            );
        }
    }
}

/// dFtree's experiments I and II, whose victims have the same ways to wait: 7.5 Gb/s are printed for them, and 12.9 alone.
#[test]
fn shares_in_dftree_1() {
    let (quarter, half) = (LIMIT / 4.0, LINK / 2.0);
    let contributor = [quarter, quarter, half / 4.0];
    let flows = [(1, 5, 1), (3, 5, 1), (6, 5, 1), (2, 3, 0)];
    let nearest = [LIMIT / 2.0, LIMIT / 2.0, half / 2.0];
    all_three(2, 2, &flows, &[contributor, contributor, nearest, [LINK - quarter, half, half]]);
    all_three(2, 2, &[(2, 3, 0)], &[[LIMIT, LIMIT, half]]);
}

/// vFtree's figure 4a, by the number of lanes: 7 Gb/s are printed for the victims of 2.
#[test]
fn shares_in_vftree_4a() {
    let (quarter, third) = (LIMIT / 4.0, LIMIT / 3.0);
    let flows = |ac, bc| [(1, 5, ac), (3, 5, bc), (6, 5, 0), (2, 3, 0), (4, 1, 0)];
    let victim = [LINK - quarter, LINK / 2.0, LINK / 2.0];
    all_three(2, 2, &flows(1, 1), &[[quarter; 3], [quarter; 3], [LIMIT / 2.0; 3], victim, victim]);
    let victim = [LINK - third, LINK / 2.0, LINK / 3.0];
    all_three(2, 3, &flows(1, 2), &[[third; 3], [third; 3], [third; 3], victim, victim]);
}

/// vFtree's figure 4b. With 3 lanes the victim 8-11 and 6-9 share a lane, in turn.
#[test]
fn shares_in_vftree_4b() {
    let flows = |lanes: [u8; 4]| [(1, 9, lanes[0]), (6, 9, lanes[1]), (10, 9, lanes[2]), (8, 11, lanes[3])];
    let (quarter, third, half) = (LIMIT / 4.0, LIMIT / 3.0, LINK / 2.0);
    let far = [quarter, quarter, half / 4.0];
    let victim = [LINK - 2.0 * quarter, half, half];
    all_three(4, 2, &flows([0, 0, 0, 1]), &[far, far, [LIMIT / 2.0, LIMIT / 2.0, half / 2.0], victim]);
    // A lane of two flows, and what these leave of host 9 for the other two lanes.
    let shared = [third, LINK / 4.0, LINK / 6.0];
    let other = shared.map(|shared| (LIMIT - shared) / 2.0);
    all_three(4, 3, &flows([1, 2, 0, 2]), &[other, shared, other, shared]);
    let contributor = [third, third, LINK / 4.0];
    let victim = [LINK - 2.0 * third, LINK / 3.0, LINK / 4.0];
    all_three(4, 4, &flows([1, 2, 0, 3]), &[contributor, contributor, contributor, victim]);
}
