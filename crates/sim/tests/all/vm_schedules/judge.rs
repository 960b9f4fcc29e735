//! Conditions that hold when every fault has ended.

use std::collections::{BTreeMap, BTreeSet};

use weft_machine::Time;
use weft_routing::ForwardingTable;
use weft_sim::{Fault, Process, Simulation, SlotState, SlotStatus};
use weft_sm::Past;
use weft_topology::NodeIndex;
use weft_vm::{Create, Detach, HostName, Hypervisor, Migrate, MoveCounts, Reply, Request, VPort, VmName};
use weft_wire::{Guid, Lid, PortNum};

use super::replay::entries;
use super::schedule::{Machines, Schedule};
use super::totals::count_move;

/// How long everything may take to come to rest.
const PATIENCE: Time = Time::from_secs(300);

/// Moves at rest whose writes are counted.
const COUNTED: u32 = 3;

/// Moves at rest where the subnet manager rebalances.
const UNEVEN: u32 = 10;

impl Schedule<'_> {
    /// No machine runs in two slots, and no GUID is plugged in twice.
    pub(crate) fn nothing_is_twice(&self) -> Result<(), String> {
        let (mut running, mut ports): (BTreeMap<String, NodeIndex>, BTreeMap<Guid, NodeIndex>) =
            Default::default();
        for (node, slot) in self.simulation.slots() {
            if let (SlotState::Running, Some(vm)) = (slot.state, slot.vm)
                && let Some(other) = running.insert(vm.clone(), node)
            {
                return Err(format!("`{vm}` runs in {node:?} and {other:?}"));
            }
            if slot.plugged
                && let Some(other) = ports.insert(slot.identity.port_guid, node)
            {
                return Err(format!("{} is plugged in at {node:?} and {other:?}", slot.identity.port_guid));
            }
        }
        Ok(())
    }

    /// A machine keeps its LID, whoever dies, and where two managers are in charge for a while. Where two of them give one LID to two ports
    /// that each sees alone, one port has to give way: such a LID is no one's yet.
    pub(crate) fn lids_stay(&mut self) -> Result<(), String> {
        let Self { simulation, machines } = self;
        let mut ports: BTreeMap<Lid, usize> = BTreeMap::new();
        for (node, found) in simulation.fabric().iter() {
            let number = if found.is_switch() { PortNum::ZERO } else { PortNum(1) };
            let port = simulation.device(node).and_then(|device| device.port_snapshot(number));
            port.into_iter().for_each(|port| *ports.entry(port.lid).or_default() += 1);
        }
        for (node, slot) in simulation.slots() {
            let Some(vm) = slot.vm.as_ref().filter(|_| slot.plugged) else { continue };
            let port = simulation.device(node).and_then(|device| device.port_snapshot(PortNum(1)));
            let Some(lid) = port.map(|port| port.lid).filter(|lid| lid.is_unicast()) else { continue };
            // A free slot's identity is another machine's next.
            let machine = (slot.identity.port_guid, vm.clone());
            let given = simulation.guid2lid().range(slot.identity.port_guid);
            if given.is_some_and(|given| given.min == lid) && ports.get(&lid) == Some(&1) {
                machines.lids.entry(machine.clone()).or_insert(lid);
            }
            let first = machines.lids.get(&machine).copied().unwrap_or(lid);
            if lid != first {
                return Err(format!("`{vm}` had LID {first} and has LID {lid} at {node:?}"));
            }
        }
        Ok(())
    }

    /// Lets everything come to rest, and judges what does not depend on the log.
    pub(crate) fn comes_to_rest(&mut self) -> Result<(), String> {
        self.quiet("the last fault")?;
        self.count();
        self.machines_are_right()?;
        self.answers_came()?;
        self.simulation.check().map(drop).map_err(all)
    }

    /// Lets everything come to rest, and judges what there is.
    pub(crate) fn rest(&mut self) -> Result<(), String> {
        self.comes_to_rest()?;
        self.rows_are_the_logs("the last fault")?;
        self.rows_are_a_fresh_starts()?;
        self.rows_are_the_logs("an ordered sweep")?;
        self.a_new_manager_writes_nothing()?;
        self.rows_are_the_logs("a new manager")
    }

    /// Every switch holds what the subnet manager's log says, replayed.
    fn rows_are_the_logs(&mut self, after: &str) -> Result<(), String> {
        let log = self.simulation.take_history();
        let failed = |error| format!("after {after}: {error}");
        is_the_same_in_a_file(&log).map_err(failed)?;
        self.go_on(log).map_err(failed)?;
        if !self.replay.is_whole() {
            return Err(failed("the log ends in the middle of something".to_owned()));
        }
        let tables = self.simulation.snapshot().tables;
        let rows = self.compared(&tables).map_err(failed)?;
        let Machines { replay, counts, .. } = &mut *self.machines;
        counts.add("rows", rows);
        counts.set("replayed", replay.moves + replay.repairs);
        counts.set("rebalanced", replay.rebalanced);
        counts.set("rebalances cut", replay.rebalances_cut);
        Ok(())
    }

    /// How many rows of tables are as the log has them that was replayed so far.
    pub(crate) fn compared(&self, tables: &BTreeMap<NodeIndex, ForwardingTable>) -> Result<u64, String> {
        let of = |(node, table): (&NodeIndex, &ForwardingTable)| {
            let guid = self.simulation.fabric().node(*node).guid;
            self.replay.compare(guid, |lid| table.port(lid), table.top())
        };
        tables.iter().map(of).sum()
    }

    /// Waits until nothing is under way.
    fn quiet(&mut self, after: &str) -> Result<(), String> {
        let limit = self.simulation.now() + PATIENCE;
        let failed = |error| format!("after {after}: {error}");
        self.simulation.run_until_quiet(limit).map_err(failed)?;
        self.look_until(self.simulation.now() + Time::from_millis(2))
    }

    fn ask_now(&mut self, request: Request) -> Result<Reply, String> {
        let id = self.simulation.ask_vmm(request).ok_or("no VM manager runs")?;
        let limit = self.simulation.now() + PATIENCE;
        while self.simulation.vmm_reply(id).is_none() && self.simulation.run_until_vmm_replies(limit) {}
        let (_, reply) = self.simulation.vmm_reply(id).ok_or("the VM manager does not answer")?;
        reply.clone().map_err(|error| error.to_string())
    }

    fn list(&mut self) -> Result<Vec<VPort>, String> {
        match self.ask_now(Request::List)? {
            Reply::List(list) => Ok(list),
            other => Err(format!("asked for a list: {other:?}")),
        }
    }

    /// Machines run where they are listed, once; those that are lost died with their hosts.
    fn machines_are_right(&mut self) -> Result<(), String> {
        let list = self.list()?;
        let mut used: BTreeMap<String, (NodeIndex, SlotStatus)> = BTreeMap::new();
        for (node, slot) in self.simulation.slots() {
            let Some(vm) = &slot.vm else { continue };
            if slot.state != SlotState::Running || used.contains_key(vm) {
                return Err(format!("at rest `{vm}` is not in one slot, and runs: {node:?} {slot:?}"));
            }
            used.insert(vm.clone(), (node, slot));
        }
        for port in &list {
            match (&port.vm_state[..], used.remove(&port.vm)) {
                ("running", Some((node, _))) => {
                    let lid =
                        self.simulation.device(node).and_then(|device| device.port_snapshot(PortNum(1)));
                    let is_there =
                        self.host_of(node).is_some_and(|host| host.to_string() == port.system_name);
                    if !is_there
                        || lid.is_none_or(|found| found.lid.0 != port.virtual_port_lid || found.lid.0 == 0)
                    {
                        return Err(format!("it is elsewhere, or has no LID of its own: {port:?}"));
                    }
                }
                ("lost", None) if self.killed.iter().any(|host| port.detail.contains(&host.to_string())) => {}
                (_, seen) => return Err(format!("at rest: {port:?}, {seen:?}, killed: {:?}", self.killed)),
            }
        }
        if let Some((vm, seen)) = used.into_iter().next() {
            return Err(format!("`{vm}` is not listed: {seen:?}"));
        }
        self.promises(&list.into_iter().map(|port| port.vm).collect())
    }

    /// A machine that its client knows to run is listed, unless someone asked to end it.
    fn promises(&self, known: &BTreeSet<String>) -> Result<(), String> {
        let unwanted: BTreeSet<&VmName> = self
            .asked
            .values()
            .filter_map(|request| match request {
                Request::Destroy(vm) | Request::Forget { vm, .. } => Some(vm),
                _ => None,
            })
            .collect();
        for id in self.asked.keys() {
            let Some((_, Ok(Reply::Created(made)))) = self.simulation.vmm_reply(*id) else { continue };
            let missing = made
                .iter()
                .map(|(name, _)| name)
                .find(|name| !unwanted.contains(name) && !known.contains(&name.to_string()));
            if let Some(vm) = missing {
                return Err(format!("`{vm}` was created, no one asked to end it, and it is not listed"));
            }
        }
        Ok(())
    }

    /// Every request to the VM manager that still runs has its answer.
    fn answers_came(&self) -> Result<(), String> {
        let deaths = self.counts.get("VM managers killed");
        let unanswered = self.asked.keys().filter(|id| self.simulation.vmm_reply(**id).is_none()).count();
        if deaths == 0 && unanswered > 0 {
            return Err(format!("{unanswered} requests have no answer"));
        }
        Ok(())
    }

    fn host_of(&self, function: NodeIndex) -> Option<HostName> {
        let adapter = self.simulation.options().adapters.iter().find(|of| of.vfs.contains(&function))?;
        self.simulation.host_name(adapter.pf)
    }

    /// After a sweep that computes all rows, LIDs are those of a fresh start, and so are rows of physical LIDs.
    fn rows_are_a_fresh_starts(&mut self) -> Result<(), String> {
        self.simulation.order_sweep();
        self.quiet("an ordered sweep")?;
        self.simulation.check().map_err(all)?;
        let now = self.simulation.snapshot();
        let fresh = self.simulation.fresh_snapshot(1, PATIENCE);
        let fresh = fresh.map_err(|error| format!("a fresh start: {error}"))?;
        if now.lids != fresh.lids {
            return Err(format!("LIDs are not a fresh start's:\n{:?}\n{:?}", now.lids, fresh.lids));
        }
        let functions: BTreeSet<NodeIndex> =
            self.simulation.options().adapters.iter().flat_map(|of| of.vfs.iter().copied()).collect();
        let physical = now.lids.iter().filter(|(port, _)| !functions.contains(&port.node));
        for (port, (lid, _)) in physical {
            let differs = now.tables.iter().find(|(node, table)| {
                fresh.tables.get(node).is_none_or(|fresh| fresh.port(*lid) != table.port(*lid))
            });
            if let Some((switch, _)) = differs {
                return Err(format!(
                    "the row of {lid}, which is {port:?}'s, is not a fresh start's at {switch:?}"
                ));
            }
        }
        Ok(())
    }

    fn a_new_manager_writes_nothing(&mut self) -> Result<(), String> {
        let writes = self.simulation.lft_writes();
        self.simulation.apply(Fault::Kill(Process::Sm));
        self.simulation.run_until(self.simulation.now() + Time::from_secs(1));
        self.simulation.apply(Fault::Restart(Process::Sm));
        self.quiet("a new manager")?;
        match self.simulation.lft_writes() - writes {
            0 => Ok(()),
            more => Err(format!("a new manager wrote {more} blocks")),
        }
    }

    /// Some machines move while nothing goes wrong: only the switches of each plan are written, as often as it says.
    pub(crate) fn moves_alone(&mut self) -> Result<(), String> {
        for _ in 0..COUNTED {
            let before = block_writes(self.simulation);
            // A host may be full, or the machine's own.
            let Some(counts) = self.move_one()? else {
                self.rows_are_the_logs("a move that was refused")?;
                continue;
            };
            self.replay.rebalance_writes.clear();
            self.rows_are_the_logs("a move")?;
            self.is_what_was_written(&before, &counts)?;
            self.links_are_balanced()?;
            self.counts.one("counted");
            count_move(&mut self.counts, &counts);
        }
        Ok(())
    }

    /// A machine is asked to move, and everything comes to rest. What that has cost, if it has moved.
    pub(crate) fn move_one(&mut self) -> Result<Option<MoveCounts>, String> {
        let counts = self.ask_to_move()?;
        if counts.is_some() {
            self.quiet("a move")?;
            self.simulation.check().map_err(all)?;
        }
        Ok(counts)
    }

    /// Machines move and links fill unevenly. The subnet manager dies in the middle of a rebalance, if it makes one and chance will
    /// have it; else links are balanced in the end.
    pub(crate) fn rebalances_alone(&mut self) -> Result<(), String> {
        if self.simulation.options().sm.vm_lids.rebalance_below == 0 {
            return Ok(());
        }
        for _ in 0..UNEVEN {
            let (vm, host) = (self.vm(), self.host());
            // It may run already, or the host be full.
            let _ = self.ask_now(Request::Create(Create::new(vm, Some(host))));
            if self.ask_to_move()?.is_none() {
                continue;
            }
            self.rebalances()?;
            let has_died = self.simulation.sm().is_none();
            if has_died {
                self.simulation.apply(Fault::Restart(Process::Sm));
            }
            self.quiet("a rebalance")?;
            self.simulation.check().map_err(all)?;
            self.rows_are_the_logs("a rebalance")?;
            if !has_died {
                self.links_are_balanced()?;
            }
        }
        // A move that was refused may have to be taken back yet.
        self.quiet("all moves")?;
        self.machines_are_right()
    }

    /// What a move has cost, if a machine could.
    fn ask_to_move(&mut self) -> Result<Option<MoveCounts>, String> {
        // One without a LID yet has no rows that could move.
        let has_rows = |port: &VPort| port.vm_state == "running" && port.virtual_port_lid != 0;
        let running: Vec<VPort> = self.list()?.into_iter().filter(has_rows).collect();
        let Some(port) = self.pick(&running) else { return Ok(None) };
        let (vm, host, route) = (port.vm.parse().unwrap(), self.host(), self.route());
        let (detach, hypervisor) = (Detach::Late, Hypervisor::default());
        let asked = Migrate { vm, host, cold: false, detach, hypervisor, route };
        let Ok(Reply::Migrated(moved)) = self.ask_now(Request::Migrate(asked)) else { return Ok(None) };
        moved.counts.ok_or_else(|| "the subnet manager does not count".to_owned()).map(Some)
    }

    /// Switches were written what the move says, and what plans of a rebalance do that has followed it.
    fn is_what_was_written(
        &self,
        before: &BTreeMap<NodeIndex, u64>,
        counts: &MoveCounts,
    ) -> Result<(), String> {
        let now = block_writes(self.simulation);
        let vswitches: BTreeSet<NodeIndex> =
            self.simulation.options().adapters.iter().map(|of| of.vswitch).collect();
        // A rebalance after the move has plans of its own.
        let fresh = |node: &NodeIndex| {
            let guid = self.simulation.fabric().node(*node).guid;
            self.replay.rebalance_writes.get(&guid).copied().unwrap_or(0)
        };
        let more = now.iter().map(|(node, writes)| match writes.checked_sub(before[node] + fresh(node)) {
            Some(writes) => Ok((node, writes)),
            None => Err(format!("{node:?} was written less than the plans of a rebalance say")),
        });
        let more = more.collect::<Result<Vec<_>, _>>()?.into_iter().filter(|(_, writes)| *writes > 0);
        let (inside, physical): (Vec<_>, Vec<_>) = more.partition(|(node, _)| vswitches.contains(node));
        let sum = |of: &[(&NodeIndex, u64)]| of.iter().map(|(_, writes)| writes).sum::<u64>();
        let found = (physical.len() as u64, sum(&physical), sum(&inside));
        let said = (counts.switches, counts.physical_smps, counts.vswitch_smps);
        if found == (said.0.into(), said.1.into(), said.2.into()) {
            return Ok(());
        }
        let fresh = &self.replay.rebalance_writes;
        Err(format!(
            "switches, SMPs to them and to vSwitches are {found:?}, not {said:?}: {counts:?}, {fresh:?}"
        ))
    }
}

/// What a process writes of a log is read back as it was.
fn is_the_same_in_a_file(log: &[Past]) -> Result<(), String> {
    let lines: Vec<String> = log.iter().map(|entry| serde_json::to_string(entry).unwrap()).collect();
    let read = entries(&lines.join("\n"))?;
    let differs = log.iter().zip(&read).find(|(entry, read)| entry != read);
    differs.map_or(Ok(()), |(entry, read)| Err(format!("{entry:?} is read as {read:?}")))
}

/// How many blocks each switch has been written.
fn block_writes(simulation: &Simulation) -> BTreeMap<NodeIndex, u64> {
    let of = |node: NodeIndex| simulation.device(node).map_or(0, |device| device.statistics().lft_writes);
    simulation.fabric().switches().map(|(node, _)| (node, of(node))).collect()
}

#[allow(clippy::needless_pass_by_value, reason = "as map_err gives it")]
fn all(violations: Vec<weft_sim::Violation>) -> String {
    violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n  ")
}
