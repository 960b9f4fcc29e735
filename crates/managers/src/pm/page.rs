//! Prometheus metrics of the performance manager.
//!
//! The fabric's counters have the names of the community's exporter (treydock/infiniband_exporter), so that its
//! dashboards and rules serve; what it has no name for begins with `infiniband_vl_` or `weft_pm_`.

use std::collections::BTreeSet;

use weft_bundle::names::PM;
use weft_control::agent::NodeKind;
use weft_metrics::Page;
use weft_pm::{End, ErrorTotals, PortSnapshot, Snapshot, Statistics, Totals};

use crate::pm::figures::PmFigures;

/// Seconds of fabric time in a tick of PortXmitWait.
const TICK_SECONDS: f64 = 4e-9;

/// Lanes that are shown in any case where lanes are swept; those beyond are shown once something has waited there.
const LANES_SHOWN: usize = 8;

/// All of it.
pub(crate) fn page(status: &PmFigures) -> Page {
    let snapshot = &status.snapshot;
    let mut page = Page::of(PM, env!("CARGO_PKG_VERSION"));
    let (switches, hosts): (Vec<_>, Vec<_>) = snapshot.ports.iter().map(Port::new).partition(Port::is_switch);
    for (kind, ports) in [("switch", &switches), ("hca", &hosts)] {
        add_kind(&mut page, kind, ports, snapshot);
        if status.options.errors {
            add_counters(&mut page, kind, ports, ERRORS, |port| &port.errors);
        }
    }
    add_exporter(&mut page, &switches, &hosts, status);
    let ports: Vec<Port<'_>> = switches.into_iter().chain(hosts).collect();
    if status.options.lanes {
        add_lanes(&mut page, &ports, snapshot.dilation);
    }
    add_rates(&mut page, &ports);
    add_manager(&mut page, status);
    add_statistics(&mut page, &snapshot.statistics);
    page
}

/// A port with its labels as text.
struct Port<'a> {
    snapshot: &'a PortSnapshot,
    guid: String,
    number: String,
    lid: String,
}

impl<'a> Port<'a> {
    fn new(snapshot: &'a PortSnapshot) -> Self {
        let end = &snapshot.end;
        let (guid, number, lid) = (end.port_guid.to_string(), end.port.to_string(), end.lid.0.to_string());
        Self { snapshot, guid, number, lid }
    }

    fn is_switch(&self) -> bool {
        self.snapshot.end.kind == NodeKind::Switch
    }

