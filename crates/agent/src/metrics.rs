//! Prometheus metrics of the agent: itself, its links and its devices, read at each scrape.
//!
//! Counters of ports are not here: the performance manager reads them through MADs, as it would those of a real fabric.

use weft_device::{BufferAccount, DataAccount, DropReason, LaneAccount, Snapshot, Statistics};
use weft_link::{Links, Stats as LinkStats};
use weft_metrics::Page;
use weft_node::ImpairmentCounts;

use crate::cables::LinkCounts;
use crate::core::Core;

impl Core {
    /// All that there is to show.
    pub(crate) fn metrics(&self) -> Page {
        let mut page = Page::of("agent", env!("CARGO_PKG_VERSION"));
        self.add_own(&mut page);
        self.add_links(&mut page);
        let snapshots: Vec<(u32, Snapshot)> = self
            .names
            .iter()
            .filter_map(|(_, id)| {
                let programs = self.node.clients(id).count() as u32;
                Some((programs, self.node.device(id)?.snapshot_at(self.now())))
            })
            .collect();
        add_devices(&mut page, &snapshots);
        add_ports(&mut page, &snapshots);
        self.add_lanes(&mut page);
        page
    }

    fn add_own(&self, page: &mut Page) {
        let mut events = page.counter("weft_agent_events_total", "What happened to the agent, by event");
        for (event, count) in self.counts() {
            events.count(&[("event", &event)], count);
        }
        let help =
            "How late machines got what they wanted at a moment; a stall counts for each millisecond of it";
        let buckets = self.waking.lateness.coarse().map(|(bound, count)| (bound.as_secs_f64(), count));
        let lateness = &self.waking.lateness;
        let (count, sum) = (lateness.count(), lateness.sum().as_secs_f64());
        page.histogram("weft_agent_wake_up_lateness_seconds", help).spread(&[], buckets, count, sum);
        let LinkCounts { up, total, .. } = self.link_counts();
        for (name, help, value) in [
            ("weft_agent_devices", "Devices that the agent runs", self.names.len()),
            ("weft_agent_links_up", "Ends of cables here that have a link", up),
            ("weft_agent_cable_ends", "Ends of cables here", total),
        ] {
            page.gauge(name, help).count(&[], value as u64);
        }
        let ImpairmentCounts { lost, damaged, duplicated, reordered, late, no_room } =
            self.node.impairment_counts();
        let help = "Packets that faults impaired as they came out of a cable, by what became of them";
        let mut impaired = page.counter("weft_agent_impaired_packets_total", help);
        for (became, count) in [
            ("lost", lost),
            ("damaged", damaged),
            ("duplicated", duplicated),
            ("reordered", reordered),
            ("late", late),
            ("no_room", no_room),
        ] {
            impaired.count(&[("became", became)], count);
        }
    }

    /// The data lanes on which something has moved: what became of it, and how full their buffers are.
    fn add_lanes(&self, page: &mut Page) {
        let accounts: Vec<(String, DataAccount)> = self
            .names
            .iter()
            .filter_map(|(guid, id)| Some((guid.to_string(), self.node.device(id)?.data_account())))
            .collect();
        let help = "Packets on the data lanes of the device, by the way that they came or went";
        let mut packets = page.counter("weft_agent_lane_packets_total", help);
        for (guid, account) in &accounts {
            for (lane, moved) in used(account) {
                let lane = lane.to_string();
                for (way, count) in ways(moved) {
                    packets.count(&[("guid", guid), ("vl", &lane), ("way", way)], count);
                }
            }
        }
        let mut held =
            page.gauge("weft_agent_lane_held_packets", "Packets that the device holds on the lane");
        for (guid, account) in &accounts {
            for (lane, moved) in used(account) {
                held.count(&[("guid", guid), ("vl", &lane.to_string())], moved.held);
            }
        }
        for (name, help, read) in BUFFER_GAUGES {
            let mut family = page.gauge(name, help);
            for (guid, account) in &accounts {
                let is_used = |lane: usize| used(account).any(|(used, _)| used == lane);
                for buffer in account.buffers.iter().filter(|buffer| is_used(buffer.lane.0.into())) {
                    let (port, lane) = (buffer.port.to_string(), buffer.lane.0.to_string());
                    family.count(&[("guid", guid), ("port", &port), ("vl", &lane)], read(buffer));
                }
            }
        }
    }

