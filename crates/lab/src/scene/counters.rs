//! Rates over cables, from two readings of the counters of data lanes.

use std::collections::BTreeMap;

use weft_bundle::folder::LabFolder;
use weft_control::agent::{CountedPort, CountsPage, PortCounts, PortEnd};
use weft_control::{Answer, Request};
use weft_page::state::{LaneLoad, Load, thousandths};

use crate::agents::{ask_each, further};

/// Seconds of fabric time in a tick of PortXmitWait.
const TICK_SECONDS: f64 = 4e-9;
/// The least rate in MB/s, and the least share of a second, that counts.
const LEAST: f64 = 0.001;
/// Megabytes per second on a cable that management alone may need: a performance manager that sweeps 702 devices every two seconds moves
/// 0.12 at its own host.
const MANAGEMENT_MOST: f64 = 0.25;

/// The last reading of an agent.
#[derive(Debug, Default)]
struct Reading {
    now_ns: u64,
    sum: u64,
    ports: BTreeMap<PortEnd, CountedPort>,
}

/// What a port did in the second before its last reading.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PortRates {
    /// Megabytes per second received, by lane.
    received: BTreeMap<u8, f64>,
    /// The share of the second in which the port had data and sent none.
    wait: f64,
    /// The same by lane.
    waits: BTreeMap<u8, f64>,
}

/// The readings of all agents, and what came of them.
#[derive(Debug, Default)]
pub(super) struct Counters {
    readings: BTreeMap<String, Reading>,
    /// By the port as its agent calls it.
    pub(super) rates: BTreeMap<PortEnd, PortRates>,
    /// Nanoseconds of machine time in one of fabric time, where that is known.
    pub(super) dilation: u32,
}

impl Counters {
    /// Reads the counters of these agents. One that does not answer has none, and begins again when it does.
    pub(super) fn read(&mut self, folder: &LabFolder, agents: &[&str]) -> anyhow::Result<()> {
        let request = |known| Request::LaneCounts(CountsPage { known, ..CountsPage::default() });
        let first: Vec<(&str, Request)> = agents
            .iter()
            .map(|agent| (*agent, request(self.readings.get(*agent).map(|reading| reading.sum))))
            .collect();
        let mut heard: BTreeMap<String, PortCounts> = BTreeMap::new();
        let silent =
            ask_each(folder, first.iter().map(|(agent, request)| (*agent, request)), |agent, answer| {
                let Answer::LaneCounts(mut counts) = answer else { return None };
                let next = further(counts.ports.last().map(|port| port.end), counts.more);
                let known = heard.entry(agent.to_owned()).or_default();
                let mut ports = std::mem::take(&mut known.ports);
                ports.append(&mut counts.ports);
                *known = PortCounts { ports, ..counts };
                next.map(|page| {
                    Request::LaneCounts(CountsPage { after: page.after, ..CountsPage::default() })
                })
            })?;
        for agent in silent.keys() {
            self.readings.remove(*agent);
        }
        self.rates.clear();
        for (agent, counts) in heard {
            self.take(agent, counts);
        }
        Ok(())
    }

    /// Whether ports did no more than management at the last reading, and there was one.
    pub(super) fn are_quiet(&self) -> bool {
        let is_management = |rates| load(Some(rates), Some(rates)).as_ref().is_none_or(is_management);
        !self.readings.is_empty() && self.rates.values().all(is_management)
    }

    /// Forgets what was read: rates begin with the next two readings.
    pub(super) fn forget(&mut self) {
        self.readings.clear();
        self.rates.clear();
    }

    fn take(&mut self, agent: String, counts: PortCounts) {
        self.dilation = self.dilation.max(counts.dilation);
        let before = self.readings.get_mut(&agent);
        if let Some(before) = before
            && before.sum == counts.sum
            && counts.ports.is_empty()
        {
            before.now_ns = counts.now_ns;
            return;
        }
        let ports: BTreeMap<PortEnd, CountedPort> =
            counts.ports.into_iter().map(|port| (port.end, port)).collect();
        let now = Reading { now_ns: counts.now_ns, sum: counts.sum, ports };
        // An agent that began again has a clock that began again.
        let before = self.readings.remove(&agent);
        let before = before.and_then(|before| Some((now.now_ns.checked_sub(before.now_ns)?, before)));
        if let Some((passed, before)) = before.filter(|(passed, _)| *passed > 0) {
            let seconds = passed as f64 / 1e9 / f64::from(counts.dilation.max(1));
            for (end, port) in &now.ports {
                let rates = rates(before.ports.get(end), port, seconds);
                if rates != PortRates::default() {
                    self.rates.insert(*end, rates);
                }
            }
        }
        self.readings.insert(agent, now);
    }
}

