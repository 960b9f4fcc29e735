//! What is shown, as numbers and as text.

use std::cmp::Reverse;
use std::fmt::Write as _;

use serde::Serialize;
use weft_pm::{EndSnapshot, PortSnapshot};
use weft_wire::{Guid, Lid, NodeType};

use crate::output::Table;
use crate::pm_process::PmStatus;

/// Seconds of fabric time in a tick of PortXmitWait.
const TICK_SECONDS: f64 = 4e-9;

/// The fabric as the performance manager saw it last.
#[derive(Debug, Serialize)]
pub(super) struct Picture {
    lab: String,
    /// Whether the performance manager lives.
    pub(super) running: bool,
    attached: bool,
    /// Whether it knows the fabric.
    ready: bool,
    sweep: u64,
    sweep_took_s: f64,
    interval_s: f64,
    /// The share of the time above which a port is congested.
    threshold: f64,
    nodes: u64,
    silent_nodes: u64,
    hot_spots: Vec<HotSpot>,
    /// Where data waits most comes first.
    ports: Vec<Port>,
    #[serde(skip)]
    lanes_swept: bool,
}

#[derive(Debug, Serialize)]
struct HotSpot {
    lid: Lid,
    port_guid: Guid,
    host: String,
    since_sweep: u64,
    /// The hosts that are asked to keep to the slow lane towards it.
    contributors: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Port {
    node: String,
    kind: &'static str,
    node_guid: Guid,
    port_guid: Guid,
    lid: Lid,
    port: u8,
    /// `NODE:PORT` at the other end of the cable.
    peer: Option<String>,
    rate_gbps: f64,
    xmit_gbps: f64,
    rcv_gbps: f64,
    /// Of the link's rate.
    utilisation: f64,
    /// Of the time.
    wait: f64,
    /// The share of the time that each lane waited between the last two sweeps, by lane.
    lanes: Option<Vec<f64>>,
    hot_spot: bool,
    contributor: bool,
    silent: bool,
}

impl Picture {
    /// `older` is an earlier sweep, or the same where there is none.
    pub(super) fn new(lab: &str, running: bool, now: &PmStatus, older: &PmStatus) -> Self {
        let snapshot = &now.snapshot;
        let name = |guid: Guid| {
            let port = snapshot.ports.iter().find(|port| port.end.port_guid == guid);
            port.map_or_else(|| guid.to_string(), |port| port.end.name.clone())
        };
        let mut order: Vec<&PortSnapshot> = snapshot.ports.iter().collect();
        order.sort_by_key(|port| {
            (Reverse(port.congestion), Reverse(port.xmit_bandwidth), port.end.lid, port.end.port)
        });
        let before = |port: &PortSnapshot| {
            let same = |old: &&PortSnapshot| {
                old.end.node_guid == port.end.node_guid && old.end.port == port.end.port
            };
            older.snapshot.ports.iter().find(same)
        };
        let dilation = f64::from(snapshot.dilation.max(1));
        let lanes = |port: &PortSnapshot| {
            if now.options.lanes { lane_shares(port, before(port)?, dilation) } else { None }
        };
        Self {
            lab: lab.to_owned(),
            running,
            attached: now.attached,
            ready: snapshot.ready,
            sweep: snapshot.statistics.sweeps,
            sweep_took_s: snapshot.statistics.sweep_last.as_secs_f64(),
            interval_s: now.options.interval.as_secs_f64(),
            threshold: now.options.threshold as f64 * TICK_SECONDS,
            nodes: snapshot.statistics.nodes,
            silent_nodes: snapshot.statistics.silent_nodes,
            hot_spots: snapshot
                .hot_spots
                .iter()
                .map(|spot| HotSpot {
                    lid: spot.lid,
                    port_guid: spot.port_guid,
                    host: name(spot.port_guid),
                    since_sweep: spot.since_sweep,
                    contributors: spot.contributors.iter().map(|guid| name(*guid)).collect(),
                })
                .collect(),
            ports: order.into_iter().map(|port| Port::new(port, lanes(port))).collect(),
            lanes_swept: now.options.lanes,
        }
    }

    /// Whether there is all to see that there can be.
    pub(super) fn has_lanes(&self) -> bool {
        self.ready && (!self.lanes_swept || self.ports.iter().any(|port| port.lanes.is_some()))
    }

