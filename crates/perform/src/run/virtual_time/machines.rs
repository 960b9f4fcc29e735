//! Virtual machines of a run in virtual time: their start, their commands wherever they are, and their migrations.

use weft_bundle::failure::Failure;
use weft_experiment::{MigrationOutcome, Plan, VmsPlan};
use weft_host::traffic::{Command, FlowReport};
use weft_machine::Time;
use weft_sim::{SimOptions, Simulation, SlotState};
use weft_topology::{NodeIndex, PortRef};
use weft_vm::{Migrate, Reply, Request, RequestId, VmName};
use weft_wire::PortState;

use crate::run::migrations::{Migrations, Received, migrated};

/// How long a machine may take to start.
const LIMIT: Time = Time::from_secs(300);

/// The virtual machines of a simulated fabric.
#[derive(Default)]
pub(super) struct Machines {
    pub(super) migrations: Migrations<RequestId>,
    /// Commands for machines that are on their way.
    waiting: Vec<(VmName, Command)>,
}

/// A fabric with slots and a VM manager, where the plan has machines.
pub(super) fn with_slots(plan: &Plan, options: SimOptions) -> SimOptions {
    let Some(vms) = &plan.vms else { return options };
    let (adapters, vmm_port) = (vms.adapters.clone(), Some(vms.vmm_at));
    SimOptions { adapters, recabling: true, empty_slots: vms.is_dynamic, with_vmm: true, vmm_port, ..options }
}

impl Machines {
    /// Starts all machines of the plan.
    pub(super) fn create(plan: &Plan, simulation: &mut Simulation) -> anyhow::Result<()> {
        let failed = |name: &VmName, why: &str| Failure::new(format!("`{name}` does not start: {why}"));
        for vm in plan.machines() {
            let id = simulation.ask_vmm(Request::Create(vm.create()));
            let id = id.ok_or_else(|| failed(&vm.name, "there is no VM manager"))?;
            let limit = simulation.now() + LIMIT;
            while simulation.vmm_reply(id).is_none() && simulation.run_until_vmm_replies(limit) {}
            match simulation.vmm_reply(id).map(|(_, reply)| reply) {
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(failed(&vm.name, &error.to_string()).into()),
                None => return Err(failed(&vm.name, "the VM manager does not answer").into()),
            }
        }
        let limit = simulation.now() + LIMIT;
        let settled = simulation.run_until_quiet(limit);
        settled.map_err(|error| Failure::new(format!("the machines' fabric does not come up: {error}")))?;
        Ok(())
    }

    /// Tells a machine something, when it runs.
    pub(super) fn tell(&mut self, simulation: &mut Simulation, vm: &VmName, command: Command) {
        self.waiting.push((vm.clone(), command));
        self.deliver(simulation);
    }

    /// Gives machines that run what waits for them.
    pub(super) fn deliver(&mut self, simulation: &mut Simulation) {
        for (vm, command) in std::mem::take(&mut self.waiting) {
            let runs = |simulation: &Simulation| {
                simulation.find_vm(&vm.to_string()).is_some_and(|(_, slot)| slot.state == SlotState::Running)
            };
            match simulation.vm_port(&vm.to_string()).filter(|_| runs(simulation)) {
                Some(port) => drop(simulation.command(port, command)),
                None => self.waiting.push((vm, command)),
            }
        }
    }

    /// Asks the VM manager to move a machine.
    pub(super) fn migrate(&mut self, simulation: &mut Simulation, plan: &Plan, migrate: &Migrate, at: Time) {
        let before = received(plan, simulation);
        // Without a VM manager there is never an answer.
        let id = simulation.ask_vmm(Request::Migrate(migrate.clone())).unwrap_or(RequestId(u64::MAX));
        self.migrations.begin(id, migrate, at, before);
    }

    /// Takes the answers that there are; the moments of those that came, and their marks.
    pub(super) fn hear(
        &mut self,
        simulation: &mut Simulation,
        plan: &Plan,
        vms: &VmsPlan,
        began: Time,
    ) -> Vec<weft_experiment::Mark> {
        let now = received(plan, simulation);
        let mut marks = Vec::new();
        for id in self.migrations.open() {
            let Some((at, reply)) = simulation.vmm_reply(id) else { continue };
            let outcome = match reply {
                Ok(Reply::Migrated(migration)) => MigrationOutcome::Done(Box::new(migrated(migration))),
                Ok(_) => MigrationOutcome::Refused("the VM manager answers something else".to_owned()),
                Err(error) => MigrationOutcome::Refused(error.to_string()),
            };
            marks.extend(self.migrations.end(id, at.saturating_sub(began), outcome, &now, vms));
        }
        self.deliver(simulation);
        marks
    }

    /// Counts what functions have received for the last migration, once the port of its machine is active.
    pub(super) fn look(&mut self, simulation: &Simulation, plan: &Plan) {
        let Some((id, vm)) = self.migrations.set_up_next() else { return };
        let state = |port: PortRef| {
            Some(simulation.device(port.node)?.port_snapshot_at(port.port, simulation.now())?.state)
        };
        if simulation.vm_port(vm).and_then(state) == Some(PortState::Active) {
            self.migrations.is_set_up(id, &received(plan, simulation));
        }
    }

    /// What the flows of every machine say, by the function that it started in.
    pub(super) fn reports(plan: &Plan, simulation: &Simulation) -> Vec<(NodeIndex, Vec<FlowReport>)> {
        let of = |vm: &weft_experiment::VmPlan| {
            let port = simulation.vm_port(&vm.name.to_string())?;
            Some((vm.born, simulation.stack(port)?.reports()))
        };
        plan.machines().iter().filter_map(of).collect()
    }
}

/// What devices have received so far.
fn received(plan: &Plan, simulation: &Simulation) -> Received {
    let writes = |node: NodeIndex| simulation.device(node).map_or(0, |device| device.statistics().lft_writes);
    let functions = plan.vms.iter().flat_map(|vms| &vms.adapters);
    let functions = functions.flat_map(|adapter| adapter.vfs.iter().chain([&adapter.pf]));
    Received {
        lft_writes: plan.fabric.switches().map(|(node, _)| (node, writes(node))).collect(),
        function_sets: functions.map(|node| simulation.smp_sets(*node)).sum(),
    }
}
