//! One random schedule: what is drawn, and what is done to the fabric.

mod deaths;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};

use weft_machine::{Random, Time};
use weft_sim::{DiskOptions, Fault, Process, RandomLoss, SimOptions, Simulation, TraceMode};
use weft_sm::Past;
use weft_topology::generate::{GenerateOptions, xgft};
use weft_topology::{NodeIndex, PortRef, Virtualised};
use weft_vm::{
    Create, Detach, HostName, Hypervisor, Method, Migrate, Request, RequestId, Route, Step, UpdateOrder,
    VmName,
};
use weft_wire::{Guid, Lid};

use super::options::options;
use super::replay::Replay;
use super::totals::{Masters, counts};
use crate::support::counts::Counts;
use crate::support::workload::Workload;

/// Names of machines.
const VMS: u32 = 6;

/// Steps of one schedule.
const STEPS: u32 = 60;

/// Faults at once at most, so that moves go through between them.
const FAULTS_MAX: usize = 3;

/// How long a step takes at most, and how often slots are looked at.
const STEP_MILLIS: u32 = 150;
const LOOK: Time = Time::from_millis(2);

/// How long bring-up may take.
const START: Time = Time::from_secs(60);

const METHODS: [Method; 4] = [Method::FtreeMinrc, Method::Skyline, Method::Itrc, Method::Full];
const ORDERS: [UpdateOrder; 4] =
    [UpdateOrder::Ordered, UpdateOrder::OrderedLate, UpdateOrder::DropFirst, UpdateOrder::Unordered];

const KILLED_AT: [Step; 8] = [
    Step::Reserve,
    Step::Freeze,
    Step::Import,
    Step::Reroute,
    Step::Commit,
    Step::Undo,
    Step::Back,
    Step::Done,
];

/// Machines that come, move and go in a fabric, and what is broken there meanwhile.
pub(crate) struct Machines {
    pub(crate) random: Random,
    /// Physical functions, by the names of their hosts.
    pub(crate) hosts: BTreeMap<HostName, NodeIndex>,
    pub(crate) switches: Vec<NodeIndex>,
    /// One end of each cable between agents.
    cables: Vec<PortRef>,
    /// The hosts of subnet managers, where there are several. They stay together, since two pieces give the same LIDs.
    pub(crate) together: BTreeSet<NodeIndex>,
    pub(crate) asked: BTreeMap<RequestId, Request>,
    dead: BTreeSet<Process<NodeIndex>>,
    pub(crate) cut: BTreeSet<PortRef>,
    /// Hosts whose agents have died at any time.
    pub(crate) killed: BTreeSet<HostName>,
    /// The step of a move at which the VM manager dies next, and how many of its events were seen.
    doom: Option<Step>,
    /// The same for the subnet manager that is in charge.
    sm_doom: Option<Step>,
    heard: usize,
    pub(super) log: Vec<String>,
    pub(crate) masters: Masters,
    /// The LIDs of machines, by their GUIDs and names, as they were seen first; and how many have ended that had one.
    pub(crate) lids: BTreeMap<(Guid, String), Lid>,
    pub(crate) ended: u64,
    /// The subnet manager's log, as far as it is replayed, and the switches that may have lost their tables.
    pub(crate) replay: Replay,
    pub(crate) restarted: BTreeSet<Guid>,
    pub(crate) counts: Counts,
}

/// The same in its fabric.
pub(crate) struct Schedule<'a> {
    pub(crate) simulation: &'a mut Simulation,
    pub(crate) machines: &'a mut Machines,
}

impl Deref for Schedule<'_> {
    type Target = Machines;

    fn deref(&self) -> &Machines {
        self.machines
    }
}

impl DerefMut for Schedule<'_> {
    fn deref_mut(&mut self) -> &mut Machines {
        self.machines
    }
}

impl Machines {
    pub(crate) fn new(seed: u64, trace: TraceMode) -> (Simulation, Self) {
        Self::with(seed, trace, |_, _| {})
    }

