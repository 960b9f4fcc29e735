//! LIDs of machines that are gone: between slots, or for good.
//!
//! A vSwitch's table tells which LIDs those are, since their rows stay: what it sends to a slot is a machine's. So nothing of
//! it has to be on file, and a manager that was restarted finds them again.

use std::collections::{BTreeMap, BTreeSet};

use weft_machine::Time;
use weft_wire::Lid;

/// LIDs that rest, each with the time at which that was seen first.
#[derive(Debug, Default)]
pub(crate) struct Quarantine {
    since: BTreeMap<Lid, Time>,
}

impl Quarantine {
    /// Takes down which LIDs have rows and no port now, and takes out those that have rested as long as `period` says; those
    /// are returned. Without a period all rest until their port is back.
    pub(crate) fn update(
        &mut self,
        now: Time,
        resting: &BTreeSet<Lid>,
        period: Option<Time>,
    ) -> BTreeSet<Lid> {
        self.since.retain(|lid, _| resting.contains(lid));
        resting.iter().for_each(|lid| {
            self.since.entry(*lid).or_insert(now);
        });
        let is_over = |since: Time| period.is_some_and(|period| now.saturating_sub(since) >= period);
        self.since.extract_if(.., |_, since| is_over(*since)).map(|(lid, _)| lid).collect()
    }

    /// Those that rest.
    pub(crate) fn lids(&self) -> impl Iterator<Item = Lid> {
        self.since.keys().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(lids: &[u16]) -> BTreeSet<Lid> {
        lids.iter().map(|lid| Lid(*lid)).collect()
    }

    #[test]
    fn a_lid_rests_from_when_it_was_seen_first() {
        let (mut quarantine, period) = (Quarantine::default(), Some(Time::from_secs(40)));
        assert_eq!(quarantine.update(Time::from_secs(1), &set(&[7, 8]), period), set(&[]));
        assert_eq!(quarantine.update(Time::from_secs(40), &set(&[7, 8, 9]), period), set(&[]));
        assert_eq!(quarantine.update(Time::from_secs(41), &set(&[7, 9]), period), set(&[7]));
        assert_eq!(quarantine.lids().collect::<Vec<_>>(), [Lid(9)]);
        // One that came back in between begins again.
        assert_eq!(quarantine.update(Time::from_secs(42), &set(&[]), period), set(&[]));
        assert_eq!(quarantine.update(Time::from_secs(90), &set(&[9]), period), set(&[]));
        assert_eq!(quarantine.update(Time::from_secs(900), &set(&[9]), None), set(&[]));
        assert_eq!(quarantine.update(Time::from_secs(900), &set(&[9]), period), set(&[9]));
    }
}