    /// The cables to other agents, by the port that they are in here.
    fn add_links(&self, page: &mut Page) {
        let links: Vec<(String, String, LinkStats)> = self
            .links
            .iter()
            .flat_map(Links::links)
            .filter_map(|link| {
                let end = self.names.end(self.wiring.of_link(link)?);
                let stats = self.links.as_ref()?.stats(link);
                Some((end.node.to_string(), end.port.to_string(), stats))
            })
            .collect();
        for (name, help, read) in LINK_COUNTERS {
            let mut family = page.counter(name, help);
            for (guid, port, stats) in &links {
                family.count(&[("guid", guid), ("port", port)], read(stats));
            }
        }
    }
}

/// A counter's name, what it means, and where it is found.
type Shown<T> = (&'static str, &'static str, fn(&T) -> u64);

const LINK_COUNTERS: &[Shown<LinkStats>] = &[
    ("weft_agent_link_sent_packets_total", "Packets given to the cable", |stats| stats.sent_packets),
    ("weft_agent_link_received_packets_total", "Packets taken from the cable", |stats| {
        stats.received_packets
    }),
    ("weft_agent_link_dropped_packets_total", "Packets that the cable did not take", |stats| {
        stats.dropped_packets
    }),
    ("weft_agent_link_sent_credits_total", "Flow control packets given to the cable", |stats| {
        stats.sent_credits
    }),
    ("weft_agent_link_received_credits_total", "Flow control packets taken from the cable", |stats| {
        stats.received_credits
    }),
    ("weft_agent_link_overflows_total", "Times a lane was full; each took the link down", |stats| {
        stats.overflows
    }),
    (
        "weft_agent_link_overruns_total",
        "Times the peer sent more than its credit; each took the link down",
        |stats| stats.overruns,
    ),
    (
        "weft_agent_link_malformed_frames_total",
        "Frames that were not what they claimed; each closed the link",
        |stats| stats.malformed_frames,
    ),
    (
        "weft_agent_link_refused_peers_total",
        "Peers refused on this cable, and times a peer refused us",
        |stats| stats.refused,
    ),
    ("weft_agent_link_dials_total", "Attempts to dial", |stats| stats.dials),
    (
        "weft_agent_link_unresolved_total",
        "Attempts that ended because the peer's name did not resolve",
        |stats| stats.unresolved,
    ),
    ("weft_agent_link_ups_total", "Times the link came up", |stats| stats.ups),
    ("weft_agent_link_downs_total", "Times the link went down", |stats| stats.downs),
];

const DEVICE_COUNTERS: &[Shown<Statistics>] = &[
    ("weft_agent_lft_blocks_written_total", "Blocks of the linear forwarding table written", |stats| {
        stats.lft_writes
    }),
    ("weft_agent_mft_blocks_written_total", "Blocks of the multicast forwarding table written", |stats| {
        stats.mft_writes
    }),
    ("weft_agent_p_key_blocks_written_total", "Blocks of P_Key tables written", |stats| stats.p_key_writes),
    ("weft_agent_lid_changes_total", "LIDs changed", |stats| stats.lid_changes),
    ("weft_agent_smps_answered_total", "Requests that the SMA answered", |stats| stats.smps_answered),
    ("weft_agent_smp_sets_total", "Requests that the SMA answered which were Sets", |stats| stats.smp_sets),
    ("weft_agent_directed_hops_total", "Directed-route SMPs passed on", |stats| stats.directed_hops),
    ("weft_agent_forwarded_packets_total", "Packets forwarded by the table", |stats| stats.forwarded),
    ("weft_agent_gmps_answered_total", "Requests on queue pair 1 that the device answered", |stats| {
        stats.gmps_answered
    }),
    ("weft_agent_traps_sent_total", "Traps sent, repetitions included", |stats| stats.traps_sent),
];

