//! The faults that a seed draws for a fabric.

use std::collections::BTreeSet;

use weft_fault::{
    BadIdentity, Fault, Impaired, Impairment, Lag, Nodes, Presented, Process, Rate, Share, Signalling, Way,
    Width,
};
use weft_machine::{Random, Time};
use weft_topology::{Cable, Fabric, NodeIndex, PortRef};

use crate::Planned;

/// What a laboratory has besides its agents, its first subnet manager and its hub.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Laboratory {
    /// Subnet managers that stand by.
    pub standbys: u8,
    /// Whether it has a performance manager.
    pub pm: bool,
    /// Whether it has a VM manager.
    pub vmm: bool,
}

impl Laboratory {
    /// Its processes that are no agents.
    pub fn processes(self) -> Vec<Process<NodeIndex>> {
        let mut all = vec![Process::Sm, Process::Hub];
        all.extend(self.pm.then_some(Process::Pm));
        all.extend(self.vmm.then_some(Process::Vmm));
        all.extend((0..self.standbys).map(Process::Standby));
        all
    }

    /// The same with all managers that a schedule names.
    #[must_use]
    pub fn with<Node, Port>(mut self, schedule: &[Planned<Node, Port>]) -> Self {
        for planned in schedule {
            match &planned.fault {
                Fault::Kill(process) | Fault::Freeze(process) => match process {
                    Process::Pm => self.pm = true,
                    Process::Vmm => self.vmm = true,
                    Process::Standby(number) => self.standbys = self.standbys.max(number.saturating_add(1)),
                    _ => {}
                },
                _ => {}
            }
        }
        self
    }
}

/// What may go wrong, and when. The default is that of `weft chaos`, live and in virtual time.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// When faults begin at the earliest, and when the last one ends.
    pub within: (Time, Time),
    /// How many there are at most, of one at least.
    pub faults_max: u32,
    /// How long each lasts at most. Half of them are much shorter: often too short for anyone to notice.
    pub lasts_max: Time,
    /// Whether processes are killed and started again, and managers frozen.
    pub kills: bool,
    /// Which processes there are.
    pub laboratory: Laboratory,
    /// Slots that may hold no virtual machine. Nothing befalls their cables: without a machine it would do nothing.
    pub empty_slots: &'a [NodeIndex],
}

impl Default for Scope<'_> {
    fn default() -> Self {
        Self {
            within: (Time::from_millis(20), Time::from_secs(6)),
            faults_max: 8,
            lasts_max: Time::from_secs(3),
            kills: true,
            laboratory: Laboratory::default(),
            empty_slots: &[],
        }
    }
}

impl<'a> Scope<'a> {
    /// What may go wrong in a laboratory with these empty slots.
    pub fn of(laboratory: Laboratory, empty_slots: &'a [NodeIndex]) -> Self {
        Self { laboratory, empty_slots, ..Self::default() }
    }
}

/// Half of the faults last less than this.
const BRIEF: Time = Time::from_millis(60);

/// The faults of a seed, in the order of their beginnings: of one fabric the same, in whatever order a file lists it. No process has two
/// kills that overlap, so that each end ends its own.
pub fn draw(fabric: &Fabric, seed: u64, scope: &Scope<'_>) -> Vec<Planned<NodeIndex, PortRef>> {
    let mut chance = Chance::new(fabric, seed, scope);
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
    schedule.sort_by_key(|planned| planned.at);
    schedule
}

struct Chance<'a> {
    random: Random,
    fabric: &'a Fabric,
    scope: &'a Scope<'a>,
    /// Processes that are no agents.
    others: Vec<Process<NodeIndex>>,
    /// By their GUIDs, whatever their places are.
    nodes: Vec<NodeIndex>,
    /// By the GUIDs of their ends, the lower one first.
    cables: Vec<[PortRef; 2]>,
}

impl<'a> Chance<'a> {
    fn new(fabric: &'a Fabric, seed: u64, scope: &'a Scope<'a>) -> Self {
        let random = Random::of_purpose(seed, "chaos");
        let place = |end: &PortRef| (fabric.node(end.node).guid, end.port);
        let mut nodes: Vec<NodeIndex> = fabric.iter().map(|(index, _)| index).collect();
        nodes.sort_by_key(|node| fabric.node(*node).guid);
        let ends = |cable: Cable| {
            let (a, b) = (cable.a, cable.b);
            if place(&a) <= place(&b) { [a, b] } else { [b, a] }
        };
        let empty =
            |cable: &Cable| [cable.a, cable.b].iter().any(|end| scope.empty_slots.contains(&end.node));
        let mut cables: Vec<[PortRef; 2]> = fabric.cables().filter(|cable| !empty(cable)).map(ends).collect();
        cables.sort_by_key(|[first, _]| place(first));
        let others = if scope.kills { scope.laboratory.processes() } else { Vec::new() };
        Self { random, fabric, scope, others, nodes, cables }
    }

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
        match self.random.below(13) {
            0..2 if self.scope.kills => Fault::Kill(Process::Agent(self.node())),
            2 if self.scope.kills => {
                Fault::Kill(self.others[self.random.below(self.others.len() as u32) as usize])
            }
            0..5 => Fault::LinkDown(self.end()),
            5 => Fault::Freeze(self.frozen()),
            6 => Fault::Partition(self.side()),
            7 => Fault::BadIdentity(Presented { node: self.node(), identity: self.identity() }),
            _ => Fault::Impair(self.impaired()),
        }
    }

    /// A node, or one of the other processes, where those may be killed.
    fn frozen(&mut self) -> Process<NodeIndex> {
        let chosen = self.random.below(2 * self.others.len() as u32);
        self.others.get(chosen as usize).copied().unwrap_or_else(|| Process::Agent(self.node()))
    }

    fn identity(&mut self) -> BadIdentity {
        BadIdentity::ALL[self.random.below(BadIdentity::ALL.len() as u32) as usize]
    }

    fn node(&mut self) -> NodeIndex {
        self.nodes[self.random.below(self.nodes.len() as u32) as usize]
    }

    /// An end of any cable.
    fn end(&mut self) -> PortRef {
        let cable = self.cables[self.random.below(self.cables.len() as u32) as usize];
        cable[self.random.below(2) as usize]
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
        let mut side: Vec<NodeIndex> = side.into_iter().collect();
        side.sort_by_key(|node| self.fabric.node(*node).guid);
        Nodes(side)
    }

    fn impaired(&mut self) -> Impaired<PortRef> {
        let (at, how) = (self.end(), self.impairment());
        let at = if matches!(how, Impairment::SlowDrain(_)) { self.host_end(at) } else { at };
        let way = if how.is_of_port() { Way::Both } else { Way::ALL[self.random.below(3) as usize] };
        Impaired { at, way, how, seed: self.random.below(1 << 30) }
    }

    /// A host's end of a cable, if there is any.
    fn host_end(&mut self, otherwise: PortRef) -> PortRef {
        let ends = self.cables.iter().flatten().copied();
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
