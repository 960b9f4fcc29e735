//! Which faults a seed has for a fabric.

use std::collections::BTreeSet;

use weft_fault::{
    BadIdentity, Fault, Impaired, Impairment, Lag, Nodes, Presented, Process, Rate, Share, Signalling, Way,
    Width,
};
use weft_machine::{Random, Time};
use weft_topology::{Cable, Fabric, NodeIndex, PortRef};

use crate::Planned;

/// What may go wrong, and when.
#[derive(Clone, Debug)]
pub struct Scope {
    /// When faults begin at the earliest, and when the last one ends.
    pub within: (Time, Time),
    /// How many there are at most, of one at least.
    pub faults_max: u32,
    /// How long each lasts at most. Half of them are much shorter: often too short for anyone to notice.
    pub lasts_max: Time,
    /// Whether processes are killed and started again, and managers frozen.
    pub kills: bool,
    /// Which other processes are: managers and the hub.
    pub managers: Vec<Process<NodeIndex>>,
    /// Whether agents present bad identities.
    pub identities: bool,
}

impl Default for Scope {
    fn default() -> Self {
        Self {
            within: (Time::from_millis(20), Time::from_secs(4)),
            faults_max: 8,
            lasts_max: Time::from_secs(3),
            kills: true,
            managers: vec![Process::Sm],
            identities: true,
        }
    }
}

/// Half of the faults last less than this.
const BRIEF: Time = Time::from_millis(60);

/// The faults of a seed, in the order of their beginnings. No process has two kills that overlap, so that each end ends its own.
pub fn draw(fabric: &Fabric, seed: u64, scope: &Scope) -> Vec<Planned<NodeIndex, PortRef>> {
    let mut chance = Chance { random: Random::of_purpose(seed, "chaos"), fabric, scope, cables: Vec::new() };
    chance.cables = fabric.cables().collect();
    if chance.cables.is_empty() {
        return Vec::new();
    }
    let (mut schedule, mut killed): (Vec<Planned<_, _>>, BTreeSet<Process<NodeIndex>>) = Default::default();
    for _ in 0..=chance.random.below(scope.faults_max) {
        let planned = chance.planned();
        let again = matches!(&planned.fault, Fault::Kill(process) if !killed.insert(*process));
        // The same fault twice would end with the first of its ends.
        if !again && schedule.iter().all(|other| other.fault != planned.fault) {
            schedule.push(planned);
        }
    }
    schedule.sort();
    schedule
}

struct Chance<'a> {
    random: Random,
    fabric: &'a Fabric,
    scope: &'a Scope,
    cables: Vec<Cable>,
}

