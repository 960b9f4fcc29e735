//! Managers as their operator and their clients see them.

use weft_machine::{Machine, Time};
use weft_pm::PerformanceManager;
use weft_routing::{EngineReport, Partitions};
use weft_sm::{Event, GuidToLid, Past, SubnetManager, Summary};
use weft_topology::{NodeIndex, PortRef};
use weft_vm::{HostName, Reply, Request, RequestId, VmError, VmManager};

use super::Simulation;
use crate::managers::{PM_EVENTS_MAX, REPATHS_MAX, SUMMARIES_MAX, SmProcess, VMM_KEPT_MAX, process};
use crate::observers::PARTITION_EVENTS_MAX;
use crate::programs::{PM, SM};
use crate::{DiskCounts, DiskOptions, Kept, Process};

impl Simulation {
    /// The subnet manager that is in charge, or the first one, if its process runs.
    pub fn sm(&self) -> Option<&SubnetManager> {
        self.foremost_process().machine.as_ref()
    }

    /// Takes the subnet manager out of its process, as it is; the fabric ends here.
    pub fn into_sm(mut self) -> Option<SubnetManager> {
        let program = self.foremost();
        self.managers.sm_mut(program).machine.take()
    }

    /// The port that the subnet manager is attached to.
    pub fn sm_port(&self) -> PortRef {
        self.programs.port(self.foremost())
    }

    /// Every subnet manager whose process runs and is not frozen, with its port.
    pub fn managers(&self) -> impl Iterator<Item = (PortRef, &SubnetManager)> {
        let awake = self.managers.sms(&self.world).filter(|program| !self.programs.is_frozen(*program));
        awake.filter_map(|program| {
            Some((self.programs.port(program), self.managers.sm(program).machine.as_ref()?))
        })
    }

    /// What the subnet manager wrote into its `guid2lid` file last.
    pub fn guid2lid(&self) -> &GuidToLid {
        &self.foremost_process().persisted
    }

    /// What the subnet manager said of its heavy sweeps, and when.
    pub fn summaries(&self) -> &Kept<(Time, Summary), SUMMARIES_MAX> {
        &self.foremost_process().summaries
    }

    /// The subnet manager's repath notices to hosts ([`Event::Repath`]), with their times.
    pub fn repaths(&self) -> &Kept<(Time, Event), REPATHS_MAX> {
        &self.foremost_process().repaths
    }

    /// What the subnet manager said of its last routing.
    pub fn routing(&self) -> Option<&EngineReport> {
        self.foremost_process().routing.as_ref()
    }

    /// Why the subnet manager could not route the subnet in its last sweep.
    pub fn not_routed(&self) -> Option<&str> {
        self.foremost_process().not_routed.as_deref()
    }

    /// What the first subnet manager's tables were computed from since this was asked last, where [`SimOptions::history`] wants that. The
    /// logs of processes that have ended are in it, one after the other.
    ///
    /// [`SimOptions::history`]: crate::SimOptions::history
    pub fn take_history(&mut self) -> Vec<Past> {
        self.managers.sm_mut(SM).take_history()
    }

    /// A fabric whose subnet manager finds this `guid2lid` file when it begins.
    pub fn set_guid2lid(&mut self, known: GuidToLid) {
        self.managers.sm_mut(SM).persisted = known;
    }

    /// The operator wants a heavy sweep of the subnet manager that is in charge, which then computes all rows as at a fresh start.
    pub fn order_sweep(&mut self) {
        let program = self.foremost();
        if self.programs.is_frozen(program) {
            return;
        }
        if let Some(machine) = &mut self.managers.sm_mut(program).machine {
            machine.handle_input(self.world.clock.now(), weft_sm::Input::Resweep { heavy: true });
            self.world.clock.disturb();
            self.managers.drain_sm(program, &mut self.programs, &mut self.world);
        }
    }

