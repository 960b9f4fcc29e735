//! The balance of packets of a laboratory, from what its agents say of their devices.

use std::collections::BTreeMap;

use weft_control::agent::DeviceAccount;
use weft_experiment::{Conservation, LaneConservation};

/// Adds up the devices' accounts. What was transmitted and not received is on a cable; when cables were cut (`took`), it
/// went with one. A device that was killed forgets what it transmitted (`forgot`): then more is received than anybody
/// knows of, which counts as injected.
pub(super) fn of_devices(devices: &[DeviceAccount], took: bool, forgot: bool) -> Conservation {
    let mut lanes: BTreeMap<u8, LaneConservation> = BTreeMap::new();
    let mut violations = Vec::new();
    for device in devices {
        if !device.sound {
            violations.push(format!("the account of {} does not close", device.node));
        }
    }
    for account in devices.iter().flat_map(|device| &device.lanes) {
        let lane = account.lane.0;
        let sum = lanes.entry(lane).or_insert(LaneConservation { lane, ..LaneConservation::default() });
        sum.injected += account.injected;
        sum.moved_in += account.moved_in;
        sum.moved_out += account.moved_out;
        sum.delivered += account.to_host + account.to_own;
        sum.in_flight += account.held;
        sum.dropped += account.dropped.values().sum::<u64>();
    }
    let on_cables = |lane: u8| {
        let of_lane =
            || devices.iter().flat_map(|device| &device.lanes).filter(|account| account.lane.0 == lane);
        let transmitted: u64 = of_lane().map(|account| account.transmitted).sum();
        let received: u64 = of_lane().map(|account| account.received).sum();
        (transmitted, received)
    };
    for sum in lanes.values_mut() {
        let (transmitted, received) = on_cables(sum.lane);
        match transmitted.checked_sub(received) {
            Some(gone) if took || forgot => sum.dropped += gone,
            Some(under_way) => sum.in_flight += under_way,
            None if forgot => sum.injected += received - transmitted,
            None => violations.push(format!(
                "lane {}: {received} packets came over cables, and {transmitted} went into them",
                sum.lane
            )),
        }
    }
    Conservation { lanes: lanes.into_values().collect(), violations }
}

#[cfg(test)]
mod tests {
    use weft_control::agent::LaneAccount;
    use weft_wire::{Guid, VirtualLane};

    use super::*;

    fn device(transmitted: u64, received: u64, to_host: u64, injected: u64) -> DeviceAccount {
        let account = LaneAccount {
            lane: VirtualLane(2),
            transmitted,
            received,
            to_host,
            injected,
            ..LaneAccount::default()
        };
        DeviceAccount { node: Guid(1).into(), sound: true, lanes: vec![account] }
    }

    #[test]
    fn packets_on_a_cable_are_in_flight() {
        let balance = of_devices(&[device(10, 0, 0, 10), device(0, 8, 8, 0)], false, false);
        let lane = LaneConservation {
            lane: 2,
            injected: 10,
            delivered: 8,
            in_flight: 2,
            ..LaneConservation::default()
        };
        assert_eq!(balance, Conservation { lanes: vec![lane], violations: Vec::new() });
        let cut = of_devices(&[device(10, 0, 0, 10), device(0, 8, 8, 0)], true, false);
        assert_eq!((cut.lanes[0].in_flight, cut.lanes[0].dropped), (0, 2));
    }

    #[test]
    fn more_packets_received_than_sent_is_a_violation() {
        let balance = of_devices(&[device(10, 0, 0, 10), device(0, 11, 11, 0)], false, false);
        assert_eq!(balance.violations, ["lane 2: 11 packets came over cables, and 10 went into them"]);
        let wrong = DeviceAccount { sound: false, ..device(0, 0, 0, 0) };
        assert_eq!(
            of_devices(&[wrong], false, false).violations,
            ["the account of 0x0000000000000001 does not close"]
        );
    }
}
