//! `weft vm`: virtual machines by way of their manager.

use std::collections::BTreeSet;
use std::time::Duration;

use indicatif::ProgressBar;
use weft_bundle::config::managers::VmmPart;
use weft_bundle::failure::Failure;
use weft_bundle::folder::{LabFolder, bundle};
use weft_bundle::names::VMM;
use weft_control::vmm::{VPort, VmCreate, VmMigrate, VmPlanWrite, VmWay};
use weft_control::{Answer, Request};
use weft_lab::managers::all_vports;
use weft_lab::paints::{self, Colour};
use weft_lab::view::Lab;
use weft_lab::vms::{Progress, ask, away, connect, load, start};
use weft_picture::{Group, Look};
use weft_process::unexpected;
use weft_topology::NodeIndex;
use weft_wire::{Guid, count_of};

use crate::cli::vm::{VmCreateArgs, VmMigrateArgs, VmPlanArgs, VmVerb, VmWayArgs};
use crate::drawing;
use crate::output::{Table, or_dash, print, print_json, say};
use crate::progress;

mod shown;

/// How long a move waits for its plan to be shown.
const PLAN_PATIENCE: Duration = Duration::from_secs(3);

pub(super) fn run(folder: &LabFolder, verb: &VmVerb) -> anyhow::Result<()> {
    let lab = load(folder)?;
    match verb {
        VmVerb::Create(args) => create(&lab, args),
        VmVerb::Ls(args) => list(&lab, args.json),
        VmVerb::Plan(args) => plan(&lab, args),
        VmVerb::Migrate(args) => migrate(&lab, args),
        VmVerb::Destroy(args) => {
            let manager = manager_of(&lab, &args.name)?;
            ask(&lab, &manager, Request::VmDestroy { vm: args.name.clone() })?;
            say(&format!("`{}` has ended", args.name));
            Ok(())
        }
        VmVerb::Forget(args) => {
            let manager = manager_of(&lab, &args.name)?;
            ask(&lab, &manager, Request::VmForget { vm: args.name.clone(), force: args.force })?;
            say(&format!("`{}` is forgotten", args.name));
            Ok(())
        }
    }
}

/// The first manager, and those of other pieces of the fabric.
fn managers(lab: &Lab) -> impl Iterator<Item = &str> {
    lab.record.vmms.iter().map(|place| place.name.as_str())
}

/// The manager that has a virtual machine; the first one where none has. A silent one may have it, where no other has.
fn manager_of(lab: &Lab, vm: &str) -> anyhow::Result<String> {
    let first = managers(lab).next().unwrap_or(VMM).to_owned();
    if lab.record.vmms.len() < 2 {
        return Ok(first);
    }
    let found = first_manager(lab, |_, ports| Ok(ports.iter().any(|port| port.vm == vm)))?;
    Ok(found.map_or(first, str::to_owned))
}

/// The machines of each manager, or why it does not answer.
fn all_machines(lab: &Lab) -> impl Iterator<Item = (&str, anyhow::Result<Vec<VPort>>)> {
    managers(lab).map(|manager| (manager, all_vports(&lab.folder, manager).map_err(away(manager))))
}

/// The first manager that `is_it`. Where none of those that answer is, a silent one is an error: it could be.
fn first_manager(
    lab: &Lab,
    is_it: impl Fn(&str, &[VPort]) -> anyhow::Result<bool>,
) -> anyhow::Result<Option<&str>> {
    let mut silent = None;
    for (manager, machines) in all_machines(lab) {
        match machines {
            Ok(machines) if is_it(manager, &machines)? => return Ok(Some(manager)),
            Ok(_) => {}
            Err(error) => drop(silent.get_or_insert(error)),
        }
    }
    silent.map_or(Ok(None), Err)
}