impl Chance<'_> {
    fn planned(&mut self) -> Planned<NodeIndex, PortRef> {
        let (from, until) = self.scope.within;
        let at = from + self.below(until.saturating_sub(from));
        let most = if self.random.below(2) == 0 { BRIEF } else { self.scope.lasts_max };
        let lasts = self.below(most).max(Time::from_millis(1)).min(until.saturating_sub(at));
        Planned { at, fault: self.fault(), lasts: Some(lasts) }
    }

    /// A time below another one, in whole milliseconds, so that a file can hold it exactly.
    fn below(&mut self, most: Time) -> Time {
        let millis = u32::try_from(most.as_nanos() / 1_000_000).unwrap_or(u32::MAX);
        Time::from_millis(self.random.below(millis).into())
    }

    fn fault(&mut self) -> Fault<NodeIndex, PortRef> {
        let managers = &self.scope.managers;
        match self.random.below(13) {
            0..2 if self.scope.kills => Fault::Kill(Process::Agent(self.node())),
            2 if self.scope.kills && !managers.is_empty() => {
                Fault::Kill(managers[self.random.below(managers.len() as u32) as usize])
            }
            0..5 => Fault::LinkDown(self.end()),
            5 => Fault::Freeze(self.frozen()),
            6 => Fault::Partition(self.side()),
            7 if self.scope.identities => {
                Fault::BadIdentity(Presented { node: self.node(), identity: self.identity() })
            }
            _ => Fault::Impair(self.impaired()),
        }
    }

    /// A node, or one of the other processes, where those may be killed.
    fn frozen(&mut self) -> Process<NodeIndex> {
        let managers = if self.scope.kills { self.scope.managers.as_slice() } else { &[] };
        let chosen = if managers.is_empty() { 0 } else { self.random.below(2 * managers.len() as u32) };
        managers.get(chosen as usize).copied().unwrap_or_else(|| Process::Agent(self.node()))
    }

    fn identity(&mut self) -> BadIdentity {
        BadIdentity::ALL[self.random.below(BadIdentity::ALL.len() as u32) as usize]
    }

    fn node(&mut self) -> NodeIndex {
        NodeIndex(self.random.below(self.fabric.nodes().len() as u32))
    }

    /// An end of any cable.
    fn end(&mut self) -> PortRef {
        let cable = self.cables[self.random.below(self.cables.len() as u32) as usize];
        if self.random.below(2) == 0 { cable.a } else { cable.b }
    }

    /// A node with those around it, or alone, but never all.
    fn side(&mut self) -> Nodes<NodeIndex> {
        let middle = self.end().node;
        let mut side = BTreeSet::from([middle]);
        if self.random.below(2) == 0 {
            side.extend(self.fabric.node(middle).cabled_ports().map(|(_, peer)| peer.node));
        }
        if side.len() >= self.fabric.nodes().len() {
            side = BTreeSet::from([middle]);
        }
        Nodes(side.into_iter().collect())
    }

    fn impaired(&mut self) -> Impaired<PortRef> {
        let (at, how) = (self.end(), self.impairment());
        let at = if matches!(how, Impairment::SlowDrain(_)) { self.host_end(at) } else { at };
        let way = if how.is_of_port() { Way::Both } else { Way::ALL[self.random.below(3) as usize] };
        Impaired { at, way, how, seed: self.random.below(1 << 30) }
    }

    /// A host's end of a cable, if there is any.
    fn host_end(&mut self, otherwise: PortRef) -> PortRef {
        let ends = self.cables.iter().flat_map(|cable| [cable.a, cable.b]);
        let hosts: Vec<PortRef> = ends.filter(|end| !self.fabric.node(end.node).is_switch()).collect();
        let chosen = self.random.below(hosts.len() as u32) as usize;
        hosts.get(chosen).copied().unwrap_or(otherwise)
    }

    fn impairment(&mut self) -> Impairment {
        let (some, many) = (self.share(30), self.share(100));
        let (short, long) = (self.lag(5), self.lag(50));
        match self.random.below(10) {
            0 => Impairment::Loss(some),
            1 => Impairment::Delay(long),
            2 => Impairment::Jitter(long),
            3 => Impairment::Reorder { share: some, by: short },
            4 => Impairment::Duplicate(many),
            5 => {
                let rate = 10_u64.pow(7 + self.random.below(4));
                Rate::try_from(rate).map_or(Impairment::Loss(some), Impairment::BitErrors)
            }
            6 => {
                let every = lag_of(u64::from(200 + self.random.below(800)));
                Impairment::Flap { every, down: lag_of(u64::from(10 + self.random.below(150))) }
            }
            7 => Impairment::Width(Width::ALL[self.random.below(3) as usize]),
            8 => Impairment::Speed(Signalling::ALL[self.random.below(6) as usize]),
            _ => Impairment::SlowDrain(some),
        }
    }

    /// A whole number of percent.
    fn share(&mut self, most: u32) -> Share {
        let percent = 1 + self.random.below(most);
        Share::try_from(percent * 10_000).expect("1 to 100 percent")
    }

    fn lag(&mut self, most: u32) -> Lag {
        lag_of(u64::from(1 + self.random.below(most)))
    }
}

fn lag_of(millis: u64) -> Lag {
    Lag::try_from(millis * 1_000_000).expect("a time from 1 ms to 1 s")
}