/// What a port did in some seconds of fabric time.
pub fn rates(before: Option<&CountedPort>, now: &CountedPort, seconds: f64) -> PortRates {
    let mut rates = PortRates::default();
    // One that has counted for the first time had counted nothing.
    let nothing = CountedPort::default();
    let before = before.unwrap_or(&nothing);
    let share = |now: u64, before: u64| {
        let share = now.saturating_sub(before) as f64 * TICK_SECONDS / seconds;
        Some(thousandths(share.min(1.0))).filter(|share| *share >= LEAST)
    };
    rates.wait = share(now.xmit_wait, before.xmit_wait).unwrap_or_default();
    for lane in &now.lanes {
        let known = before.lanes.iter().find(|known| known.lane == lane.lane);
        let (words, waited) = known.map_or((0, 0), |known| (known.rcv_words, known.xmit_wait));
        let megabytes = lane.rcv_words.saturating_sub(words) as f64 * 4.0 / 1e6 / seconds;
        if megabytes >= LEAST {
            rates.received.insert(lane.lane.0, thousandths(megabytes));
        }
        if let Some(share) = share(lane.xmit_wait, waited) {
            rates.waits.insert(lane.lane.0, share);
        }
    }
    rates
}

/// What flows from one end of a cable to the other: as the one waits and the other receives.
pub fn load(from: Option<&PortRates>, to: Option<&PortRates>) -> Option<Load> {
    let mut lanes: BTreeMap<String, LaneLoad> = BTreeMap::new();
    for (lane, mbps) in to.iter().flat_map(|to| &to.received) {
        lanes.entry(lane.to_string()).or_default().mbps = *mbps;
    }
    for (lane, wait) in from.iter().flat_map(|from| &from.waits) {
        lanes.entry(lane.to_string()).or_default().wait = *wait;
    }
    let mbps = thousandths(lanes.values().map(|lane| lane.mbps).sum());
    let wait = from.map_or(0.0, |from| from.wait);
    (mbps > 0.0 || wait > 0.0 || !lanes.is_empty()).then_some(Load { mbps, wait, lanes })
}

/// Whether it is no more than management's packets, which come and go with each sweep.
pub(super) fn is_management(load: &Load) -> bool {
    load.wait == 0.0 && load.mbps < MANAGEMENT_MOST
}

#[cfg(test)]
mod tests {
    use weft_control::HexGuid;
    use weft_control::agent::LaneCount;
    use weft_wire::{Guid, PortNum, VirtualLane};

    use super::*;

    fn counted(port: u8, xmit_wait: u64, lanes: &[(u8, u64, u64)]) -> CountedPort {
        let lane =
            |&(lane, rcv_words, xmit_wait)| LaneCount { lane: VirtualLane(lane), rcv_words, xmit_wait };
        let end = PortEnd { node: HexGuid(Guid(1)), port: PortNum(port) };
        CountedPort { end, xmit_wait, lanes: lanes.iter().map(lane).collect() }
    }

    #[test]
    fn two_readings_give_rates_and_waits() {
        let mut counters = Counters::default();
        let reading = |seconds: u64, sum, port| PortCounts {
            dilation: 1,
            now_ns: seconds * 1_000_000_000,
            sum,
            ports: vec![port],
            more: false,
        };
        assert!(!counters.are_quiet(), "nothing is known");
        counters.take("a".into(), reading(10, 1, counted(1, 0, &[(0, 1_000_000, 0)])));
        assert!(counters.are_quiet());
        assert!(counters.rates.is_empty(), "one reading is no rate");
        let port = counted(1, 125_000_000, &[(0, 2_000_000, 0), (3, 500_000, 125_000_000)]);
        counters.take("a".into(), reading(12, 2, port.clone()));
        let rates = &counters.rates[&port.end];
        assert_eq!(rates.received, BTreeMap::from([(0, 2.0), (3, 1.0)]));
        assert!(!counters.are_quiet());
        assert_eq!((rates.wait, &rates.waits), (0.25, &BTreeMap::from([(3, 0.25)])));
        let load = load(Some(rates), Some(rates)).unwrap();
        assert_eq!((load.mbps, load.wait, load.lanes.len()), (3.0, 0.25, 2));
        counters.rates.clear();
        counters.take("a".into(), reading(1, 3, port));
        assert!(counters.rates.is_empty(), "an agent that began again");
    }

    #[test]
    fn sweeps_are_management_and_what_waits_is_not() {
        let load = |mbps, wait| Load { mbps, wait, lanes: BTreeMap::new() };
        assert!(is_management(&load(0.12, 0.0)));
        assert!(!is_management(&load(0.12, 0.001)) && !is_management(&load(0.25, 0.0)));
    }

    #[test]
    fn nothing_is_no_load() {
        assert_eq!(load(None, None), None);
        assert_eq!(load(Some(&PortRates::default()), Some(&PortRates::default())), None);
        let before = counted(1, 0, &[(0, 100, 0)]);
        assert_eq!(rates(Some(&before), &counted(1, 1, &[(0, 150, 1)]), 1.0), PortRates::default());
        assert_eq!(rates(Some(&before), &counted(1, 0, &[(0, 5, 0)]), 1.0), PortRates::default(), "reset");
    }
}
