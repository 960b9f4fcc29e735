//! `[vms]`, `[vm.NAME]` and `[[migrate]]`.

use std::collections::BTreeSet;

use weft_machine::Time;
use weft_vm::{Hypervisor, LatePolicy, Method, Route, UpdateOrder, VmName};

use super::error::{At, Wrong};
use super::reader::{Role, Table, texts};
use crate::{MigrateSpec, PmMode, PmSpec, VmSpec, VmsSpec};

/// The most migrations of one `[[migrate]]`.
const TIMES_MAX: i64 = 10_000;

/// How the ends of flows name virtual machines.
pub(crate) const VM_PREFIX: &str = "vm:";

/// The virtual machines of a file; none where it has no `[vms]`.
pub(super) fn vms(top: &mut Table<'_>, pm: &PmSpec, duration: Time) -> Result<Option<VmsSpec>, Wrong> {
    let is_there = top.get("vms").is_some();
    let mut table = top.table("vms")?;
    let at = table.at;
    let vfs = table.number("vfs", 1..=i64::from(weft_topology::VFS_MAX))?.unwrap_or(1);
    let is_dynamic = table.word("lids", &["prepopulated", "dynamic"])? == Some(1);
    let [methods, orders, policies] = [
        Method::ALL.iter().map(|method| method.name()).collect::<Vec<_>>(),
        UpdateOrder::ALL.iter().map(|order| order.name()).collect(),
        LatePolicy::ALL.iter().map(|policy| policy.name()).collect(),
    ];
    let method = table.word("method", &methods)?.map(|nth| Method::ALL[nth]);
    let order = table.word("update", &orders)?.map(|nth| UpdateOrder::ALL[nth]);
    let late = table.word("late", &policies)?.map(|nth| LatePolicy::ALL[nth]);
    let (method, order) = (method.unwrap_or_default(), order.unwrap_or_default());
    let route = Route { method, order, late: late.unwrap_or_default() };
    table.finish()?;
    let vms = machines(top)?;
    let migrations = migrations(top, &vms, duration)?;
    if !is_there {
        let Some(vm) = vms.first() else { return Ok(None) };
        let wrong =
            Wrong::new(top.at, format!("[vm.{}] needs virtual functions, and [vms] is not there", vm.name));
        return Err(wrong.allowed("write `[vms]` with `vfs`, the virtual functions of each host"));
    }
    if pm.mode != PmMode::Off {
        let wrong = Wrong::new(at, "a file cannot have both [vms] and a performance manager");
        return Err(wrong.allowed("leave out `mode` of [pm], or [vms]"));
    }
    Ok(Some(VmsSpec { vfs, is_dynamic, route, vms, migrations }))
}

fn machines(top: &mut Table<'_>) -> Result<Vec<VmSpec>, Wrong> {
    let mut all = Vec::new();
    for (name, mut table) in top.named("vm")? {
        name.parse::<VmName>().map_err(|error| Wrong::new(table.at, error.to_string()))?;
        let host = table.need_name("host", Role::Host, "the host that it starts on")?;
        table.place(Role::Vm, &name, table.at);
        let time = |table: &mut Table<'_>, key| table.seconds(key).map(Option::unwrap_or_default);
        let spec = VmSpec {
            host,
            rate_gbps: table.quantity("rate_gbps", "Gb/s", 4000.0)?,
            hypervisor: Hypervisor {
                pre_copy: time(&mut table, "pre_copy")?,
                stop_copy: time(&mut table, "stop_copy")?,
                resume: time(&mut table, "resume")?,
            },
            name,
        };
        table.finish()?;
        all.push(spec);
    }
    Ok(all)
}

fn migrations(top: &mut Table<'_>, vms: &[VmSpec], duration: Time) -> Result<Vec<MigrateSpec>, Wrong> {
    let names: Vec<&str> = vms.iter().map(|vm| vm.name.as_str()).collect();
    let (mut all, mut moments) = (Vec::new(), BTreeSet::new());
    for mut table in top.list("migrate")? {
        let place = table.at;
        table.need("at", "when it begins, in seconds")?;
        let at = table.seconds("at")?.unwrap_or_default();
        if at > duration {
            return Err(Wrong::new(place, "the migration is after the run's end"));
        }
        let vm = known(&mut table, &names)?;
        let tour = tour(&mut table, at, duration)?;
        let (cold, late_detach) = (table.flag("cold", false)?, table.flag("late_detach", true)?);
        for Stop { at, to, stands } in tour {
            let spec = MigrateSpec { at, vm: vm.clone(), to, cold, late_detach };
            table.place(Role::Host, &spec.to, stands);
            table.place(Role::Migration, &spec.name(), stands);
            if !moments.insert((at, spec.vm.clone())) {
                let message = format!("`{}` has two migrations at {} s", spec.vm, at.as_secs_f64());
                return Err(Wrong::new(place, message).allowed("one machine goes to one host at a time"));
            }
            all.push(spec);
        }
        table.finish()?;
    }
    all.sort_by_key(|spec| spec.at);
    Ok(all)
}

/// A host that a machine goes to, and where the file names it.
struct Stop {
    at: Time,
    to: String,
    stands: At,
}

/// Where a `[[migrate]]` leads, and when: `to` may be a list of hosts, one after each time of `every`, over and over until there are `times`.
fn tour(table: &mut Table<'_>, first: Time, duration: Time) -> Result<Vec<Stop>, Wrong> {
    let place = table.at;
    let value = table.need("to", "the host that it goes to, or a list of hosts")?;
    let hosts = texts(value, "to")?;
    let every = table.seconds("every")?.filter(|every| *every > Time::ZERO);
    let times = table.number::<u32>("times", 1..=TIMES_MAX)?;
    if hosts.is_empty() {
        return Err(Wrong::new(value.at, "`to` names no host"));
    }
    let times = times.unwrap_or(u32::try_from(hosts.len()).unwrap_or(u32::MAX));
    let every = match every {
        Some(every) => every,
        None if times == 1 => Time::ZERO,
        None => {
            let wrong = Wrong::new(place, "several migrations need the time from one to the next");
            return Err(wrong.allowed("write `every`, in seconds, more than 0"));
        }
    };
    let at = |nth: u32| first + Time::from_nanos(every.as_nanos().saturating_mul(u64::from(nth)));
    if at(times - 1) > duration {
        return Err(Wrong::new(place, "the last of the migrations is after the run's end"));
    }
    let stop =
        |(nth, (to, stands)): (u32, &(String, At))| Stop { at: at(nth), to: to.clone(), stands: *stands };
    Ok((0..times).zip(hosts.iter().cycle()).map(stop).collect())
}

/// The value of `vm`, which must be the name of a `[vm.NAME]`.
pub(super) fn known(table: &mut Table<'_>, names: &[&str]) -> Result<String, Wrong> {
    let unknown = |name: &str| format!("no virtual machine is called `{name}`");
    table.known("vm", "the name of a [vm.NAME]", names, unknown)
}