    /// What stands above the table.
    pub(super) fn heading(&self) -> String {
        let state = match (self.running, self.attached, self.ready) {
            (false, ..) => "the performance manager is not running; this is what it saw last",
            (_, false, _) => "the performance manager waits for its agent; this is what it saw last",
            (_, _, false) => "the performance manager does not know the fabric yet",
            _ => "the performance manager is running",
        };
        let mut text = format!("laboratory `{}`: {state}\n", self.lab);
        let _ = writeln!(
            text,
            "sweep {} took {:.3} s, every {} s: {} nodes, {} silent, {} ports; congested above {} % of the time",
            self.sweep,
            self.sweep_took_s,
            self.interval_s,
            self.nodes,
            self.silent_nodes,
            self.ports.len(),
            round(self.threshold * 100.0),
        );
        for spot in &self.hot_spots {
            let contributors = match spot.contributors.is_empty() {
                true => "nobody".to_owned(),
                false => spot.contributors.join(", "),
            };
            let _ = writeln!(
                text,
                "hot spot: `{}` (LID {}) since sweep {}; on the slow lane towards it: {contributors}",
                spot.host, spot.lid, spot.since_sweep
            );
        }
        text
    }

    /// The heading, and so many ports.
    pub(super) fn to_text(&self, rows: usize) -> String {
        let mut table = Table::new(&[
            "node",
            "port",
            "to",
            "rate Gb/s",
            "sent Gb/s",
            "received Gb/s",
            "used %",
            "waiting %",
            "lanes waiting %",
            "state",
        ]);
        for port in self.ports.iter().take(rows) {
            table.row([
                port.node.clone(),
                port.port.to_string(),
                port.peer.clone().unwrap_or_else(|| "-".into()),
                format!("{:.1}", port.rate_gbps),
                format!("{:.3}", port.xmit_gbps),
                format!("{:.3}", port.rcv_gbps),
                format!("{:.1}", port.utilisation * 100.0),
                format!("{:.1}", port.wait * 100.0),
                port.lanes_text(),
                port.state().to_owned(),
            ]);
        }
        self.heading() + &table.to_string()
    }
}

impl Port {
    fn new(port: &PortSnapshot, lanes: Option<Vec<f64>>) -> Self {
        let gbps = |bytes: u64| bytes as f64 * 8.0 / 1e9;
        let end = &port.end;
        let at = |end: &EndSnapshot| format!("{}:{}", end.name, end.port);
        Self {
            node: end.name.clone(),
            kind: if end.node_type == NodeType::Switch { "switch" } else { "hca" },
            node_guid: end.node_guid,
            port_guid: end.port_guid,
            lid: end.lid,
            port: end.port.0,
            peer: port.peer.as_ref().map(at),
            rate_gbps: port.rate_bits as f64 / 1e9,
            xmit_gbps: gbps(port.xmit_bandwidth),
            rcv_gbps: gbps(port.rcv_bandwidth),
            utilisation: port.utilisation,
            wait: port.congestion as f64 * TICK_SECONDS,
            lanes,
            hot_spot: port.hot_spot,
            contributor: port.contributor_since.is_some(),
            silent: port.silent,
        }
    }

    fn lanes_text(&self) -> String {
        let Some(lanes) = &self.lanes else { return "-".into() };
        let shares = lanes.iter().enumerate().filter(|(_, share)| **share >= 0.0005);
        let shares: Vec<String> =
            shares.map(|(lane, share)| format!("{lane}: {:.1}", share * 100.0)).collect();
        if shares.is_empty() { "-".into() } else { shares.join(" ") }
    }

    fn state(&self) -> &'static str {
        match (self.silent, self.hot_spot, self.contributor) {
            (true, ..) => "silent",
            (_, true, _) => "HOT SPOT",
            (_, _, true) => "slow lane",
            _ => "",
        }
    }
}

/// The share of the time between two readings that each lane waited.
fn lane_shares(now: &PortSnapshot, before: &PortSnapshot, dilation: f64) -> Option<Vec<f64>> {
    let seconds = now.read_at?.saturating_sub(before.read_at?).as_secs_f64();
    if seconds <= 0.0 {
        return None;
    }
    let share = |lane: usize| {
        let ticks = now.lane_waits[lane].saturating_sub(before.lane_waits[lane]);
        ticks as f64 * TICK_SECONDS * dilation / seconds
    };
    Some((0..now.lane_waits.len()).map(share).collect())
}

