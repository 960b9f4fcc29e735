//! Status of an agent, its devices and its ports.

use std::collections::BTreeMap;

use weft_control::HexGuid;
use weft_control::agent::{
    AgentStatus, DeviceAccount, DeviceStatus, LaneAccount, PortEnd, PortStatus, PortTotals,
};
use weft_control::traffic::HostFlows;
use weft_device::{Counters, DataAccount, DropReason, PortSnapshot};
use weft_link::Links;
use weft_node::{DeviceId, PortId};
use weft_wire::{Guid, VirtualLane};

use crate::cables::LinkCounts;
use crate::core::Core;
use crate::rates;
use crate::wiring::Cabled;

impl Core {
    pub(crate) fn status(&self) -> AgentStatus {
        let LinkCounts { up, total, to_dial } = self.link_counts();
        let links =
            self.links.iter().flat_map(|links| links.links().into_iter().map(|link| links.patience(link)));
        let longest = links.flatten().map(|(timeout, _)| timeout.as_millis()).max().unwrap_or(0);
        let programs = self.names.iter().map(|(_, id)| self.node.clients(id).count()).sum();
        AgentStatus {
            devices: count(self.names.len()),
            links_up: count(up),
            cable_ends: count(total),
            to_dial: count(to_dial),
            programs: count(programs),
            link_timeout_ms: u64::try_from(longest).unwrap_or(u64::MAX),
            counts: self.counts(),
            lateness: self.waking.lateness.summary(),
        }
    }

    pub(crate) fn counts(&self) -> BTreeMap<String, u64> {
        let peers = self.links.as_ref().map(Links::peer_stats).unwrap_or_default();
        let links =
            || self.links.iter().flat_map(|links| links.links().into_iter().map(|link| links.stats(link)));
        let watched = self.links.as_ref().map_or(0, Links::processes_watched);
        let overflows = links().map(|stats| stats.overflows).sum::<u64>() + self.node.inner_overflows();
        let links = [
            ("link_peers_asked", links().map(|stats| stats.asked).sum()),
            ("link_peers_starved", self.links.as_ref().map_or(0, Links::processes_starved)),
            ("link_peers_watched", watched as u64),
            ("link_frames_malformed", links().map(|stats| stats.malformed_frames).sum()),
            ("link_lanes_overflowed", overflows),
            ("peers_ignored", peers.ignored),
            ("peers_refused", peers.refused),
            ("peers_unfinished", peers.unfinished),
            ("peers_retried", peers.retried),
        ];
        self.recorder.counts().chain(links.map(|(name, count)| (name.to_owned(), count))).collect()
    }

    /// The devices from this one on, in order of GUIDs.
    fn devices_from(&self, after: Option<PortEnd>) -> impl Iterator<Item = (Guid, DeviceId)> {
        self.names.iter().skip_while(move |(guid, _)| after.is_some_and(|after| *guid < after.node.0))
    }

    /// How the devices are, from this one on.
    pub(crate) fn device_statuses(&self, after: Option<PortEnd>) -> impl Iterator<Item = DeviceStatus> {
        self.devices_from(after).filter_map(|(_, id)| self.device_status(id))
    }

    fn device_status(&self, device: DeviceId) -> Option<DeviceStatus> {
        let snapshot = self.node.device(device)?.snapshot_at(self.now());
        let ports = snapshot.ports.iter().filter(|port| port.port.0 != 0).count();
        let ends = snapshot.ports.iter().map(|port| PortId::new(device, port.port));
        let cabled: Vec<PortId> = ends.filter(|at| self.wiring.at(*at).is_some()).collect();
        let up = cabled.iter().filter(|at| self.is_link_up(**at)).count();
        Some(DeviceStatus {
            node: HexGuid(snapshot.guid),
            description: snapshot.description,
            kind: snapshot.kind.into(),
            ports: u8::try_from(ports).unwrap_or(u8::MAX),
            links_up: count(up),
            links_total: count(cabled.len()),
            programs: count(self.node.clients(device).count()),
            lft_writes: snapshot.statistics.lft_writes,
            smp_sets: snapshot.statistics.smp_sets + self.vms.past_sets(device),
        })
    }

    /// What became of packets on data lanes, from this device on.
    pub(crate) fn accounts(&self, after: Option<PortEnd>) -> impl Iterator<Item = DeviceAccount> {
        let devices = self.devices_from(after);
        devices.filter_map(|(guid, id)| {
            let mut account = self.node.device(id)?.data_account();
            self.vms.add_past(id, &mut account);
            Some(self::account(guid, &account))
        })
    }