/// The host that a node's name means, as its manager calls it, and the manager: `only` that one, if one is named.
fn host<'a>(lab: &'a Lab, name: &str, only: Option<&str>) -> anyhow::Result<(String, &'a str)> {
    let mut all = Vec::new();
    for manager in managers(lab) {
        let part: VmmPart = bundle::load(&lab.folder.bundle().manager(manager))?;
        all.extend(part.hosts.into_iter().map(|host| (host, manager)));
    }
    let is_it = |manager: &str| only.is_none_or(|only| only == manager);
    let found = match all.iter().find(|(host, _)| host.name.to_string() == name) {
        Some(found) => vec![found],
        None => {
            let (node, port) = lab.find_seat(name)?;
            let ports =
                lab.fabric.node(node).end_ports().filter(|(own, _)| port.is_none_or(|port| port == *own));
            let guids: Vec<Guid> = ports.map(|(_, port)| port.guid).collect();
            all.iter().filter(|(host, _)| guids.contains(&host.adapter.port_guid)).collect()
        }
    };
    if let Some((host, manager)) = found.iter().find(|(_, manager)| is_it(manager)) {
        return Ok((host.name.to_string(), manager));
    }
    Err(match found.first() {
        Some((host, _)) => Failure::bad_input(format!("{} is in another piece of the fabric", host.name))
            .hint("a machine moves where switches and cables lead: `weft vm ls` tells where it is"),
        None => Failure::bad_input(format!("`{name}` has no virtual functions"))
            .hint("name a host, such as `weft ps` lists them"),
    })
}

/// An error where another manager has machines of these names: one name stands for one machine.
fn check_names(lab: &Lab, args: &VmCreateArgs, manager: &str) -> anyhow::Result<()> {
    if lab.record.vmms.len() < 2 {
        return Ok(());
    }
    let fleet = format!("{}-", args.name);
    let clashes = |vm: &str| vm == args.name || (args.count.is_some() && vm.starts_with(&fleet));
    for (other, ports) in all_machines(lab) {
        let ports = ports?;
        if let Some(port) = ports.iter().find(|port| other != manager && clashes(&port.vm)) {
            let message = format!("a virtual machine `{}` runs in another piece of the fabric", port.vm);
            return Err(Failure::new(message).hint("choose another name; `weft vm ls` lists all"));
        }
    }
    Ok(())
}

/// The first manager with functions left for `machines`; where none has, the first, which says so.
fn roomy(lab: &Lab, machines: u32) -> anyhow::Result<&str> {
    let first = managers(lab).next().unwrap_or(VMM);
    if lab.record.vmms.len() < 2 {
        return Ok(first);
    }
    let found = first_manager(lab, |manager, ports| {
        let part: VmmPart = bundle::load(&lab.folder.bundle().manager(manager))?;
        let slots: usize = part.hosts.iter().map(|host| host.slots.len()).sum();
        Ok(slots.saturating_sub(ports.len()) >= machines as usize)
    })?;
    Ok(found.unwrap_or(first))
}

fn create(lab: &Lab, args: &VmCreateArgs) -> anyhow::Result<()> {
    let place = args.host.as_deref().map(|name| host(lab, name, None)).transpose()?;
    let (host, manager) = match place {
        Some((host, manager)) => (Some(host), manager),
        None => (None, roomy(lab, args.count.unwrap_or(1))?),
    };
    check_names(lab, args, manager)?;
    let runs = bar(u64::from(args.count.unwrap_or(1)), "virtual machines run");
    let mut have_lids = None;
    let mut hear = |progress| match progress {
        Progress::OneMoreRuns => runs.inc(1),
        Progress::HaveLids { lids, of } => {
            runs.finish_and_clear();
            have_lids.get_or_insert_with(|| bar(of as u64, "have LIDs")).set_position(lids as u64);
        }
    };
    let wanted = VmCreate {
        name: args.name.clone(),
        host,
        vf: args.vf,
        count: args.count,
        guid: args.guid.map(Into::into),
        p_keys: args.pkey.clone(),
        rate_mbps: args.rate,
    };
    let ports = start(lab, manager, wanted, &mut hear)?;
    have_lids.iter().for_each(ProgressBar::finish_and_clear);
    if args.json { print_json(&ports) } else { show_created(&ports, args.count.is_some()) }
}

