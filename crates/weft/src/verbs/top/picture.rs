//! The picture of `top`, as numbers and as text.

use std::cmp::Reverse;
use std::fmt::Write as _;

use serde::Serialize;
use weft_control::HexGuid;
use weft_control::agent::NodeKind;
use weft_control::pm::{PmEnd, PmPort, PmStatus, PmTotals};
use weft_wire::Lid;

use super::lanes::{Lanes, TICK_SECONDS};
use super::line::{Line, Style};
use super::traffic::{
    FLOWS_EXPENDABLE, Flow, MACHINES_EXPENDABLE, Machine, Traffic, flows_table, machines_table,
};
use crate::cli::pm::{Sort, View};
use crate::output::Table;
use crate::terminal::wrap;

const RATE: &str = "rate Gb/s";
const SENT: &str = "sent Gb/s";
const RECEIVED: &str = "received Gb/s";
const USED: &str = "used %";
const LANES: &str = "lanes waiting %";

/// What a narrow screen goes without, the first of these first.
const EXPENDABLE: [&str; 6] = [LANES, RATE, RECEIVED, "to", SENT, USED];

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
    /// Flows and virtual machines.
    #[serde(flatten)]
    traffic: Traffic,
    #[serde(skip)]
    lanes_swept: bool,
}

/// Which rows, and in which order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    pub(super) view: View,
    pub(super) sort: Sort,
}

#[derive(Debug, Serialize)]
struct HotSpot {
    lid: Lid,
    port_guid: HexGuid,
    host: String,
    since_sweep: u64,
    /// The hosts that are asked to keep to the slow lane towards it.
    contributors: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Port {
    node: String,
    kind: &'static str,
    node_guid: HexGuid,
    port_guid: HexGuid,
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
    /// All counts, in the counters' own units.
    totals: PmTotals,
    hot_spot: bool,
    contributor: bool,
    silent: bool,
}

/// The ports, and what is known of their lanes.
pub(super) struct Sight<'a> {
    pub(super) ports: &'a [PmPort],
    pub(super) lanes: &'a Lanes,
}

impl Picture {
    /// What the performance manager says.
    pub(super) fn new(lab: &str, running: bool, now: &PmStatus, sight: &Sight<'_>) -> Self {
        let name = |guid: HexGuid| {
            let port = sight.ports.iter().find(|port| port.end.port_guid == guid);
            port.map_or_else(|| guid.to_string(), |port| port.end.name.clone())
        };
        let mut order: Vec<&PmPort> = sight.ports.iter().collect();
        order.sort_by_key(|port| {
            (Reverse(port.congestion), Reverse(port.xmit_bandwidth), port.end.lid, port.end.port)
        });
        let lanes =
            |port: &PmPort| now.sweeps_lanes.then(|| sight.lanes.shares(port, now.dilation)).flatten();
        Self {
            lab: lab.to_owned(),
            running,
            attached: now.attached,
            ready: now.ready,
            sweep: now.statistics.sweeps,
            sweep_took_s: now.statistics.sweep_last.as_secs_f64(),
            interval_s: now.interval_ns as f64 / 1e9,
            threshold: now.threshold as f64 * TICK_SECONDS,
            nodes: now.statistics.nodes,
            silent_nodes: now.statistics.silent_nodes,
            hot_spots: now
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
            traffic: Traffic::default(),
            lanes_swept: now.sweeps_lanes,
        }
    }

    /// With flows and virtual machines.
    pub(super) fn with(self, traffic: Traffic) -> Self {
        Self { traffic, ..self }
    }

    /// Puts rows in order; those that are alike stay as they are.
    pub(super) fn sort(&mut self, sort: Sort) {
        let by = |of: fn(&Port) -> f64| move |a: &Port, b: &Port| of(b).total_cmp(&of(a));
        let flows = &mut self.traffic.flows;
        match sort {
            Sort::Waiting => self.ports.sort_by(by(|port| port.wait)),
            Sort::Sent => self.ports.sort_by(by(|port| port.xmit_gbps)),
            Sort::Received => self.ports.sort_by(by(|port| port.rcv_gbps)),
            Sort::Used => self.ports.sort_by(by(|port| port.utilisation)),
            Sort::Name => self.ports.sort_by(|a, b| (&a.node, a.port).cmp(&(&b.node, b.port))),
        }
        match sort {
            Sort::Waiting | Sort::Name => flows.sort_by(|a, b| a.name.cmp(&b.name)),
            _ => flows.sort_by(|a, b| b.rate.total_cmp(&a.rate)),
        }
    }

