//! What each lane waited between two readings. The performance manager tells the totals; who looks twice sees the rate.

use std::collections::BTreeMap;

use weft_machine::Time;
use weft_pm::{PortSnapshot, Snapshot};
use weft_wire::{Guid, PortNum};

use super::picture::TICK_SECONDS;

/// The ticks of each lane at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Reading {
    at: Time,
    waits: [u64; 16],
}

/// The last two readings of every port.
#[derive(Debug, Default)]
pub(super) struct Lanes(BTreeMap<(Guid, PortNum), (Option<Reading>, Reading)>);

impl Lanes {
    /// Takes what the performance manager says; ports that it has not read anew stay as they are.
    pub(super) fn note(&mut self, snapshot: &Snapshot) {
        for port in &snapshot.ports {
            let Some(at) = port.read_at else { continue };
            let now = Reading { at, waits: port.lane_waits };
            let (before, last) = self.0.entry(place(port)).or_insert((None, now));
            if last.at != now.at {
                // A manager that was started afresh has a clock that begins anew.
                *before = (last.at < now.at).then_some(*last);
                *last = now;
            }
        }
    }

    /// The share of the time that each lane waited between the last two readings.
    pub(super) fn shares(&self, port: &PortSnapshot, dilation: u32) -> Option<Vec<f64>> {
        let (before, last) = self.0.get(&place(port))?;
        let before = before.as_ref()?;
        let seconds = last.at.saturating_sub(before.at).as_secs_f64();
        let share = |(now, before): (&u64, &u64)| {
            let ticks = now.saturating_sub(*before) as f64;
            // Lanes are read a moment later than what `at` is of, so it may come out a little above 1.
            (ticks * TICK_SECONDS * f64::from(dilation.max(1)) / seconds).min(1.0)
        };
        Some(last.waits.iter().zip(&before.waits).map(share).collect())
    }
}

fn place(port: &PortSnapshot) -> (Guid, PortNum) {
    (port.end.node_guid, port.end.port)
}