fn show_created(ports: &[VPort], is_fleet: bool) -> anyhow::Result<()> {
    let waiting = ports.iter().filter(|port| port.virtual_port_lid == 0).count();
    if waiting > 0 {
        say(&format!(
            "{waiting} of {} have no LID yet: `weft status` tells how the subnet manager is",
            ports.len()
        ));
    }
    match ports {
        [port] if !is_fleet => {
            let lid = match port.virtual_port_lid {
                0 => "no LID yet".to_owned(),
                lid => format!("LID {lid}"),
            };
            let (host, vf, guid) = (&port.system_name, port.vf, &port.virtual_port_guid);
            print(&format!("`{}` runs on {host} vf{vf}, GUID 0x{guid}, {lid}\n", port.vm))
        }
        ports => print(&table(ports)),
    }
}

fn bar(count: u64, what: &'static str) -> ProgressBar {
    if count < 2 {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(count), progress::target());
    let width = progress::bar_width(what.len() + " 1000/1000 ".len());
    bar.set_style(progress::style(&format!("{{bar:{width}}} {{pos}}/{{len}} {{msg}}")));
    bar.set_message(what);
    bar
}

fn list(lab: &Lab, json: bool) -> anyhow::Result<()> {
    let (mut ports, mut silent) = (Vec::new(), None);
    for (_, machines) in all_machines(lab) {
        match machines {
            Ok(mut machines) => ports.append(&mut machines),
            Err(error) => drop(silent.get_or_insert(error)),
        }
    }
    // What is known is shown, and that it is not all.
    if silent.is_none() || !ports.is_empty() {
        if json { print_json(&ports) } else { print(&table(&ports)) }?;
    }
    silent.map_or(Ok(()), Err)
}

fn table(ports: &[VPort]) -> String {
    let mut table = Table::headed("vm | state | host | vf | LID | GUID | detail");
    for port in ports {
        let lid = or_dash(Some(port.virtual_port_lid).filter(|lid| *lid > 0));
        table.row(&[
            &port.vm,
            &port.vm_state,
            &port.system_name,
            &port.vf,
            &lid,
            &format!("0x{}", port.virtual_port_guid),
            &port.detail,
        ]);
    }
    table.to_string()
}

fn way(lab: &Lab, manager: &str, args: &VmWayArgs) -> anyhow::Result<VmWay> {
    let &VmWayArgs { method, update, late, .. } = args;
    Ok(VmWay { vm: args.name.clone(), host: host(lab, &args.host, Some(manager))?.0, method, update, late })
}

/// A move that is drawn.
struct Drawn<'a> {
    name: &'a str,
    host: &'a str,
    writes: &'a [VmPlanWrite],
}

/// The writes of a plan in a picture, with where the machine is and where it goes.
fn put_move(lab: &Lab, drawn: &Drawn<'_>, look: &mut Look) -> anyhow::Result<()> {
    let Drawn { name, host, writes } = *drawn;
    let written = |write: &VmPlanWrite| lab.fabric.by_guid(write.switch);
    let mut switches: Vec<NodeIndex> = writes.iter().filter_map(written).collect();
    switches.sort();
    switches.dedup();
    let tables = format!("{} written", count_of(switches.len(), "switch"));
    look.groups.push(Group { words: format!("{name} is here"), nodes: vec![lab.find_vm(name)?] });
    look.groups.push(Group { words: format!("goes to {host}"), nodes: vec![lab.find_seat(host)?.0] });
    look.groups.push(Group { words: tables, nodes: switches });
    let rounds: BTreeSet<u16> = writes.iter().map(|write| write.round).collect();
    for round in rounds {
        let names: BTreeSet<&str> =
            writes.iter().filter(|write| write.round == round).map(|write| write.name.as_str()).collect();
        let names: Vec<&str> = names.into_iter().collect();
        look.words.extend(drawing::sentences(
            [format!("round {round}: {}", names.join(", ")).as_str()].into_iter(),
        ));
    }
    look.title = format!("{}: {name} moves to {host}", lab.folder.name());
    Ok(())
}