    fn labels(&self) -> [(&'static str, &str); 2] {
        [("guid", &self.guid), ("port", &self.number)]
    }

    fn named(&self) -> [(&'static str, &str); 3] {
        [("guid", &self.guid), ("port", &self.number), ("node", &self.snapshot.end.name)]
    }
}

/// A counter's suffix, what it means, and where it is found.
type Found<T> = (&'static str, &'static str, fn(&T) -> u64);

/// A gauge's name, what it means, and how it is found.
type Shown = (&'static str, &'static str, fn(&PortSnapshot) -> f64);

const COUNTERS: &[Found<Totals>] = &[
    ("transmit_data_bytes_total", "Bytes sent (PortXmitData times 4)", |t| {
        t.port_xmit_data.saturating_mul(4)
    }),
    ("receive_data_bytes_total", "Bytes received (PortRcvData times 4)", |t| {
        t.port_rcv_data.saturating_mul(4)
    }),
    ("transmit_packets_total", "Packets sent (PortXmitPkts)", |t| t.port_xmit_pkts),
    ("receive_packets_total", "Packets received (PortRcvPkts)", |t| t.port_rcv_pkts),
    ("unicast_transmit_packets_total", "Packets sent to one receiver (PortUnicastXmitPkts)", |t| {
        t.port_unicast_xmit_pkts
    }),
    (
        "unicast_receive_packets_total",
        "Packets received that were to one receiver (PortUnicastRcvPkts)",
        |t| t.port_unicast_rcv_pkts,
    ),
    ("multicast_transmit_packets_total", "Packets sent to many receivers (PortMulticastXmitPkts)", |t| {
        t.port_multicast_xmit_pkts
    }),
    (
        "multicast_receive_packets_total",
        "Packets received that were to many receivers (PortMulticastRcvPkts)",
        |t| t.port_multicast_rcv_pkts,
    ),
    ("symbol_error_total", "Minor link errors (SymbolErrorCounter)", |t| t.symbol_error_counter),
    (
        "link_error_recovery_total",
        "Times the link recovered by re-training (LinkErrorRecoveryCounter)",
        |t| t.link_error_recovery_counter,
    ),
    ("link_downed_total", "Times the link went down (LinkDownedCounter)", |t| t.link_downed_counter),
    ("receive_errors_total", "Packets received with errors (PortRcvErrors)", |t| t.port_rcv_errors),
    (
        "receive_remote_physical_errors_total",
        "Packets received that were marked as bad (PortRcvRemotePhysicalErrors)",
        |t| t.port_rcv_remote_physical_errors,
    ),
    (
        "receive_switch_relay_errors_total",
        "Packets that could not be forwarded (PortRcvSwitchRelayErrors)",
        |t| t.port_rcv_switch_relay_errors,
    ),
    ("transmit_discards_total", "Packets dropped on departure (PortXmitDiscards)", |t| t.port_xmit_discards),
    (
        "transmit_constraint_errors_total",
        "Packets not sent because of a constraint (PortXmitConstraintErrors)",
        |t| t.port_xmit_constraint_errors,
    ),
    (
        "receive_constraint_errors_total",
        "Packets not accepted because of a constraint (PortRcvConstraintErrors)",
        |t| t.port_rcv_constraint_errors,
    ),
    (
        "local_link_integrity_errors_total",
        "Times local errors passed their threshold (LocalLinkIntegrityErrors)",
        |t| t.local_link_integrity_errors,
    ),
    (
        "excessive_buffer_overrun_errors_total",
        "Times overruns passed their threshold (ExcessiveBufferOverrunErrors)",
        |t| t.excessive_buffer_overrun_errors,
    ),
    ("vl15_dropped_total", "SMPs dropped for want of space (VL15Dropped)", |t| t.vl15_dropped),
    ("qp1_dropped_total", "GMPs dropped for want of space (QP1Dropped)", |t| t.qp1_dropped),
    (
        "transmit_wait_total",
        "Ticks of 4 ns of fabric time that data waited without being sent (PortXmitWait)",
        |t| t.port_xmit_wait,
    ),
];

/// What received errors are made of. `dli` is the community's own spelling.
const ERRORS: &[Found<ErrorTotals>] = &[
    ("local_physical_errors_total", "Damaged packets received (PortLocalPhysicalErrors)", |e| {
        e.port_local_physical_errors
    }),
    (
        "malformed_packet_errors_total",
        "Packets received with a length, a lane or a version that cannot be (PortMalformedPacketErrors)",
        |e| e.port_malformed_pkt_errors,
    ),
    (
        "buffer_overrun_errors_total",
        "Packets received for which there was no buffer (PortBufferOverrunErrors)",
        |e| e.port_buffer_overrun_errors,
    ),
    (
        "dli_mapping_errors_total",
        "Packets whose destination the forwarding table does not know (PortDLIDMappingErrors)",
        |e| e.port_dlid_mapping_errors,
    ),
    ("vl_mapping_errors_total", "Packets whose service level has no lane (PortVLMappingErrors)", |e| {
        e.port_vl_mapping_errors
    }),
    ("looping_errors_total", "Packets that were to leave where they came in (PortLoopingErrors)", |e| {
        e.port_looping_errors
    }),
];

fn add_counters<T>(
    page: &mut Page,
    kind: &str,
    ports: &[Port<'_>],
    counters: &[Found<T>],
    of: fn(&PortSnapshot) -> &T,
) {
    for (suffix, help, read) in counters {
        let mut family = page.counter(&format!("infiniband_{kind}_port_{suffix}"), help);
        for port in ports {
            family.count(&port.labels(), read(of(port.snapshot)));
        }
    }
}

/// What the community's exporter shows of switches, or of HCAs.
fn add_kind(page: &mut Page, kind: &str, ports: &[Port<'_>], snapshot: &Snapshot) {
    add_counters(page, kind, ports, COUNTERS, |port| &port.totals);
    let (of_port, labels) = if kind == "switch" { ("port_", 2) } else { ("", 1) };
    for (name, help, coded) in [
        ("rate", "What the link carries after its coding", false),
        ("raw_rate", "What the link carries with its coding", true),
    ] {
        let mut family = page.gauge(&format!("infiniband_{kind}_{of_port}{name}_bytes_per_second"), help);
        for port in ports {
            let rate = &port.snapshot.rate;
            let bits =
                if coded { rate.signalling_bits_per_second() } else { rate.data_rate().bits_per_second() };
            family.add(&port.labels()[..labels], bits as f64 / 8.0);
        }
    }
    let mut uplinks =
        page.gauge(&format!("infiniband_{kind}_uplink_info"), "What is at the other end of the cable");
    for port in ports {
        let Some(peer) = &port.snapshot.peer else { continue };
        let (guid, lid, number) = (peer.port_guid.to_string(), peer.lid.0.to_string(), peer.port.to_string());
        let [own_guid, own_port] = port.labels();
        let own = (kind, port.snapshot.end.name.as_str());
        let [name, uplink] = [own, ("uplink", peer.name.as_str())];
        let kind = ("uplink_type", kind_of(peer));
        let place = [("uplink_guid", guid.as_str()), ("uplink_port", &number), ("uplink_lid", &lid)];
        uplinks.count(&[own_guid, own_port, name, uplink, kind, place[0], place[1], place[2]], 1);
    }
    let mut devices: Vec<&Port<'_>> = ports.iter().collect();
    devices.dedup_by_key(|port| &port.guid);
    let mut infos = page.gauge(&format!("infiniband_{kind}_info"), "The devices whose counters are swept");
    for device in &devices {
        infos.count(&[("guid", &device.guid), (kind, &device.snapshot.end.name), ("lid", &device.lid)], 1);
    }
    let last = snapshot.statistics.sweep_last.as_secs_f64();
    let refusing: BTreeSet<&str> =
        ports.iter().filter(|port| port.snapshot.refuses).map(|port| port.guid.as_str()).collect();
    let silent = ports.iter().filter(|port| port.snapshot.silent).map(|port| port.guid.as_str()).collect();
    for (name, help, which) in [
        ("collect_error", "Whether the device answered a question for its counters with an error", refusing),
        ("collect_timeout", "Whether the device does not answer", silent),
    ] {
        let mut family = page.gauge(&format!("infiniband_{kind}_{name}"), help);
        for device in &devices {
            let labels = [("guid", device.guid.as_str()), ("collector", kind)];
            family.count(&labels, u64::from(which.contains(device.guid.as_str())));
        }
    }
    let help = "How long the last sweep took, in which the device was read with all others";
    let mut durations = page.gauge(&format!("infiniband_{kind}_collect_duration_seconds"), help);
    for device in &devices {
        durations.add(&[("guid", &device.guid), ("collector", kind)], last);
    }
}

/// What the community's exporter shows of itself: devices that its last round could not read, and when that was.
fn add_exporter(page: &mut Page, switches: &[Port<'_>], hosts: &[Port<'_>], status: &PmFigures) {
    let kinds = [("switch", switches), ("hca", hosts)];
    type IsSo = fn(&PortSnapshot) -> bool;
    let shown: [(&str, &str, IsSo); 2] = [
        ("errors", "Devices that answered the last sweep with an error", |port| port.refuses),
        ("timeouts", "Devices that do not answer", |port| port.silent),
    ];
    for (name, help, is_so) in shown {
        let mut family = page.gauge(&format!("infiniband_exporter_collect_{name}"), help);
        for (kind, ports) in kinds {
            let devices: BTreeSet<&str> =
                ports.iter().filter(|port| is_so(port.snapshot)).map(|port| port.guid.as_str()).collect();
            family.count(&[("collector", kind)], devices.len() as u64);
        }
    }
    let help = "How long the last sweep took, which reads switches and HCAs together";
    let mut family = page.gauge("infiniband_exporter_collector_duration_seconds", help);
    for (kind, _) in kinds {
        family.add(&[("collector", kind)], status.snapshot.statistics.sweep_last.as_secs_f64());
    }
    let Some(swept_at) = status.swept_at else { return };
    let seconds = swept_at.as_nanos() as f64 / 1e9;
    let help = "When the last sweep ended, in seconds since 1970";
    let mut family = page.gauge("infiniband_exporter_last_execution", help);
    for (kind, _) in kinds {
        family.add(&[("collector", kind)], seconds);
    }
}

fn kind_of(end: &End) -> &'static str {
    if end.kind == NodeKind::Switch { "SW" } else { "CA" }
}

fn add_lanes(page: &mut Page, ports: &[Port<'_>], dilation: u32) {
    let waited = |lane: usize| ports.iter().any(|port| port.snapshot.lane_waits[lane] > 0);
    let lanes: Vec<(usize, String)> = (0..16)
        .filter(|lane| *lane < LANES_SHOWN || waited(*lane))
        .map(|lane| (lane, lane.to_string()))
        .collect();
    let help = "Time that data waited on the lane without being sent: its rate is a share of the time";
    let mut family = page.counter("infiniband_vl_transmit_wait_seconds_total", help);
    for port in ports {
        let [guid, number] = port.labels();
        for (lane, name) in &lanes {
            let ticks = port.snapshot.lane_waits[*lane];
            family.add(&[guid, number, ("vl", name)], wait_seconds(ticks, dilation));
        }
    }
}

/// Ticks as seconds of the laboratory's own clock, which is Prometheus' too.
fn wait_seconds(ticks: u64, dilation: u32) -> f64 {
    ticks as f64 * TICK_SECONDS * f64::from(dilation.max(1))
}

/// What the last sweep found of every port.
fn add_rates(page: &mut Page, ports: &[Port<'_>]) {
    let shown: [Shown; 6] = [
        (
            "transmit_wait_ratio",
            "Share of the time that data waited without being sent (equation 1)",
            |port| port.congestion as f64 * TICK_SECONDS,
        ),
        ("transmit_bytes_per_second", "Bandwidth sent, in fabric time (equation 2)", |port| {
            port.xmit_bandwidth as f64
        }),
        ("receive_bytes_per_second", "Bandwidth received, in fabric time", |port| port.rcv_bandwidth as f64),
        ("utilisation_ratio", "Bandwidth sent as a share of the link's rate (equation 3)", |port| {
            port.utilisation
        }),
        ("hot_spot", "Whether the port leads to a host that is a hot spot", |port| {
            f64::from(u8::from(port.hot_spot))
        }),
        ("contributor", "Whether the port's host is asked to keep to the slow lane", |port| {
            f64::from(u8::from(port.contributor))
        }),
    ];
    for (name, help, read) in shown {
        let mut family = page.gauge(&format!("weft_pm_port_{name}"), help);
        for port in ports {
            family.add(&port.named(), read(port.snapshot));
        }
    }
}

fn add_manager(page: &mut Page, status: &PmFigures) {
    let (snapshot, statistics) = (&status.snapshot, &status.snapshot.statistics);
    let contributors: usize = snapshot.hot_spots.iter().map(|spot| spot.contributors.len()).sum();
    let flag = |is_so: bool| f64::from(u8::from(is_so));
    let threshold = status.options.threshold as f64 * TICK_SECONDS;
    let interval = status.options.interval.as_secs_f64();
    let (last, longest) = (statistics.sweep_last.as_secs_f64(), statistics.sweep_longest.as_secs_f64());
    for (name, help, value) in [
        ("attached", "Whether the performance manager has its port", flag(status.attached)),
        ("ready", "Whether the fabric is known and swept", flag(snapshot.ready)),
        ("nodes", "Nodes known", statistics.nodes as f64),
        ("silent_nodes", "Devices that do not answer", statistics.silent_nodes as f64),
        ("ports", "Ports that are swept", statistics.ports as f64),
        ("hot_spots", "Hot spots that there are", snapshot.hot_spots.len() as f64),
        (
            "contributors",
            "Hosts that are asked to keep to the slow lane, once for each hot spot",
            contributors as f64,
        ),
        ("moves_pending", "Hosts that are yet to be asked to move or to move back", snapshot.moves as f64),
        ("threshold_ratio", "Share of the time above which a port is congested", threshold),
        (
            "dilation_ratio",
            "Seconds of the laboratory's clock in one of fabric time",
            snapshot.dilation.into(),
        ),
        ("sweep_interval_seconds", "From the start of one sweep to that of the next", interval),
        ("last_sweep_duration_seconds", "How long the last sweep took", last),
        ("longest_sweep_duration_seconds", "How long the longest sweep took", longest),
    ] {
        page.gauge(&format!("weft_pm_{name}"), help).add(&[], value);
    }
}

fn add_statistics(page: &mut Page, statistics: &Statistics) {
    for (name, help, value) in [
        ("sweeps_total", "Sweeps that have ended", statistics.sweeps),
        ("late_sweeps_total", "Sweeps that took longer than the interval", statistics.late_sweeps),
        ("requests_total", "Requests for counters sent, retries included", statistics.requests),
        ("retries_total", "Requests for counters sent again", statistics.retries),
        ("timeouts_total", "Requests for counters that were not answered in time", statistics.timeouts),
        ("requests_failed_total", "Requests for counters given up", statistics.failures),
        ("requests_refused_total", "Answers that said no, or were about something else", statistics.refused),
        ("answers_unmatched_total", "Answers that nobody waited for", statistics.unmatched),
        ("silences_total", "Times that a device fell silent", statistics.silences),
        ("probes_total", "Questions to silent devices", statistics.probes),
        ("resets_total", "Sets that reset counters", statistics.resets),
        ("counters_stopped_total", "Counters found at their highest value", statistics.counters_stopped),
        ("counters_fallen_total", "Counters found below their last value", statistics.counters_fallen),
        ("fabric_learned_total", "Times that the fabric was learned", statistics.learned),
        ("fabric_not_learned_total", "Times that the fabric could not be learned", statistics.not_learned),
        (
            "subscriptions_failed_total",
            "Subscriptions refused or not answered",
            statistics.subscriptions_failed,
        ),
        ("reports_total", "Reports received from subnet administration", statistics.reports),
        ("hot_spots_found_total", "Hot spots found", statistics.hot_spots_found),
        ("repaths_total", "Repaths that the subnet manager has taken", statistics.repaths),
        ("unpaths_total", "Unpaths that the subnet manager has taken", statistics.unpaths),
        (
            "notices_refused_total",
            "Repaths and unpaths that the subnet manager refused",
            statistics.notices_refused,
        ),
        (
            "notices_unanswered_total",
            "Repaths and unpaths that were not answered",
            statistics.notices_unanswered,
        ),
        ("moves_dropped_total", "Hosts that were not told for want of room", statistics.moves_dropped),
        (
            "received_reports_total",
            "Reports of what hosts receive that the subnet manager has taken",
            statistics.received_reports,
        ),
        (
            "received_given_up_total",
            "Reports of what hosts receive that were refused or not answered",
            statistics.received_given_up,
        ),
        (
            "received_requests_total",
            "Requests by which such reports were made, retries included",
            statistics.received_requests,
        ),
        ("received_left_out_total", "Hosts that such a report had no room for", statistics.received_left_out),
        ("mads_ignored_total", "MADs that are none of the manager's business", statistics.ignored),
    ] {
        page.counter(&format!("weft_pm_{name}"), help).count(&[], value);
    }
    for (name, help, all) in [
        ("sweep_seconds_total", "How long all sweeps took together", statistics.sweep_all),
        ("round_trip_seconds_total", "How long all round trips took together", statistics.round_trip_all),
    ] {
        page.counter(&format!("weft_pm_{name}"), help).add(&[], all.as_secs_f64());
    }
    page.counter("weft_pm_round_trips_total", "Round trips of requests for counters")
        .count(&[], statistics.round_trips);
}