/// Bytes in a block of flow control (IBA 7.9.4).
const BLOCK_BYTES: u64 = 64;

const BUFFER_GAUGES: &[Shown<BufferAccount>] = &[
    ("weft_agent_lane_buffer_size_bytes", "Size of the port's input buffer", |buffer| {
        u64::from(buffer.size) * BLOCK_BYTES
    }),
    ("weft_agent_lane_buffer_occupied_bytes", "Bytes in use of the port's input buffer", |buffer| {
        u64::from(buffer.occupied) * BLOCK_BYTES
    }),
    ("weft_agent_lane_credit_bytes", "Bytes that may still be sent to the peer", |buffer| {
        u64::from(buffer.credit) * BLOCK_BYTES
    }),
    ("weft_agent_lane_waiting_bytes", "Bytes that wait to leave by the port", |buffer| buffer.waiting_bytes),
];

/// The lanes on which something has moved.
fn used(account: &DataAccount) -> impl Iterator<Item = (usize, &LaneAccount)> {
    let lanes = account.lanes.iter().enumerate();
    lanes.filter(|(_, lane)| lane.received + lane.injected + lane.moved_in > 0)
}

/// What came in, and where it went.
fn ways(lane: &LaneAccount) -> [(&'static str, u64); 8] {
    [
        ("received", lane.received),
        ("injected", lane.injected),
        ("moved_in", lane.moved_in),
        ("moved_out", lane.moved_out),
        ("transmitted", lane.transmitted),
        ("to_host", lane.to_host),
        ("to_own", lane.to_own),
        ("dropped", lane.dropped_total()),
    ]
}

fn add_devices(page: &mut Page, snapshots: &[(u32, Snapshot)]) {
    let mut info = page.gauge("weft_agent_device_info", "The devices that the agent runs");
    for (_, snapshot) in snapshots {
        let (guid, kind) = (snapshot.guid.to_string(), format!("{:?}", snapshot.kind).to_lowercase());
        info.count(&[("guid", &guid), ("kind", &kind), ("description", &snapshot.description)], 1);
    }
    let mut programs = page.gauge("weft_agent_programs", "Programs attached to the device");
    for (count, snapshot) in snapshots {
        programs.count(&[("guid", &snapshot.guid.to_string())], (*count).into());
    }
    for (name, help, read) in DEVICE_COUNTERS {
        let mut family = page.counter(name, help);
        for (_, snapshot) in snapshots {
            family.count(&[("guid", &snapshot.guid.to_string())], read(&snapshot.statistics));
        }
    }
    let mut drops =
        page.counter("weft_agent_dropped_packets_total", "Packets that the device dropped, by reason");
    for (_, snapshot) in snapshots {
        let guid = snapshot.guid.to_string();
        for reason in DropReason::ALL {
            drops.count(&[("guid", &guid), ("reason", reason.name())], snapshot.statistics.dropped(*reason));
        }
    }
}

fn add_ports(page: &mut Page, snapshots: &[(u32, Snapshot)]) {
    let help = "Logical state of the port: 1 Down, 2 Initialize, 3 Armed, 4 Active";
    let mut states = page.gauge("weft_agent_port_state", help);
    for (_, snapshot) in snapshots {
        let guid = snapshot.guid.to_string();
        for port in snapshot.ports.iter().filter(|port| port.port.0 != 0) {
            states.count(&[("guid", &guid), ("port", &port.port.to_string())], port.state.code().into());
        }
    }
}