    /// The operator has changed the partitions file: all subnet managers that run read it, and others when they begin.
    pub fn set_partitions(&mut self, partitions: &Partitions) {
        self.world.options.sm.routing.engine.partitions = Some(partitions.clone());
        self.world.clock.disturb();
        let programs: Vec<u32> = self.managers.sms(&self.world).collect();
        for program in programs {
            if self.programs.is_frozen(program) {
                continue;
            }
            if let Some(machine) = &mut self.managers.sm_mut(program).machine {
                let input = weft_sm::Input::Partitions(partitions.clone());
                machine.handle_input(self.world.clock.now(), input);
                self.managers.drain_sm(program, &mut self.programs, &mut self.world);
            }
        }
    }

    /// What subnet managers said of partitions: what a change has come to, and which ports are not as the file says. When, which
    /// manager, and the event.
    pub fn partition_events(&self) -> &Kept<(Time, Process<NodeIndex>, Event), PARTITION_EVENTS_MAX> {
        &self.world.observers.partitions
    }

    /// The process of the subnet manager that is in charge, if one is.
    pub fn master(&self) -> Option<Process<NodeIndex>> {
        let program = self.foremost();
        let is_in_charge = self.foremost_process().is_in_charge() && !self.programs.is_frozen(program);
        is_in_charge.then(|| process(program))
    }

    fn foremost(&self) -> u32 {
        self.managers.foremost(&self.programs, &self.world)
    }

    fn foremost_process(&self) -> &SmProcess {
        self.managers.sm(self.foremost())
    }

    /// The performance manager, if its process runs.
    pub fn pm(&self) -> Option<&PerformanceManager> {
        self.managers.performance.machine.as_ref()
    }

    /// The port that the performance manager is attached to.
    pub fn pm_port(&self) -> PortRef {
        self.programs.port(PM)
    }

    /// What the performance manager said, and when.
    pub fn pm_events(&self) -> &Kept<(Time, weft_pm::Event), PM_EVENTS_MAX> {
        &self.managers.performance.events
    }

    /// The VM manager, if its process runs.
    pub fn vmm(&self) -> Option<&VmManager> {
        self.managers.vm.manager()
    }

    /// What the VM manager said, and when.
    pub fn vmm_events(&self) -> &Kept<(Time, weft_vm::Event), VMM_KEPT_MAX> {
        &self.managers.vm.events
    }

    /// Asks the VM manager for something, now. The request's number, by which [`Simulation::vmm_reply`] finds the answer; `None`
    /// when its process does not run.
    pub fn ask_vmm(&mut self, request: Request) -> Option<RequestId> {
        self.managers.vm.ask(request, &mut self.programs, &mut self.world)
    }

    /// The VM manager's answer to a request, and when it came. A process that ends takes the requests with it that it has not
    /// answered.
    pub fn vmm_reply(&self, id: RequestId) -> Option<(Time, &Result<Reply, VmError>)> {
        self.managers.vm.reply(id)
    }

    /// Lets everything happen until the VM manager answers somebody, or until `limit`. Whether it has answered.
    pub fn run_until_vmm_replies(&mut self, limit: Time) -> bool {
        let before = self.managers.vm.replies.count();
        while self.managers.vm.replies.count() == before {
            if !self.step(limit) {
                self.world.clock.advance(limit);
                return false;
            }
        }
        true
    }

    /// What goes wrong from now on with the disk of the VM manager's journal.
    pub fn set_disk(&mut self, options: DiskOptions) {
        self.managers.vm.disk.options = options;
    }

    /// What became of writes to the VM manager's journal that were not synced.
    pub fn disk_counts(&self) -> DiskCounts {
        self.managers.vm.disk.counts
    }

    /// The name of a host as the VM manager has it, by its physical function.
    pub fn host_name(&self, pf: NodeIndex) -> Option<HostName> {
        let host = self.world.options.adapters.iter().position(|adapter| adapter.pf == pf)?;
        self.managers.vm.host(host).map(|part| part.name.clone())
    }
}