/// Draws the plan of a move into a picture of the laboratory.
pub(super) fn draw_move(folder: &LabFolder, name: &str, host: &str, look: &mut Look) -> anyhow::Result<()> {
    let lab = load(folder)?;
    let way = VmWay { vm: name.to_owned(), ..VmWay::default() };
    let manager = manager_of(&lab, name)?;
    let way = VmWay { host: self::host(&lab, host, Some(&manager))?.0, ..way };
    let Answer::VmPlan { writes, .. } = ask(&lab, &manager, Request::VmPlan(way))? else {
        return unexpected("vm-plan");
    };
    put_move(&Lab::load_live(folder)?, &Drawn { name, host, writes: &writes }, look)
}

fn plan(lab: &Lab, args: &VmPlanArgs) -> anyhow::Result<()> {
    args.picture.as_deref().map(drawing::format_of).transpose()?;
    let (picture, args) = (&args.picture, &args.way);
    let manager = manager_of(lab, &args.name)?;
    let way = way(lab, &manager, args)?;
    let Answer::VmPlan { counts, writes, silent } = ask(lab, &manager, Request::VmPlan(way.clone()))? else {
        return unexpected("vm-plan");
    };
    if let Some(path) = picture {
        let live = Lab::load_live(&lab.folder)?;
        let mut look = paints::look(&live, Colour::State, Duration::ZERO)?;
        put_move(&live, &Drawn { name: &args.name, host: &args.host, writes: &writes }, &mut look)?;
        drawing::write(path, &live.fabric, &look)?;
    }
    let peers = shown::peers(lab, &silent);
    if args.json {
        return print_json(&serde_json::json!({
            "vm": way.vm, "host": way.host, "counts": counts, "writes": writes, "silent": silent, "peers": peers
        }));
    }
    print(&format!("{}nothing was sent to switches\n", shown::plan(&way, &counts, &writes, &peers)))
}

fn migrate(lab: &Lab, args: &VmMigrateArgs) -> anyhow::Result<()> {
    let manager = manager_of(lab, &args.way.name)?;
    let way = way(lab, &manager, &args.way)?;
    let request = Request::VmMigrate(VmMigrate {
        way: way.clone(),
        cold: args.cold,
        early_detach: args.early_detach,
        pre_copy_ms: args.pre_copy,
        stop_copy_ms: args.stop_copy,
        resume_ms: args.resume,
    });
    // Silent hosts are named before anything is sent. Without a plan the move itself says why.
    let silent = match connect(lab, &manager)?.ask(Request::VmPlan(way), PLAN_PATIENCE) {
        Ok(Answer::VmPlan { silent, .. }) => silent,
        _ => Vec::new(),
    };
    let foretold = shown::peers(lab, &silent);
    if !args.way.json && !foretold.is_empty() {
        say(&shown::silence(&foretold, Some(args.stop_copy)));
    }
    let Answer::VmMigrate(migration) = ask(lab, &manager, request)? else { return unexpected("vm-migrate") };
    // The move may have waited for others, and then been planned again.
    let peers = match shown::peers(lab, &migration.silent) {
        peers if peers.is_empty() && migration.silent_after_ns.is_some() => foretold,
        peers => {
            if !args.way.json && !shown::are_the_same(&foretold, &peers) {
                say(&shown::silence(&peers, Some(args.stop_copy)));
            }
            peers
        }
    };
    if args.way.json {
        let mut all = serde_json::to_value(&*migration)?;
        all["peers"] = serde_json::to_value(shown::served(&migration, peers))?;
        return print_json(&all);
    }
    print(&shown::report(&migration))
}