    /// Whether there is all to see that there can be.
    pub(super) fn has_lanes(&self) -> bool {
        self.ready && (!self.lanes_swept || self.ports.iter().all(|port| port.silent || port.lanes.is_some()))
    }

    /// What stands above the table.
    pub(super) fn heading(&self) -> String {
        let state = match (self.running, self.attached, self.ready) {
            (false, ..) => "the performance manager is not running",
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
                true => "no host".to_owned(),
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

    /// The heading, and at most `rows` rows.
    pub(super) fn to_text(&self, view: View, rows: usize) -> String {
        self.heading() + &self.rows(view, rows).0.to_string()
    }

    /// As much as a screen of these columns and rows has room for, above a row that is left free.
    pub(super) fn to_screen(
        &self,
        columns: usize,
        rows: usize,
        choice: Choice,
        rows_max: usize,
    ) -> Vec<Line> {
        let is_hot = |line: &str| line.starts_with("hot spot:");
        let style = |line: &str| if is_hot(line) { Style::Alarm } else { Style::Plain };
        let heading = wrap(&self.heading(), columns);
        // However many hot spots there are, half of the screen is for rows.
        let mut lines: Vec<Line> =
            heading.lines().take(rows / 2).map(|line| Line::new(style(line), line)).collect();
        let room = rows.saturating_sub(lines.len() + 2);
        let (table, expendable, styles) = self.rows(choice.view, rows_max.min(room));
        let table = table.fit(columns, expendable).to_string();
        let styles = std::iter::once(Style::Heading).chain(styles);
        lines.extend(table.lines().zip(styles).map(|(line, style)| Line::new(style, line)));
        lines
    }

    /// The table of a view, what a narrow screen goes without, and how each row is drawn.
    fn rows(&self, view: View, rows: usize) -> (Table, &'static [&'static str], Vec<Style>) {
        let Traffic { flows, machines } = &self.traffic;
        let (flows, machines) = (&flows[..flows.len().min(rows)], &machines[..machines.len().min(rows)]);
        match view {
            View::Ports => {
                let styles = self.ports.iter().take(rows).map(|port| port.style(self.threshold));
                (self.table(rows), &EXPENDABLE, styles.collect())
            }
            View::Flows => (flows_table(flows), &FLOWS_EXPENDABLE, flows.iter().map(Flow::style).collect()),
            View::Machines => (
                machines_table(machines),
                &MACHINES_EXPENDABLE,
                machines.iter().map(Machine::style).collect(),
            ),
        }
    }

    fn table(&self, rows: usize) -> Table {
        let mut table =
            Table::new(&["node", "port", "to", RATE, SENT, RECEIVED, USED, "waiting %", LANES, "state"]);
        for port in self.ports.iter().take(rows) {
            table.row(&[
                &port.node,
                &port.port,
                &port.peer.as_deref().unwrap_or("-"),
                &format!("{:.1}", port.rate_gbps),
                &format!("{:.3}", port.xmit_gbps),
                &format!("{:.3}", port.rcv_gbps),
                &format!("{:.1}", port.utilisation * 100.0),
                &format!("{:.1}", port.wait * 100.0),
                &port.lanes_text(),
                &port.state(),
            ]);
        }
        table
    }
}

impl Port {
    fn new(port: &PmPort, lanes: Option<Vec<f64>>) -> Self {
        let gbps = |bytes: u64| bytes as f64 * 8.0 / 1e9;
        let end = &port.end;
        let at = |end: &PmEnd| format!("{}:{}", end.name, end.port);
        Self {
            node: end.name.clone(),
            kind: if end.kind == NodeKind::Switch { "switch" } else { "hca" },
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
            totals: port.totals,
            hot_spot: port.hot_spot,
            contributor: port.contributor,
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

    /// How a row of it is drawn.
    fn style(&self, threshold: f64) -> Style {
        match self {
            Self { hot_spot: true, .. } => Style::Alarm,
            Self { silent: true, .. } => Style::Faint,
            Self { contributor: true, .. } => Style::Notice,
            _ if self.wait > threshold && threshold > 0.0 => Style::Notice,
            _ => Style::Plain,
        }
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

/// Few digits, however small it is.
fn round(percent: f64) -> String {
    if percent >= 1.0 { format!("{percent:.1}") } else { format!("{percent:.3}") }
}

#[cfg(test)]
mod tests {
    use weft_control::pm::HotSpot;
    use weft_machine::Time;
    use weft_wire::{Guid, PortNum};

    use super::*;

    fn end(name: &str, lid: u16, kind: NodeKind) -> PmEnd {
        let guid = HexGuid(Guid(u64::from(lid)));
        PmEnd { name: name.into(), kind, node_guid: guid, port_guid: guid, lid: Lid(lid), port: PortNum(1) }
    }

    fn port(name: &str, lid: u16, congestion: u64, read_at: u64) -> PmPort {
        PmPort {
            end: end(name, lid, NodeKind::Hca),
            peer: Some(end("leaf", 9, NodeKind::Switch)),
            rate_bits: 16_000_000_000,
            read_at: Some(Time::from_secs(read_at)),
            congestion,
            xmit_bandwidth: 806_250_000,
            utilisation: 0.403_125,
            ..PmPort::default()
        }
    }

    type Swept = (PmStatus, Vec<PmPort>);

    fn swept(read_at: u64, waits: u64) -> Swept {
        let mut waiting = port("b", 2, 48_500_000, read_at);
        waiting.lane_waits[1] = waits;
        waiting.contributor = true;
        let spot = HotSpot {
            lid: Lid(1),
            port_guid: HexGuid(Guid(1)),
            since_sweep: 7,
            contributors: vec![HexGuid(Guid(2))],
        };
        let status = PmStatus {
            attached: true,
            ready: true,
            sweeps_lanes: true,
            dilation: 1000,
            hot_spots: vec![spot],
            ..PmStatus::default()
        };
        (status, vec![port("a", 1, 0, read_at), waiting])
    }

    /// What is seen when these sweeps were looked at one after the other.
    fn seen(sweeps: &[Swept]) -> Picture {
        let mut lanes = Lanes::default();
        sweeps.iter().for_each(|(_, ports)| lanes.note(ports));
        let (status, ports) = sweeps.last().unwrap();
        Picture::new("x", true, status, &Sight { ports, lanes: &lanes })
    }

    #[test]
    fn ports_with_waiting_data_come_first() {
        let picture = seen(&[swept(1, 0), swept(2, 48_500)]);
        let text = picture.to_text(View::Ports, usize::MAX);
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
        assert_eq!(picture.to_text(View::Ports, 1).lines().count(), 5);
    }

    #[test]
    fn rows_are_sorted_and_coloured_by_what_they_say() {
        let mut picture = seen(&[swept(1, 0), swept(2, 48_500)]);
        let nodes = |picture: &Picture| -> Vec<String> {
            picture.ports.iter().map(|port| port.node.clone()).collect()
        };
        for (sort, first) in [(Sort::Waiting, "b"), (Sort::Name, "a"), (Sort::Waiting, "b")] {
            picture.sort(sort);
            assert_eq!(nodes(&picture)[0], first, "{sort:?}");
        }
        let choice = Choice { view: View::Ports, sort: Sort::Waiting };
        let lines = picture.to_screen(200, 24, choice, usize::MAX);
        let style = |starts: &str| lines.iter().find(|line| line.text.starts_with(starts)).unwrap().style;
        assert_eq!(
            (style("hot spot:"), style("node "), style("b "), style("a ")),
            (Style::Alarm, Style::Heading, Style::Notice, Style::Plain)
        );
        let sorts = std::iter::successors(Some(Sort::Waiting), |sort| Some(sort.next()));
        assert_eq!(sorts.take(6).filter(|sort| *sort == Sort::Waiting).count(), 2, "once around");
    }

    #[test]
    fn lanes_take_two_readings() {
        assert!(!seen(&[swept(1, 5)]).has_lanes());
        assert!(!seen(&[swept(1, 5), swept(1, 5)]).has_lanes(), "the same sweep twice");
        assert!(seen(&[swept(1, 5), swept(2, 5)]).has_lanes());
        assert!(seen(&[swept(1, 5), swept(2, 5), swept(2, 5)]).has_lanes(), "what was seen stays");
        // The clock of a manager that was started afresh begins again.
        assert!(!seen(&[swept(7, 5), swept(8, 5), swept(1, 0)]).has_lanes());
        let mut half = swept(2, 5);
        half.1[0].read_at = Some(Time::from_secs(1));
        assert!(!seen(&[swept(1, 5), half.clone()]).has_lanes(), "a sweep under way");
        half.1[0].silent = true;
        assert!(seen(&[swept(1, 5), half]).has_lanes(), "nobody waits for the silent");
    }

    #[test]
    fn the_heading_shows_if_the_pm_runs_and_is_attached() {
        let heading = |running, attached| {
            let mut now = swept(1, 0);
            now.0.attached = attached;
            let lanes = Lanes::default();
            Picture::new("x", running, &now.0, &Sight { ports: &now.1, lanes: &lanes }).heading()
        };
        assert!(heading(false, false).contains("is not running"));
        assert!(heading(true, false).contains("waits for its agent"));
        assert!(heading(true, true).contains("is running"));
    }
}