    /// How the ports are, from this one's device on.
    pub(crate) fn ports(&self, after: Option<PortEnd>) -> impl Iterator<Item = PortStatus> {
        self.devices_from(after).flat_map(move |(_, id)| {
            let snapshot = self.node.device(id).map(|device| device.snapshot_at(self.now()));
            let ports = snapshot.into_iter().flat_map(|snapshot| snapshot.ports);
            ports.map(move |port| self.port_status(PortId::new(id, port.port), &port))
        })
    }

    /// What became of the flows of every host, in order of node and port.
    pub(crate) fn host_flows(&self) -> Vec<HostFlows> {
        let now_ns = self.now().as_nanos();
        let flows = self.node.flows().map(|(at, flows)| HostFlows { end: self.names.end(at), now_ns, flows });
        let mut flows: Vec<_> = flows.collect();
        flows.sort_by_key(|flows| flows.end);
        flows
    }

    fn port_status(&self, at: PortId, port: &PortSnapshot) -> PortStatus {
        let cabled = self.wiring.at(at);
        let link = cabled.and_then(|cabled| cabled.link);
        let carried = self.links.as_ref().zip(link);
        let peers_refused = carried.map_or(0, |(links, link)| links.stats(link).refused);
        let patience = carried.and_then(|(links, link)| links.patience(link));
        let whole = |time: u128| u64::try_from(time).unwrap_or(u64::MAX);
        PortStatus {
            end: self.names.end(at),
            peer: cabled.map(|Cabled { peer, .. }| PortEnd { node: HexGuid(peer.guid), port: peer.port }),
            delay_ns: cabled.map_or(0, |cabled| cabled.delay_ns),
            state: port.state.into(),
            phys_state: port.physical.into(),
            link_up: self.is_link_up(at),
            plugged: self.node.is_plugged(at),
            slot: self.slot_use(at.device),
            lid: port.lid,
            width_active: port.link_width_active,
            speed_active: port.link_speed_active,
            speed_ext_active: port.link_speed_ext_active,
            rate: rates::shown(port.link_active),
            rate_enabled: rates::shown(port.link_enabled),
            rate_supported: rates::shown(port.link_supported),
            link_timeout_ms: patience.map(|(timeout, _)| whole(timeout.as_millis())),
            round_trip_us: patience.map(|(_, round_trip)| whole(round_trip.as_micros())),
            totals: totals(&port.counters, peers_refused),
        }
    }
}

fn totals(counters: &Counters, peers_refused: u64) -> PortTotals {
    PortTotals {
        xmit_packets: counters.port_xmit_pkts,
        xmit_words: counters.port_xmit_data,
        rcv_packets: counters.port_rcv_pkts,
        rcv_words: counters.port_rcv_data,
        unicast_xmit_packets: counters.port_unicast_xmit_pkts,
        unicast_rcv_packets: counters.port_unicast_rcv_pkts,
        multicast_xmit_packets: counters.port_multicast_xmit_pkts,
        multicast_rcv_packets: counters.port_multicast_rcv_pkts,
        symbol_errors: counters.symbol_error_counter,
        link_error_recovery: counters.link_error_recovery_counter,
        link_downed: counters.link_downed_counter,
        rcv_errors: counters.port_rcv_errors,
        rcv_remote_physical_errors: counters.port_rcv_remote_physical_errors,
        rcv_switch_relay_errors: counters.port_rcv_switch_relay_errors,
        xmit_discards: counters.port_xmit_discards,
        xmit_constraint_errors: counters.port_xmit_constraint_errors,
        rcv_constraint_errors: counters.port_rcv_constraint_errors,
        local_link_integrity_errors: counters.local_link_integrity_errors,
        excessive_buffer_overrun_errors: counters.excessive_buffer_overrun_errors,
        vl15_dropped: counters.vl15_dropped,
        xmit_wait: counters.port_xmit_wait,
        peers_refused,
    }
}

fn account(node: Guid, account: &DataAccount) -> DeviceAccount {
    let lanes = account.lanes.iter().zip(0..).map(|(lane, number)| {
        let dropped = DropReason::ALL.iter().zip(&lane.dropped).filter(|(_, count)| **count > 0);
        LaneAccount {
            lane: VirtualLane(number),
            received: lane.received,
            injected: lane.injected,
            moved_in: lane.moved_in,
            moved_out: lane.moved_out,
            transmitted: lane.transmitted,
            to_host: lane.to_host,
            to_own: lane.to_own,
            dropped: dropped.map(|(reason, count)| (reason.name().to_owned(), *count)).collect(),
            held: lane.held,
        }
    });
    let unused = |lane: &LaneAccount| *lane == LaneAccount { lane: lane.lane, ..LaneAccount::default() };
    DeviceAccount {
        node: HexGuid(node),
        sound: account.is_sound(),
        lanes: lanes.filter(|lane| !unused(lane)).collect(),
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
