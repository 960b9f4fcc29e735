//! Waiting time of each lane between two readings. The performance manager keeps totals; two readings give the rate.

use std::collections::BTreeMap;

use weft_control::agent::PortEnd;
use weft_control::pm::PmPort;
use weft_machine::Time;

/// Seconds of fabric time in a tick of PortXmitWait.
pub(super) const TICK_SECONDS: f64 = 4e-9;

/// The ticks of each lane at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Reading {
    at: Time,
    waits: [u64; 16],
}

/// The last two readings of every port.
#[derive(Debug, Default)]
pub(super) struct Lanes(BTreeMap<PortEnd, (Option<Reading>, Reading)>);

impl Lanes {
    /// Takes what the performance manager says; ports that it has not read again stay as they are.
    pub(super) fn note(&mut self, ports: &[PmPort]) {
        for port in ports {
            let Some(at) = port.read_at else { continue };
            let now = Reading { at, waits: port.lane_waits };
            let (before, last) = self.0.entry(port.into()).or_insert((None, now));
            if last.at != now.at {
                // A manager that was started afresh has a clock that begins again.
                let goes_on = last.at < now.at;
                let earlier = std::mem::replace(last, now);
                *before = goes_on.then_some(earlier);
            }
        }
    }

    /// The share of the time that each lane waited between the last two readings.
    pub(super) fn shares(&self, port: &PmPort, dilation: u32) -> Option<Vec<f64>> {
        let (before, last) = self.0.get(&port.into())?;
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
