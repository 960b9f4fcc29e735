use super::*;
use crate::Frame;
use weft_wire::{SwitchCongestionSetting, SwitchPortCongestion};

/// A switch of three ports that marks like this.
fn marking(setting: SwitchCongestionSetting, third: SwitchPortCongestion) -> Bench {
    let mut bench = data_switch(3, shaped());
    let device = &mut bench.device;
    device.congestion.marking.switch = setting;
    device.congestion.marking.ports = vec![Default::default(), Default::default(), Default::default(), third];
    device.data.marking_changed(&device.congestion.marking, 1);
    bench
}

/// Port 3 may send that much from now on.
fn allow(bench: &mut Bench, fccl: u16) -> Vec<Output> {
    let flow_control = FlowControl { op: 0, fctbs: 0, vl: VirtualLane(0), fccl };
    bench.input(Input::Arrive { port: PortNum(3), frame: Frame::Credit(flow_control) })
}

/// Which of six packets to port 3 are marked: those that wait while there is credit, or before there is any.
fn marked(bench: &mut Bench, credit_first: bool) -> Vec<bool> {
    if credit_first {
        allow(bench, 12 * BLOCKS);
    }
    for from in [1, 2, 1, 2, 1, 2] {
        arrive(bench, from, packet(from.into(), 3, 0));
    }
    if !credit_first {
        allow(bench, 12 * BLOCKS);
    }
    let outputs = pass(bench, bench.now + Time::from_nanos(7 * TOOK));
    sound(bench);
    sent(&outputs).iter().map(|(_, packet)| packet.fecn).collect()
}

fn setting() -> SwitchCongestionSetting {
    SwitchCongestionSetting { threshold: 15, ..Default::default() }
}

/// A sixteenth of sixteen packets of 4096 bytes is more than two of these packets, and less than three.
const LONGER_THAN_TWO: [bool; 6] = [false, true, true, true, false, false];
const NONE: [bool; 6] = [false; 6];

#[test]
fn packets_leaving_a_queue_over_threshold_are_marked() {
    let same = SwitchPortCongestion::default();
    assert_eq!(marked(&mut marking(setting(), same), true), LONGER_THAN_TWO);
    let off = SwitchCongestionSetting { threshold: 0, ..setting() };
    assert_eq!(marked(&mut marking(off, same), true), NONE);
    let high = SwitchCongestionSetting { threshold: 13, ..setting() };
    assert_eq!(marked(&mut marking(high, same), true), NONE, "never more than three sixteenths");
    let large_only = SwitchCongestionSetting { packet_size: 33, ..setting() };
    assert_eq!(marked(&mut marking(large_only, same), true), NONE);
    let large_enough = SwitchCongestionSetting { packet_size: 32, ..setting() };
    assert_eq!(marked(&mut marking(large_enough, same), true), LONGER_THAN_TWO);
}

#[test]
fn a_port_may_have_a_setting_of_its_own() {
    let own = SwitchPortCongestion { valid: true, threshold: 15, ..Default::default() };
    let off = SwitchCongestionSetting::default();
    assert_eq!(marked(&mut marking(off, own), true), LONGER_THAN_TWO);
    assert_eq!(marked(&mut marking(setting(), SwitchPortCongestion { threshold: 0, ..own }), true), NONE);
    let starvation = SwitchPortCongestion { credit_starvation: true, threshold: 0, ..own };
    assert_eq!(marked(&mut marking(setting(), starvation), true), LONGER_THAN_TWO);
}

#[test]
fn victims_are_marked_only_at_ports_in_the_victim_mask() {
    let same = SwitchPortCongestion::default();
    let mut bench = marking(setting(), same);
    assert_eq!(marked(&mut bench, false), NONE);
    // The queue has been short since: what comes now is this port's own doing.
    allow(&mut bench, 24 * BLOCKS);
    let again: Vec<u8> = vec![1, 2, 1, 2, 1, 2];
    again.iter().for_each(|&from| drop(arrive(&mut bench, from, packet(from.into(), 3, 0))));
    let until = bench.now + Time::from_nanos(7 * TOOK);
    let fecn: Vec<bool> = sent(&pass(&mut bench, until)).iter().map(|(_, packet)| packet.fecn).collect();
    assert_eq!(fecn, LONGER_THAN_TWO);
    let mut victim_mask = [0; 32];
    victim_mask[31] = 1 << 3;
    let victim = SwitchCongestionSetting { victim_mask, ..setting() };
    assert_eq!(marked(&mut marking(victim, same), false), [true, true, true, true, false, false]);
    let other = SwitchCongestionSetting { victim_mask: [0xf7; 32], ..setting() };
    assert_eq!(marked(&mut marking(other, same), false), NONE);
}

/// As many go by between two as the rate says, in the mean, and now these and now those.
#[test]
fn the_gap_between_marked_packets_is_random() {
    for rate in [1, 3] {
        let seldom = SwitchCongestionSetting { marking_rate: rate, ..setting() };
        let mut bench = marking(seldom, SwitchPortCongestion::default());
        let mut gaps = Vec::new();
        let mut gap = 0;
        for round in 1..=2000_u32 {
            allow(&mut bench, (round * 6 * u32::from(BLOCKS) % 4096) as u16);
            for from in [1, 2, 1, 2, 1, 2] {
                arrive(&mut bench, from, packet(from.into(), 3, 0));
            }
            let end = bench.now + Time::from_nanos(7 * TOOK);
            let outputs = pass(&mut bench, end);
            let marked: Vec<bool> = sent(&outputs).iter().map(|(_, packet)| packet.fecn).collect();
            assert_eq!(marked.len(), 6);
            // Of six, those that find enough waiting behind them can be marked.
            for marked in
                marked.iter().zip(LONGER_THAN_TWO).filter(|(_, can)| *can).map(|(marked, _)| *marked)
            {
                gap = if marked {
                    gaps.push(gap);
                    0
                } else {
                    gap + 1
                };
            }
        }
        let mean = gaps.iter().sum::<u32>() as f64 / gaps.len() as f64;
        assert!((mean - f64::from(rate)).abs() < 0.1 * f64::from(rate), "{mean} between two, not {rate}");
        let most = 2 * u32::from(rate);
        assert!((0..=most).all(|gap| gaps.contains(&gap)) && gaps.iter().all(|gap| *gap <= most), "{gaps:?}");
    }
}

#[test]
fn marked_packets_are_in_the_congestion_log() {
    let mut bench = marking(setting(), SwitchPortCongestion::default());
    marked(&mut bench, true);
    let log = bench.device.data.congestion_log(9);
    assert_eq!((log.log_type, log.log_events_counter, log.current_time_stamp), (1, 3, 9));
    assert_eq!((log.port_map[31], log.entries[..4].to_vec()), (1 << 3, vec![0, 2, 0, 3]));
    assert!(log.entries[36..].iter().all(|byte| *byte == 0), "three entries");
    let again = bench.device.data.congestion_log(9);
    assert_eq!((again.log_events_counter, again.entries, bench.device.packets_marked()), (0, log.entries, 3));
}
