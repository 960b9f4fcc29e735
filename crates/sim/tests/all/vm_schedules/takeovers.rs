//! The same with more subnet managers: those in charge die within moves and beside them, and others take over that may never have seen a
//! machine. Whatever dies, a machine keeps its LID.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use weft_machine::Time;
use weft_sim::{SimOptions, Simulation, StandbyOptions, TraceMode};
use weft_topology::{NodeIndex, PortRef};
use weft_wire::PortNum;

use super::schedule::{Machines, Schedule};
use super::seeds::{self, run_part};
use crate::support::counts::Counts;
use crate::support::workload::{Workload, carry_out};

const SCHEDULES: u64 = 40;
const TWICE: u64 = 1;

/// How many seeds a part has at least for everything to happen in one of them.
const ALL_KINDS: u64 = 50;

/// How often the managers poll, and how many polls may go unanswered: one takes over within 300 ms.
const POLLING_MS: u64 = 100;
const POLLING_RETRIES: u32 = 1;

fn several(seed: u64, options: &mut SimOptions, pfs: &[NodeIndex]) {
    let mut random = Pcg64::seed_from_u64(seed ^ 0x5a1e);
    // Of several managers none has a whole log.
    options.history = false;
    options.sm.vm_lids.rebalance_below = 0;
    (options.sm.election.polling_ms, options.sm.election.polling_retries) = (POLLING_MS, POLLING_RETRIES);
    options.sm.election.priority = random.random_range(0..3);
    let count = random.random_range(1..3usize);
    for pf in pfs.iter().rev().take(count) {
        let (port, priority) = (PortRef::new(*pf, PortNum(1)), random.random_range(0..3));
        options.standbys.push(StandbyOptions { port, priority, sm_key: None });
    }
}

fn run(seed: u64, trace: TraceMode) -> Result<(Counts, u64), String> {
    let (mut simulation, machines) = Machines::with(seed, trace, |options, pfs| several(seed, options, pfs));
    let mut several = Several(machines);
    let standbys = simulation.options().standbys.iter().map(|standby| standby.port.node);
    several.0.together = standbys.chain([simulation.sm_port().node]).collect();
    match carry_out(&mut simulation, &mut [&mut several]) {
        Ok(counts) => Ok((counts, simulation.trace().hash())),
        Err(wrong) => Err(several.0.on(&mut simulation).report(seed, &wrong)),
    }
}

/// Machines where several subnet managers are. None of those has a whole log.
struct Several(Machines);

impl Workload for Several {
    fn set_up(&mut self, simulation: &mut Simulation) -> Result<(), String> {
        self.0.set_up(simulation)
    }

    fn start(&mut self, simulation: &mut Simulation) -> Result<(), String> {
        self.0.start(simulation)
    }

    fn check(&mut self, simulation: &mut Simulation, counts: &mut Counts) -> Result<(), String> {
        self.0.on(simulation).rests()?;
        let Machines { counts: all, masters, ended, lids, .. } = &self.0;
        for name in ["moved", "undone", "subnet managers killed", "killed within", "VM managers killed"] {
            counts.add(name, all.get(name));
        }
        // How often another one was in charge at the next look, at how many looks two were, and machines whose LIDs were seen.
        counts.add("takeovers", masters.takeovers);
        counts.add("two", masters.two);
        counts.add("machines", ended + lids.len() as u64);
        Ok(())
    }
}

impl Schedule<'_> {
    /// Whether all managers see each other without this cable: a leaf has two ways up at least.
    pub(crate) fn leaves_all_together(&self, cable: PortRef) -> bool {
        let fabric = self.simulation.fabric();
        let is_up = |end: &PortRef| {
            let nodes = [end.node, fabric.peer(*end).unwrap().node];
            nodes.iter().all(|node| self.switches.contains(node))
        };
        let ends = [cable, fabric.peer(cable).unwrap()];
        let is_managers = self
            .simulation
            .options()
            .adapters
            .iter()
            .any(|of| self.together.contains(&of.pf) && ends.iter().any(|end| end.node == of.vswitch));
        !(is_managers || is_up(&cable) && self.cut.iter().any(is_up))
    }

    /// Lets everything come to rest, and judges what there is.
    fn rests(&mut self) -> Result<(), String> {
        self.comes_to_rest()?;
        let masters = self.simulation.managers().filter(|(_, manager)| manager.is_in_charge()).count();
        if masters != 1 {
            return Err(format!("{masters} subnet managers are in charge"));
        }
        self.look_until(self.simulation.now() + Time::from_secs(4))
    }
}

fn part(part: u64) {
    let Some((counts, seeds)) = run_part(part, (SCHEDULES, TWICE), run, Counts::sum) else { return };
    if seeds >= ALL_KINDS {
        counts.all_happened();
    }
}

/// Managers that were in charge at the same time took a LID here, before they looked at a machine's port first.
#[test]
fn two_managers_at_the_same_time_take_no_lid() {
    for seed in [604, 654] {
        run(seed, TraceMode::Off).unwrap_or_else(|error| panic!("{error}"));
    }
}

seeds::four_parts!(part);
