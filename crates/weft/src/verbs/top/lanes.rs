//! Waiting time of each lane between two readings. The performance manager keeps totals; two readings give the rate.

use std::collections::BTreeMap;

use weft_control::agent::PortEnd;
use weft_control::pm::PmPort;

/// Seconds of fabric time in a tick of PortXmitWait.
pub(super) const TICK_SECONDS: f64 = 4e-9;

/// The ticks of each lane at one moment.
#[derive(Clone, Debug, PartialEq)]
struct Reading {
    at_ns: u64,
    waits: Vec<u64>,
}

/// The last two readings of every port.
#[derive(Debug, Default)]
pub(super) struct Lanes(BTreeMap<PortEnd, (Option<Reading>, Reading)>);

impl Lanes {
    /// Takes what the performance manager says; ports that it has not read again stay as they are.
    pub(super) fn note(&mut self, ports: &[PmPort]) {
        for port in ports {
            let Some(at_ns) = port.read_at_ns else { continue };
            let now = Reading { at_ns, waits: port.lane_waits.clone() };
            let (before, last) = self.0.entry(port.place()).or_insert_with(|| (None, now.clone()));
            if last.at_ns != now.at_ns {
                // A manager that was started afresh has a clock that begins again.
                let goes_on = last.at_ns < now.at_ns;
                let earlier = std::mem::replace(last, now);
                *before = goes_on.then_some(earlier);
            }
        }
    }

    /// The share of the time that each lane waited between the last two readings.
    pub(super) fn shares(&self, port: &PmPort, dilation: u32) -> Option<Vec<f64>> {
        let (before, last) = self.0.get(&port.place())?;
        let before = before.as_ref()?;
        let seconds = last.at_ns.saturating_sub(before.at_ns) as f64 / 1e9;
        let share = |(now, before): (&u64, &u64)| {
            let ticks = now.saturating_sub(*before) as f64;
            // Lanes are read a moment later than what `at` is of, so it may come out a little above 1.
            (ticks * TICK_SECONDS * f64::from(dilation.max(1)) / seconds).min(1.0)
        };
        Some(last.waits.iter().zip(&before.waits).map(share).collect())
    }
}
