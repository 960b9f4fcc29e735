//! The performance manager's status and ports in the control protocol.

use std::time::Duration;

use weft_control::Page;
use weft_control::agent::PortEnd;
use weft_control::pm::{PmPort, PmStatus};
use weft_pm::Snapshot;

use crate::pm::figures::PmFigures;

pub(crate) fn status(figures: &PmFigures, age: Duration) -> PmStatus {
    let PmFigures { attached, options, swept_at: _, editions: _, snapshot } = figures;
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
        hot_spots: snapshot.hot_spots.clone(),
        moves: snapshot.moves as u64,
        statistics: snapshot.statistics,
    }
}

/// A page of ports, in order of node and port.
pub(crate) fn ports(snapshot: &Snapshot, page: &Page) -> (Vec<PmPort>, bool) {
    let place = |port: &&PmPort| PortEnd::from(*port);
    let mut ports: Vec<&PmPort> = snapshot.ports.iter().map(|port| &port.shown).collect();
    ports.sort_by_key(place);
    let (ports, more) = page.cut(ports, place);
    (ports.into_iter().cloned().collect(), more)
}
