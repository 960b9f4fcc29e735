//! `[vms]`, `[vm.NAME]` and `[[migrate]]`.

use std::collections::{BTreeMap, BTreeSet};

use weft_host::stack::Guids;
use weft_host::traffic::Work;
use weft_machine::Time;
use weft_vm::{Hypervisor, LatePolicy, Method, Route, UpdateOrder, VmName};

use super::error::{At, Wrong};
use super::reader::{Role, Table, texts};
use crate::{FlowEntry, FlowOptions, Memory, MigrateSpec, PmMode, PmSpec, Rates, VmSpec, VmsSpec};

/// Bytes round the body of a packet of a reliable connection: LRH, BTH, ICRC and VCRC.
const PACKET_OVERHEAD: u16 = 8 + 12 + 4 + 2;

/// The most migrations of one `[[migrate]]`.
const TIMES_MAX: i64 = 10_000;

/// The virtual machines of a file; none where it has no `[vms]`.
pub(super) fn vms(top: &mut Table<'_>, pm: &PmSpec, duration: Time) -> Result<Option<VmsSpec>, Wrong> {
    let is_there = top.get("vms").is_some();
    let mut table = top.table("vms")?;
    let at = table.at;
    let vfs = table.number("vfs", 1..=i64::from(weft_topology::VFS_MAX))?.unwrap_or(1);
    let lids = table.word("lids", &["prepopulated", "dynamic", "fixed"])?.unwrap_or(0);
    let (is_dynamic, lids_stay) = (lids > 0, lids == 2);
    let guids = table.choice("guids", &Guids::ALL, Guids::name)?.unwrap_or_default();
    if guids == Guids::Dynamic && !lids_stay {
        let wrong = Wrong::new(at, "with `guids = \"dynamic\"` a machine takes neither GUID nor LID along");
        return Err(wrong.allowed("write `lids = \"fixed\"` in [vms]"));
    }
    let signals = table.get("signal_moves").map(|value| value.at);
    if let Some(place) = signals.filter(|_| !lids_stay) {
        let wrong =
            Wrong::new(place, "`signal_moves` is about LIDs that stay with functions, and here they move");
        return Err(wrong.allowed("write `lids = \"fixed\"` in [vms]"));
    }
    let signal_moves = table.flag("signal_moves", lids_stay && guids == Guids::Static)?;
    if signal_moves && guids == Guids::Dynamic {
        let wrong = Wrong::new(at, "no GUID comes back with another LID where GUIDs stay with functions");
        return Err(wrong.allowed("leave out `signal_moves` of [vms], or write `guids = \"static\"`"));
    }
    let method = table.choice("method", &Method::ALL, Method::name)?.unwrap_or_default();
    let order = table.choice("update", &UpdateOrder::ALL, UpdateOrder::name)?.unwrap_or_default();
    let late = table.choice("late", &LatePolicy::ALL, LatePolicy::name)?.unwrap_or_default();
    let route = table.finish(Route { method, order, late })?;
    let vms = machines(top)?;
    let migrations = migrations(top, &vms, duration)?;
    if !is_there {
        let Some(vm) = vms.first() else { return Ok(None) };
        let wrong =
            Wrong::new(top.at, format!("[vm.{}] needs virtual functions, and [vms] is not there", vm.name));
        return Err(wrong.allowed("write `[vms]` with `vfs`, the virtual functions of each host"));
    }
    if pm.mode == PmMode::Oracle {
        let message =
            "an oracle fills path caches before the clock begins, and those do not follow a machine";
        return Err(Wrong::new(at, message).allowed("write `mode = \"on\"` in [pm], or leave out [vms]"));
    }
    Ok(Some(VmsSpec { vfs, is_dynamic, lids_stay, guids, signal_moves, route, vms, migrations }))
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
            memory: memory(&mut table)?,
            name,
        };
        if spec.memory.is_some() && spec.hypervisor.pre_copy == Time::ZERO {
            let wrong = Wrong::new(table.at, format!("`memory_mib` of `{}` is copied in no time", spec.name));
            return Err(wrong.allowed("write `pre_copy`, the seconds that the copy takes"));
        }
        all.push(table.finish(spec)?);
    }
    Ok(all)
}

fn memory(table: &mut Table<'_>) -> Result<Option<Memory>, Wrong> {
    let at = table.at;
    let mib = table.number("memory_mib", 1..=1 << 24)?;
    let dirty_mbps = table.number("dirty_mbps", 0..=1_000_000)?;
    match (mib, dirty_mbps) {
        (None, Some(_)) => {
            Err(Wrong::new(at, "`dirty_mbps` is about memory that is copied, and `memory_mib` is not there"))
        }
        (mib, dirty) => Ok(mib.map(|mib| Memory { mib, dirty_mbps: dirty.unwrap_or(0) })),
    }
}

/// The copies of memory while machines run, as flows between the physical functions: `copy VMa`, and for further migrations `copy VMa 2`.
pub(super) fn copies(spec: &VmsSpec, rates: &Rates) -> Vec<FlowEntry> {
    let mut at: BTreeMap<&str, (&str, u32)> =
        spec.vms.iter().map(|vm| (vm.name.as_str(), (vm.host.as_str(), 0))).collect();
    let mut flows = Vec::new();
    for migration in &spec.migrations {
        let Some(vm) = spec.vms.iter().find(|vm| vm.name == migration.vm) else { continue };
        let Some((host, nth)) = at.get_mut(vm.name.as_str()) else { continue };
        let from = std::mem::replace(host, migration.to.as_str());
        *nth += 1;
        let Some(memory) = vm.memory.filter(|_| !migration.cold) else { continue };
        let name = if *nth == 1 { format!("copy {}", vm.name) } else { format!("copy {} {nth}", vm.name) };
        let body = rates.mtu_bytes();
        // Rates of flows are of whole packets.
        let whole = f64::from(body + PACKET_OVERHEAD) / f64::from(body);
        let options = FlowOptions {
            rate_gbps: Some(memory.rate_gbps(vm.hypervisor.pre_copy) * whole),
            start: migration.at,
            stop: Some(migration.at + vm.hypervisor.pre_copy),
            ..FlowOptions::usual(body)
        };
        let (from, to) = (from.to_owned(), migration.to.clone());
        let (work, bytes_max, sl, agree_as) = (Work::Stream, None, None, None);
        flows.push(FlowEntry { name, from, to, work, bytes_max, sl, agree_as, options });
    }
    flows
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
        table.finish(())?;
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
