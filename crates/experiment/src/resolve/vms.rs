//! Virtual machines: their adapters, their functions, and where they go.

use std::collections::{BTreeMap, BTreeSet};

use weft_host::stack::Guids;
use weft_topology::{Fabric, NodeIndex, PortRef, Virtualised};
use weft_vm::{Detach, HostName, HostPart, Migrate, all_guids, seat_beside};
use weft_wire::{Guid, PortNum};

use super::names::Names;
use crate::file::{At, Choice, Role, Wrong};
use crate::{Action, Experiment, Step, VmPlan, VmsPlan};

/// The first GUID for machines whose functions have none of their own: a local one (EUI-64).
const FIRST_GUID: u64 = 0x0276_0000_0000_0001;

/// The cabling with virtualised adapters, where the file has virtual machines.
pub(super) fn virtualised(fabric: Fabric, choice: &Choice) -> Result<Virtualised, Wrong> {
    let Some(spec) = &choice.experiment.vms else {
        return Ok(Virtualised { fabric, adapters: Vec::new() });
    };
    let wrong = |message: String| Wrong::new(At::default(), format!("[vms]: {message}"));
    let whole = fabric.virtualised(spec.vfs).map_err(|error| wrong(error.to_string()))?;
    match whole.hca_of_several() {
        None => Ok(whole),
        Some(hca) => {
            let label = whole.fabric.label(hca);
            Err(wrong(format!("`{label}` has several cabled ports, and a host of an experiment has one")))
        }
    }
}

/// The machines of a file on their first functions. Its migrations are checked as if each ended at once.
pub(super) fn machines(names: &Names<'_>, experiment: &Experiment) -> Result<Option<VmsPlan>, Wrong> {
    let Some(spec) = &experiment.vms else { return Ok(None) };
    let adapters = names.adapters.to_vec();
    let taken: BTreeSet<Guid> = all_guids(names.fabric).into_iter().collect();
    let mut free_guids = (FIRST_GUID..).map(Guid).filter(|guid| !taken.contains(guid));
    let mut used: BTreeMap<NodeIndex, usize> = BTreeMap::new();
    let mut vms = Vec::new();
    for vm in &spec.vms {
        let host = names.host(&vm.host)?;
        let wrong = |message: String| names.choice.wrong(Role::Vm, &vm.name, message);
        let adapter = adapters.iter().find(|adapter| adapter.pf == host);
        let adapter =
            adapter.ok_or_else(|| wrong(format!("the host `{}` has no virtual functions", vm.host)))?;
        let place = used.entry(host).or_default();
        let Some(born) = adapter.vfs.get(*place).copied() else {
            let message = format!(
                "`{}` has {} virtual functions, and `{}` is one too many",
                vm.host, spec.vfs, vm.name
            );
            return Err(wrong(message).allowed("write more `vfs` in [vms], or another `host`"));
        };
        *place += 1;
        let own = names.fabric.port(PortRef::new(born, PortNum(1))).map_or(Guid(0), |port| port.guid);
        let is_own = !spec.is_dynamic || spec.guids == Guids::Dynamic;
        let given = if is_own { None } else { free_guids.next() };
        vms.push(VmPlan {
            name: vm.name.parse().map_err(|error: weft_vm::BadName| wrong(error.to_string()))?,
            host: host_name(names, host).ok_or_else(|| wrong("its host cannot have a name".to_owned()))?,
            vf: u8::try_from(*place).unwrap_or(u8::MAX),
            born,
            port_guid: given.unwrap_or(own),
            given,
        });
    }
    Ok(Some(VmsPlan {
        adapters,
        is_dynamic: spec.is_dynamic,
        vms,
        vmm_at: PortRef::new(NodeIndex(0), PortNum(1)),
    }))
}

/// The VM manager's place.
pub(super) fn vmm_place(names: &Names<'_>, sm_at: PortRef) -> PortRef {
    let own = seat_beside(names.adapters, Some(sm_at.node));
    own.map_or(sm_at, |pf| names.port_of(pf))
}

fn host_name(names: &Names<'_>, host: NodeIndex) -> Option<HostName> {
    let adapter = names.adapters.iter().find(|adapter| adapter.pf == host)?;
    HostPart::of(names.fabric, adapter, "").map(|part| part.name)
}

/// The hosts that machines are on, first or later.
pub(super) fn hosts(names: &Names<'_>, experiment: &Experiment) -> Result<Vec<NodeIndex>, Wrong> {
    let firsts = experiment.vms.iter().flat_map(|spec| &spec.vms).map(|vm| &vm.host);
    let others = experiment.vms.iter().flat_map(|spec| &spec.migrations).map(|one| &one.to);
    firsts.chain(others).map(|name| names.host(name)).collect()
}

/// The migrations as steps.
pub(super) fn migrations(names: &Names<'_>, experiment: &Experiment) -> Result<Vec<Step>, Wrong> {
    let Some(spec) = &experiment.vms else { return Ok(Vec::new()) };
    let mut at: BTreeMap<&str, NodeIndex> = BTreeMap::new();
    for vm in &spec.vms {
        at.insert(&vm.name, names.host(&vm.host)?);
    }
    let mut steps = Vec::new();
    for one in &spec.migrations {
        let to = names.host(&one.to)?;
        let wrong = |message: String| names.choice.wrong(Role::Migration, &one.name(), message);
        let seconds = one.at.as_secs_f64();
        let name = host_name(names, to)
            .ok_or_else(|| wrong(format!("the host `{}` has no virtual functions", one.to)))?;
        if at.get(one.vm.as_str()) == Some(&to) {
            let message = format!("`{}` is on `{}` already at {seconds} s", one.vm, one.to);
            return Err(wrong(message).allowed("name another host in `to`"));
        }
        if at.values().filter(|host| **host == to).count() >= usize::from(spec.vfs) {
            let message =
                format!("all {} virtual functions of `{}` are in use at {seconds} s", spec.vfs, one.to);
            return Err(wrong(message).allowed("write more `vfs` in [vms], or another host in `to`"));
        }
        at.insert(&one.vm, to);
        let hypervisor = spec.vms.iter().find(|vm| vm.name == one.vm).map(|vm| vm.hypervisor);
        let migrate = Migrate {
            vm: one.vm.parse().map_err(|error: weft_vm::BadName| wrong(error.to_string()))?,
            host: name,
            cold: one.cold,
            detach: if one.late_detach { Detach::Late } else { Detach::Early },
            hypervisor: hypervisor.unwrap_or_default(),
            route: spec.route,
        };
        steps.push(Step { at: one.at, action: Action::Migrate(Box::new(migrate)) });
    }
    Ok(steps)
}

/// What the flows of machines with a rate may offer: an equal part each.
pub(super) fn share(experiment: &Experiment, from: &str) -> Option<f64> {
    let name = from.strip_prefix(crate::file::VM_PREFIX)?;
    let vm = experiment.vms.as_ref()?.vms.iter().find(|vm| vm.name == name)?;
    let flows = experiment.flows.iter().filter(|flow| flow.from == from).count();
    Some(vm.rate_gbps? / flows.max(1) as f64)
}