    /// One whose options are changed.
    pub(crate) fn with(
        seed: u64,
        trace: TraceMode,
        change: impl FnOnce(&mut SimOptions, &[NodeIndex]),
    ) -> (Simulation, Self) {
        let mut random = Random::of_purpose(seed, "schedule");
        let shapes: [(&[u32], &[u32]); 3] =
            [(&[2, 3], &[1, 2]), (&[3, 3], &[1, 3]), (&[2, 2, 2], &[1, 2, 2])];
        let (children, parents) = shapes[random.below(3) as usize];
        let whole = xgft(children, parents, &GenerateOptions::default()).unwrap().virtualised(2).unwrap();
        let Virtualised { fabric, adapters } = whole;
        let inside: BTreeSet<NodeIndex> =
            adapters.iter().flat_map(|of| of.vfs.iter().copied().chain([of.pf])).collect();
        let cables = fabric
            .cables()
            .filter(|cable| !inside.contains(&cable.a.node) && !inside.contains(&cable.b.node));
        let cables = cables.map(|cable| cable.a).collect();
        let vswitches: BTreeSet<NodeIndex> = adapters.iter().map(|of| of.vswitch).collect();
        let switches =
            fabric.switches().map(|(node, _)| node).filter(|node| !vswitches.contains(node)).collect();
        let pfs: Vec<NodeIndex> = adapters.iter().map(|of| of.pf).collect();
        let mut options = options(&mut random, trace);
        options.adapters = adapters;
        change(&mut options, &pfs);
        let replay = Replay::new(options.sm.routing.chain.clone());
        let simulation = Simulation::new(&fabric, options, seed);
        let hosts = pfs.into_iter().map(|pf| (simulation.host_name(pf).unwrap(), pf)).collect();
        let machines = Self {
            random,
            hosts,
            switches,
            cables,
            together: BTreeSet::new(),
            asked: BTreeMap::new(),
            dead: BTreeSet::new(),
            cut: BTreeSet::new(),
            killed: BTreeSet::new(),
            doom: None,
            sm_doom: None,
            heard: 0,
            log: Vec::new(),
            masters: Masters::default(),
            lids: BTreeMap::new(),
            ended: 0,
            replay,
            restarted: BTreeSet::new(),
            counts: counts(),
        };
        (simulation, machines)
    }

    /// In their fabric.
    pub(crate) fn on<'a>(&'a mut self, simulation: &'a mut Simulation) -> Schedule<'a> {
        Schedule { simulation, machines: self }
    }

    /// Goes on with the subnet manager's log.
    pub(crate) fn go_on(&mut self, log: Vec<Past>) -> Result<(), String> {
        self.replay.go_on(log, &self.restarted)
    }
}

impl Workload for Machines {
    fn set_up(&mut self, simulation: &mut Simulation) -> Result<(), String> {
        simulation.run_until_quiet(START).map(drop).map_err(|error| format!("bring-up: {error}"))
    }

    fn start(&mut self, simulation: &mut Simulation) -> Result<(), String> {
        self.on(simulation).play()
    }

    fn check(&mut self, simulation: &mut Simulation, counts: &mut Counts) -> Result<(), String> {
        let mut schedule = self.on(simulation);
        schedule.rest()?;
        schedule.moves_alone()?;
        schedule.rebalances_alone()?;
        counts.sum(self.counts.clone());
        Ok(())
    }
}