/// Few digits, however small it is.
fn round(percent: f64) -> String {
    if percent >= 1.0 { format!("{percent:.1}") } else { format!("{percent:.3}") }
}

#[cfg(test)]
mod tests {
    use weft_machine::Time;
    use weft_pm::{HotSpotSnapshot, Options, PerformanceManager, Snapshot};
    use weft_wire::{PortNum, ServiceLevel};

    use super::*;

    fn end(name: &str, lid: u16, node_type: NodeType) -> EndSnapshot {
        let guid = Guid(u64::from(lid));
        EndSnapshot {
            name: name.into(),
            node_type,
            node_guid: guid,
            port_guid: guid,
            lid: Lid(lid),
            port: PortNum(1),
        }
    }

    fn port(name: &str, lid: u16, congestion: u64, read_at: u64) -> PortSnapshot {
        PortSnapshot {
            end: end(name, lid, NodeType::Hca),
            peer: Some(end("leaf", 9, NodeType::Switch)),
            rate: Default::default(),
            rate_bits: 16_000_000_000,
            totals: Default::default(),
            lane_waits: [0; 16],
            read_at: Some(Time::from_secs(read_at)),
            silent: false,
            congestion,
            xmit_bandwidth: 806_250_000,
            rcv_bandwidth: 0,
            utilisation: 0.403_125,
            hot_spot: false,
            contributor_since: None,
        }
    }

    fn status(snapshot: Snapshot) -> PmStatus {
        let options = Options { lanes: true, dilation: 1000, ..Options::default() };
        PmStatus { attached: true, options, snapshot }
    }

    fn swept(read_at: u64, waits: u64) -> PmStatus {
        let mut snapshot = PerformanceManager::new(Options::default()).snapshot(Time::ZERO);
        let mut waiting = port("b", 2, 48_500_000, read_at);
        waiting.lane_waits[1] = waits;
        waiting.contributor_since = Some(Time::ZERO);
        snapshot.ports = vec![port("a", 1, 0, read_at), waiting];
        snapshot.hot_spots = vec![HotSpotSnapshot {
            lid: Lid(1),
            port_guid: Guid(1),
            since_sweep: 7,
            contributors: vec![Guid(2)],
        }];
        (snapshot.ready, snapshot.dilation, snapshot.slow_sl) = (true, 1000, ServiceLevel(1));
        status(snapshot)
    }

    #[test]
    fn where_data_waits_comes_first() {
        let picture = Picture::new("x", true, &swept(2, 48_500), &swept(1, 0));
        let text = picture.to_text(usize::MAX);
        let rows: Vec<&str> = text.lines().skip(4).collect();
        assert!(rows[0].starts_with("b ") && rows[1].starts_with("a "), "{text}");
        // 48 500 ticks in a second of the wall clock at 1/1000.
        assert!(
            rows[0].contains("40.3") && rows[0].contains("19.4") && rows[0].contains("1: 19.4"),
            "{text}"
        );
        assert!(rows[0].contains("6.450") && rows[0].ends_with("slow lane"), "{text}");
        assert!(
            text.contains("hot spot: `a` (LID 1) since sweep 7; on the slow lane towards it: b"),
            "{text}"
        );
        assert_eq!(picture.to_text(1).lines().count(), 5);
    }

    #[test]
    fn one_sweep_says_nothing_of_lanes() {
        let once = swept(1, 5);
        let picture = Picture::new("x", true, &once, &once);
        assert!(!picture.has_lanes());
        assert!(Picture::new("x", true, &swept(2, 5), &once).has_lanes());
        assert!(picture.to_text(9).contains(" -  "));
    }

    #[test]
    fn what_is_not_there_is_said() {
        let seen = swept(1, 0);
        let heading = |running, attached| {
            let mut now = seen.clone();
            now.attached = attached;
            Picture::new("x", running, &now, &seen).heading()
        };
        assert!(heading(false, false).contains("is not running"));
        assert!(heading(true, false).contains("waits for its agent"));
        assert!(heading(true, true).contains("is running"));
    }
}
