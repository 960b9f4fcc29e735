//! The performance manager's events and status in the control protocol.

use std::time::Duration;

use weft_control::agent::PortEnd;
use weft_control::event::PmEvent;
use weft_control::pm::{self, PmEnd, PmPort, PmStatus, PmTotals};
use weft_control::{HexGuid, Page};
use weft_pm::{EndSnapshot, Event, HotSpotSnapshot, PortSnapshot, Snapshot, Statistics, Totals};

use crate::pm::figures::PmFigures;

/// An event; `None` for one that this version does not know.
pub(crate) fn event(event: &Event) -> Option<PmEvent> {
    Some(match event {
        Event::Learned { nodes, ports } => PmEvent::Learned { nodes: *nodes as u64, ports: *ports as u64 },
        Event::NotLearned { question, status } => {
            PmEvent::NotLearned { question: *question, status: *status }
        }
        Event::Swept { number, took, late, unanswered } => {
            PmEvent::Swept { number: *number, took_ns: took.as_nanos(), late: *late, unanswered: *unanswered }
        }
        Event::Silent { node } => PmEvent::Silent { node_guid: (*node).into() },
        Event::Answers { node } => PmEvent::Answers { node_guid: (*node).into() },
        Event::HotSpot { lid, port, congestion } => {
            PmEvent::HotSpot { lid: *lid, port_guid: (*port).into(), congestion: *congestion }
        }
        Event::HotSpotEnded { lid, port } => PmEvent::HotSpotEnded { lid: *lid, port_guid: (*port).into() },
        Event::Contributor { hot_spot, lid, port, congestion, utilisation_ppm } => PmEvent::Contributor {
            hot_spot: *hot_spot,
            lid: *lid,
            port_guid: (*port).into(),
            congestion: *congestion,
            utilisation_ppm: *utilisation_ppm,
        },
        Event::Repathed { hot_spot, hot_spot_guid, lid, port } => PmEvent::Repathed {
            hot_spot: *hot_spot,
            hot_spot_guid: (*hot_spot_guid).into(),
            lid: *lid,
            port_guid: (*port).into(),
        },
        Event::Unpathed { hot_spot, hot_spot_guid, lid, port } => PmEvent::Unpathed {
            hot_spot: *hot_spot,
            hot_spot_guid: (*hot_spot_guid).into(),
            lid: *lid,
            port_guid: (*port).into(),
        },
        Event::NotMoved { hot_spot, lid, status } => {
            PmEvent::NotMoved { hot_spot: *hot_spot, lid: *lid, status: *status }
        }
        Event::AskedAgain => PmEvent::AskedAgain,
        Event::Forgotten => PmEvent::Forgotten,
        _ => return None,
    })
}

pub(crate) fn status(figures: &PmFigures, age: Duration) -> PmStatus {
    let PmFigures { attached, options, snapshot } = figures;
    PmStatus {
        age_ms: u64::try_from(age.as_millis()).unwrap_or(u64::MAX),
        attached: *attached,
        ready: snapshot.ready,
        lid: snapshot.lid,
        sm_lid: snapshot.sm_lid,
        slow_sl: snapshot.slow_sl,
        dilation: snapshot.dilation,
        interval_ns: options.interval.as_nanos(),
        threshold: options.threshold,
        sweeps_lanes: options.lanes,
        hot_spots: snapshot.hot_spots.iter().map(hot_spot).collect(),
        moves: snapshot.moves as u64,
        statistics: statistics(&snapshot.statistics),
    }
}

fn hot_spot(spot: &HotSpotSnapshot) -> pm::HotSpot {
    pm::HotSpot {
        lid: spot.lid,
        port_guid: spot.port_guid.into(),
        since_sweep: spot.since_sweep,
        contributors: spot.contributors.iter().copied().map(HexGuid).collect(),
    }
}

/// A page of ports, in order of node and port.
pub(crate) fn ports(snapshot: &Snapshot, page: &Page) -> (Vec<PmPort>, bool) {
    let place = |port: &&PortSnapshot| PortEnd { node: port.end.node_guid.into(), port: port.end.port };
    let mut ports: Vec<&PortSnapshot> = snapshot.ports.iter().collect();
    ports.sort_by_key(place);
    let (ports, more) = page.cut(ports, place);
    (ports.into_iter().map(port).collect(), more)
}

fn port(port: &PortSnapshot) -> PmPort {
    PmPort {
        end: end(&port.end),
        peer: port.peer.as_ref().map(end),
        rate_bits: port.rate_bits,
        totals: totals(&port.totals),
        lane_waits: port.lane_waits.to_vec(),
        read_at_ns: port.read_at.map(weft_machine::Time::as_nanos),
        silent: port.silent,
        refuses: port.refuses,
        congestion: port.congestion,
        xmit_bandwidth: port.xmit_bandwidth,
        rcv_bandwidth: port.rcv_bandwidth,
        utilisation: port.utilisation,
        hot_spot: port.hot_spot,
        contributor: port.contributor_since.is_some(),
    }
}

fn end(end: &EndSnapshot) -> PmEnd {
    PmEnd {
        name: end.name.clone(),
        kind: end.node_type.into(),
        node_guid: end.node_guid.into(),
        port_guid: end.port_guid.into(),
        lid: end.lid,
        port: end.port,
    }
}

/// The same fields of another structure.
macro_rules! taken_over {
    ($from:expr => $name:ident { $( $field:ident, )* } $( $rest:tt )*) => {
        $name { $( $field: $from.$field, )* $( $rest )* }
    };
}

fn totals(t: &Totals) -> PmTotals {
    taken_over!(t => PmTotals {
        port_xmit_data, port_rcv_data, port_xmit_pkts, port_rcv_pkts, port_unicast_xmit_pkts, port_unicast_rcv_pkts,
        port_multicast_xmit_pkts, port_multicast_rcv_pkts, symbol_error_counter, link_error_recovery_counter,
        link_downed_counter, port_rcv_errors, port_rcv_remote_physical_errors, port_rcv_switch_relay_errors,
        port_xmit_discards, port_xmit_constraint_errors, port_rcv_constraint_errors, local_link_integrity_errors,
        excessive_buffer_overrun_errors, vl15_dropped, port_xmit_wait, qp1_dropped,
    })
}

fn statistics(s: &Statistics) -> pm::Statistics {
    use pm::Statistics as Shown;
    taken_over!(s => Shown {
        nodes, ports, silent_nodes, sweeps, late_sweeps, requests, retries, timeouts, failures, refused, unmatched,
        in_flight_max, silences, learned, not_learned, reports, hot_spots_found, repaths, unpaths, notices_refused,
        notices_unanswered, moves_dropped,
    } sweep_last_ns: s.sweep_last.as_nanos(), sweep_longest_ns: s.sweep_longest.as_nanos(),)
}