impl Schedule<'_> {
    /// Everything goes wrong that does.
    pub(crate) fn play(&mut self) -> Result<(), String> {
        let until = self.simulation.now() + Time::from_secs(60);
        let loss = RandomLoss {
            until,
            lost_per_mille: self.random.below(30),
            late_per_mille: self.random.below(30),
            delay_max: Time::from_millis(u64::from(self.random.below(400))),
        };
        self.simulation.set_rule(loss);
        for _ in 0..STEPS {
            self.step()?;
        }
        self.end_faults();
        Ok(())
    }

    /// Does something, and looks at the slots for a while.
    fn step(&mut self) -> Result<(), String> {
        if self.simulation.options().sm.vm_lids.rebalance_below > 0 && self.random.below(8) == 0 {
            return self.rebalances();
        }
        let is_calm = self.dead.len() + self.cut.len() < FAULTS_MAX;
        match self.random.below(20) {
            0..3 => self.create(),
            3..10 => {
                self.migrate();
                // Where others take over, the manager dies in every third move.
                if is_calm && !self.together.is_empty() && self.random.below(3) == 0 {
                    self.sm_doom = self.pick(&KILLED_AT);
                }
            }
            10 => self.end_a_machine(),
            11..14 if is_calm => self.break_something(),
            14 if is_calm => {
                self.doom = self.pick(&KILLED_AT);
                self.say(&format!("the VM manager dies at {:?}", self.doom));
            }
            15 if is_calm => {
                self.sm_doom = self.pick(&KILLED_AT);
                self.say(&format!("the subnet manager dies at {:?}", self.sm_doom));
            }
            _ => self.mend_something(),
        }
        let time = Time::from_millis(u64::from(self.random.below(STEP_MILLIS)));
        self.look_until(self.simulation.now() + time)
    }

    /// Lets time pass, and looks at the slots again and again.
    pub(crate) fn look_until(&mut self, until: Time) -> Result<(), String> {
        while self.simulation.now() < until {
            self.look_at((self.simulation.now() + LOOK).min(until))?;
        }
        Ok(())
    }

    /// Lets time pass, and looks at the slots once.
    fn look_at(&mut self, until: Time) -> Result<(), String> {
        self.simulation.run_until(until);
        self.see_steps();
        self.counts.one("looks");
        self.machines.masters.see(self.simulation);
        self.nothing_is_twice()?;
        self.lids_stay()
    }

    pub(crate) fn say(&mut self, what: &str) {
        let line = format!("{} {what}", self.simulation.now());
        self.log.push(line);
    }

    pub(crate) fn pick<T: Clone>(&mut self, all: &[T]) -> Option<T> {
        let count = u32::try_from(all.len()).unwrap();
        (count > 0).then(|| all[self.random.below(count) as usize].clone())
    }

    pub(crate) fn host(&mut self) -> HostName {
        self.pick(&self.hosts.keys().cloned().collect::<Vec<_>>()).unwrap()
    }

    pub(crate) fn vm(&mut self) -> VmName {
        format!("vm-{}", self.random.below(VMS)).parse().unwrap()
    }

    fn ask(&mut self, request: Request) {
        self.say(&format!("{request:?}"));
        if let Some(id) = self.simulation.ask_vmm(request.clone()) {
            self.asked.insert(id, request);
        }
    }

    fn create(&mut self) {
        let (vm, host) = (self.vm(), self.host());
        self.ask(Request::Create(Create::new(vm, Some(host))));
    }

    fn span(&mut self, millis: u32) -> Time {
        Time::from_millis(u64::from(self.random.below(millis)))
    }

    /// How the subnet manager is to choose the switches that it writes, and their order: half of the time as is usual.
    pub(crate) fn route(&mut self) -> Route {
        if self.random.below(2) == 0 {
            return Route::default();
        }
        Route { method: self.pick(&METHODS).unwrap(), order: self.pick(&ORDERS).unwrap(), ..Route::default() }
    }

    fn migrate(&mut self) {
        let (vm, host) = (self.vm(), self.host());
        let hypervisor =
            Hypervisor { pre_copy: self.span(200), stop_copy: self.span(100), resume: self.span(50) };
        let detach = if self.random.below(2) == 0 { Detach::Late } else { Detach::Early };
        let cold = self.random.below(4) == 0;
        let route = self.route();
        self.ask(Request::Migrate(Migrate { vm, host, cold, detach, hypervisor, route }));
    }

    fn end_a_machine(&mut self) {
        let vm = self.vm();
        let request = match self.random.below(3) {
            0 => Request::Forget { vm, force: true },
            _ => Request::Destroy(vm),
        };
        self.ask(request);
    }

    fn apply(&mut self, fault: Fault) {
        self.say(&format!("{fault:?}"));
        self.simulation.apply(fault);
    }

    fn break_something(&mut self) {
        match self.random.below(9) {
            0..2 => {
                let host = self.host();
                if !self.together.contains(&self.hosts[&host]) {
                    self.kill(Process::Agent(self.hosts[&host]));
                    self.killed.insert(host);
                }
            }
            2 if self.together.is_empty() => {
                let switch = self.pick(&self.switches.clone()).unwrap();
                self.kill(Process::Agent(switch));
            }
            2..5 => self.kill(self.simulation.master().unwrap_or(Process::Sm)),
            5 => self.kill(Process::Vmm),
            _ => {
                let cable = self.pick(&self.cables.clone()).unwrap();
                if self.together.is_empty() || self.leaves_all_together(cable) {
                    self.apply(Fault::LinkDown(cable));
                    self.cut.insert(cable);
                    self.counts.one("cables cut");
                }
            }
        }
    }

    fn kill(&mut self, process: Process<NodeIndex>) {
        match process {
            Process::Agent(node) => {
                let is_physical = self.switches.contains(&node);
                self.counts.one(if is_physical { "switches killed" } else { "agents killed" });
                let adapters = &self.simulation.options().adapters;
                let switch = adapters.iter().find(|of| of.pf == node).map_or(node, |of| of.vswitch);
                let guid = self.simulation.fabric().node(switch).guid;
                self.restarted.insert(guid);
            }
            Process::Sm | Process::Standby(_) => self.counts.one("subnet managers killed"),
            _ => self.counts.one("VM managers killed"),
        }
        self.apply(Fault::Kill(process));
        self.dead.insert(process);
    }

    fn mend_something(&mut self) {
        let dead = self.dead.iter().map(|process| Fault::Restart(*process));
        let all: Vec<Fault> = dead.chain(self.cut.iter().map(|cable| Fault::LinkUp(*cable))).collect();
        if let Some(fault) = self.pick(&all) {
            self.mend(&fault);
        }
    }

    fn mend(&mut self, fault: &Fault) {
        self.apply(fault.clone());
        match fault {
            Fault::Restart(process) => drop(self.dead.remove(process)),
            Fault::LinkUp(cable) => drop(self.cut.remove(cable)),
            _ => {}
        }
    }

    /// Everything runs and is plugged in again, and no packet is lost any more.
    fn end_faults(&mut self) {
        (self.doom, self.sm_doom) = (None, None);
        self.simulation.set_disk(DiskOptions::default());
        let dead = self.dead.clone().into_iter().map(Fault::Restart);
        let cut = self.cut.clone().into_iter().map(Fault::LinkUp);
        dead.chain(cut).for_each(|fault| self.mend(&fault));
        let lost = self.simulation.statistics().lost;
        self.counts.set("packets lost", lost);
        let none =
            RandomLoss { until: Time::ZERO, lost_per_mille: 0, late_per_mille: 0, delay_max: Time::ZERO };
        self.simulation.set_rule(none);
    }
}
