//! `weft status`

use std::path::Path;
use std::time::Duration;

use weft_bundle::folder::LabFolder;
use weft_bundle::names::{HUB, OPENSM, PM, SM, VMM};
use weft_bundle::record::{LabRecord, OtherPlace};
use weft_control::hub::LabStatus;
use weft_control::pm::PmStatus;
use weft_control::report::status::{self as report, Manager, Processes, Status};
use weft_control::sm::{ManagerStatus, SmState};
use weft_control::vmm::VmmStatus;
use weft_lab::managers::{SubnetManager, Told, in_charge, performance_manager, subnet_managers, vm_manager};
use weft_lab::site;
use weft_lab::site::frozen::Frozen;
use weft_lab::site::status::lab_status;
use weft_lab::view::Lab;
use weft_wire::count_of;

use super::links;
use crate::output::{Table, print, print_json};

/// What is older than this is not what a manager that is well would say.
const STALE_AFTER: Duration = Duration::from_secs(5);

pub(super) fn run(folder: &LabFolder, json: bool) -> anyhow::Result<()> {
    let record = LabRecord::load(folder)?;
    let managers = subnet_managers(folder, &record)?;
    let of_first = of_first_piece(folder, &record, &managers)?;
    let shown = in_charge(&of_first);
    let running = shown.is_some_and(|manager| manager.told.is_running());
    let status = shown.and_then(|manager| manager.told.status());
    let age = status.map(|status| Duration::from_millis(status.age_ms));
    let pms =
        record.pms.iter().map(|place| Ok(Pm::of(&place.name, performance_manager(folder, &place.name)?)));
    let pms: Vec<Pm> = pms.collect::<anyhow::Result<_>>()?;
    let vmms = record.vmms.iter().map(|place| Ok(Vmm::of(&place.name, vm_manager(folder, &place.name)?)));
    let vmms: Vec<Vmm> = vmms.collect::<anyhow::Result<_>>()?;
    let list = list(&managers, shown);
    let others = if record.leaders().nth(1).is_some() { other_pieces(folder)? } else { Vec::new() };
    let processes = lab_status(folder).map(|status| processes_of(&status));
    if json {
        return print_json(&Status {
            lab: folder.name().to_owned(),
            running,
            managers: list,
            sm: status.cloned(),
            sm_age_s: age.map(|age| age.as_secs_f64()),
            sm_stale: running && is_stale(age),
            pieces: others.into_iter().map(|other| other.report).collect(),
            pm: pms.first().map(|pm| pm.report.clone()),
            pms: pms.into_iter().map(|pm| pm.report).collect(),
            vmm: vmms.first().and_then(|vmm| vmm.told.status().cloned()),
            vmms: vmms.iter().map(Vmm::report).collect(),
            processes,
        });
    }
    let mut text = format!("laboratory `{}` of {}\n", folder.name(), record.topology);
    text += &match processes {
        Some(processes) => processes_line(&processes),
        None if site::pid(folder, HUB)?.is_some() => silent_hub(folder),
        None => String::new(),
    };
    if list.len() > 1 {
        text += &table(&list);
    }
    let process = shown.map_or(SM, |manager| manager.name.as_str());
    let name =
        if process == SM { "the subnet manager".to_owned() } else { format!("the subnet manager {process}") };
    let log = folder.log(process);
    text += &match shown.map(|manager| &manager.told) {
        None if !record.own_opensms().is_empty() => opensm_text(folder, &record)?,
        None if !record.opensms.is_empty() => {
            "OpenSM manages the subnet, in a container of its own\n".to_owned()
        }
        None => "no subnet manager of weft's (--sm none)\n".to_owned(),
        Some(Told::NotRunning) => format!("{name} is not running\n"),
        Some(Told::Silent(why)) => silent(&name, why, &log),
        Some(Told::Status(_)) => running_text(&name, age, &log),
    };
    match status {
        Some(status) => text += &status.to_string(),
        // Another program's manager tells weft nothing.
        None if shown.is_none() => text += &degraded_text(links::degraded(folder)?),
        None => {}
    }
    for other in others {
        text += &other.text();
    }
    text.extend(pms.iter().map(|pm| pm.text(&folder.log(&pm.report.process))));
    text.extend(vmms.iter().map(|vmm| vmm.text(&folder.log(&vmm.process))));
    print(&text)
}

/// The subnet managers of the first one's piece.
fn of_first_piece(
    folder: &LabFolder,
    record: &LabRecord,
    all: &[SubnetManager],
) -> anyhow::Result<Vec<SubnetManager>> {
    if record.leaders().nth(1).is_none() {
        return Ok(all.to_vec());
    }
    let lab = Lab::load(folder)?;
    let pieces = lab.fabric.pieces();
    let first = lab.record.leaders_in(&lab.fabric).first().and_then(|(_, seat)| pieces.of_seat(*seat));
    let part = lab.piece(&pieces, first.unwrap_or_default());
    let is_in =
        |manager: &&SubnetManager| part.record.subnet_managers().any(|(name, _)| name == manager.name);
    let of_first: Vec<SubnetManager> = all.iter().filter(is_in).cloned().collect();
    // Its port may have lost its cable.
    Ok(if of_first.is_empty() { all.to_vec() } else { of_first })
}

/// A subnet manager of another piece of the fabric than the first one's.
struct OtherPiece {
    report: report::Piece,
    /// Why it does not answer.
    silent: Option<String>,
}

fn other_pieces(folder: &LabFolder) -> anyhow::Result<Vec<OtherPiece>> {
    let lab = Lab::load(folder)?;
    let pieces = lab.fabric.pieces();
    let mut shown: Vec<u32> = Vec::new();
    let mut others = Vec::new();
    for (_, seat) in lab.record.leaders_in(&lab.fabric) {
        let Some(piece) = pieces.of_seat(seat).filter(|piece| !shown.contains(piece)) else { continue };
        shown.push(piece);
        if shown.len() == 1 {
            continue; // That is all of the rest.
        }
        let managers = subnet_managers(folder, &lab.piece(&pieces, piece).record)?;
        let Some(manager) = in_charge(&managers) else { continue };
        others.push(OtherPiece {
            report: report::Piece {
                piece: lab.fabric.piece_label(&pieces, piece),
                manager: manager.name.clone(),
                running: manager.told.is_running(),
                sm: manager.told.status().cloned(),
            },
            silent: if let Told::Silent(why) = &manager.told { Some(why.clone()) } else { None },
        });
    }
    Ok(others)
}

impl OtherPiece {
    fn text(&self) -> String {
        let report::Piece { piece, manager, sm, .. } = &self.report;
        let state = match (sm, &self.silent) {
            (Some(status), _) => {
                return format!("piece of `{piece}`, the subnet manager {manager}:\n{status}");
            }
            (None, Some(why)) => format!("does not answer ({why})"),
            (None, None) => "is not running".to_owned(),
        };
        format!("piece of `{piece}`: the subnet manager {manager} {state}\n")
    }
}

/// OpenSM in few words, where it sits.
fn opensm_text(folder: &LabFolder, record: &LabRecord) -> anyhow::Result<String> {
    let several = record.opensms.len() > 1;
    let text = |place: &OtherPlace| {
        let OtherPlace { name, node, port, .. } = place;
        let who = if name == OPENSM { "OpenSM".to_owned() } else { format!("OpenSM {name}") };
        let label = record.device(*node).map_or_else(|| node.to_string(), |(_, node)| node.label.clone());
        let at = if several { format!(" at {label}:{port}") } else { String::new() };
        Ok(match site::pid(folder, name)? {
            // It may stand by.
            Some(_) if several => format!("{who} runs{at}; its log: {}\n", folder.log(name).display()),
            Some(_) => format!("{who} manages the subnet; its log: {}\n", folder.log(name).display()),
            None => format!("{who}{at} is not running: start it with `weft fault restart {name}`\n"),
        })
    };
    record.own_opensms().iter().map(text).collect()
}

/// What weft's subnet manager says of degraded links.
fn degraded_text(links: usize) -> String {
    if links == 0 { String::new() } else { format!("degraded cables: {links}; `weft links` shows them\n") }
}

/// A VM manager.
struct Vmm {
    process: String,
    told: Told<VmmStatus>,
}

impl Vmm {
    fn of(process: &str, told: Told<VmmStatus>) -> Self {
        Self { process: process.to_owned(), told }
    }

    fn report(&self) -> report::Vmm {
        let Self { process, told } = self;
        report::Vmm { process: process.clone(), running: told.is_running(), status: told.status().cloned() }
    }

    /// In few words.
    fn text(&self, log: &Path) -> String {
        let name = named("VM manager", &self.process, VMM);
        match &self.told {
            Told::NotRunning => format!("{name}: not running\n"),
            Told::Silent(why) => silent(&format!("the {name}"), why, log),
            Told::Status(status) => vmm_text(&name, status),
        }
    }
}

/// What a manager is, with its name where it is not the first of its kind.
fn named(what: &str, process: &str, first: &str) -> String {
    if process == first { what.to_owned() } else { format!("{what} {process}") }
}

fn vmm_text(name: &str, status: &VmmStatus) -> String {
    if let Some(why) = &status.stopped {
        return format!("{name}: stopped: {why}\n");
    }
    let count = |name: &str| status.counts.get(name).copied().unwrap_or(0);
    let vms: u64 = status.vms.values().sum();
    let states = status.vms.iter().map(|(state, count)| format!("{count} {state}"));
    let states =
        if vms == 0 { String::new() } else { format!(" ({})", states.collect::<Vec<_>>().join(", ")) };
    let away = match status.hosts - status.hosts_ready.min(status.hosts) {
        0 => String::new(),
        away => format!("; {away} of {} hosts do not answer", status.hosts),
    };
    let seat = if status.attached { "" } else { "waiting for its agent; " };
    format!(
        "{name}: {seat}{}{states}; {} of {} slots free{away}; moves: {} done, {} undone, \
         {} under way; {} lost\n",
        count_of(vms as usize, "virtual machine"),
        status.slots_free,
        status.slots,
        count("moves_done"),
        count("moves_undone"),
        status.under_way,
        count("vms_lost")
    )
}

/// A manager that answers, perhaps with what held a while ago.
fn running_text(name: &str, age: Option<Duration>, log: &Path) -> String {
    match age.filter(|_| is_stale(age)) {
        Some(age) => format!(
            "{name} is too busy to answer; what follows held {:.1} s ago; see {}\n",
            age.as_secs_f64(),
            log.display()
        ),
        None => format!("{name} is running\n"),
    }
}

/// A hub that runs and does not answer.
fn silent_hub(folder: &LabFolder) -> String {
    let frozen = Frozen::of_process(folder, HUB).map(|frozen| frozen.why(HUB));
    silent("the hub", &frozen.unwrap_or_else(|| "it hangs or is overloaded".to_owned()), &folder.log(HUB))
}

fn silent(name: &str, why: &str, log: &Path) -> String {
    format!("{name} is running and does not answer ({why}); see {}\n", log.display())
}

fn processes_of(status: &LabStatus) -> Processes {
    let LabStatus { expected, alive, restarts, restart, .. } = *status;
    Processes { expected, alive, states: status.states.clone(), restarts, restart }
}

fn processes_line(processes: &Processes) -> String {
    let Processes { expected, alive, restarts, .. } = processes;
    format!(
        "{alive} of {} {}; restarts: {restarts}\n",
        count_of(*expected as usize, "process"),
        if *expected == 1 { "runs" } else { "run" }
    )
}

/// A line of the list of managers: the laboratory's own, and those of others that its managers have met.
fn row(process: Option<String>, running: bool, line: &ManagerStatus, state: &str) -> Manager {
    let ManagerStatus { guid, lid, priority, is_self, is_trusted, .. } = *line;
    Manager {
        process,
        running,
        guid: guid.into(),
        lid,
        priority,
        state: state.to_owned(),
        is_self,
        is_trusted,
    }
}

fn list(managers: &[SubnetManager], shown: Option<&SubnetManager>) -> Vec<Manager> {
    let own = managers.iter().map(|manager| {
        let mut lines = manager.told.status().into_iter().flat_map(|status| &status.managers);
        let line = lines.rfind(|line| line.is_self).copied().unwrap_or_default();
        let state = match (&manager.told, line.state) {
            (Told::NotRunning, _) => "not running",
            (_, SmState::Unknown) => "waiting",
            (_, state) => state.name(),
        };
        row(Some(manager.name.clone()), manager.told.is_running(), &line, state)
    });
    let mut rows: Vec<Manager> = own.collect();
    let met = shown.and_then(|manager| manager.told.status()).into_iter();
    for line in met.flat_map(|status| &status.managers) {
        if rows.iter().all(|row| row.guid.0 != line.guid) {
            rows.push(row(None, true, line, line.state.name()));
        }
    }
    rows
}

fn table(rows: &[Manager]) -> String {
    let mut table = Table::headed("manager | state | priority | GUID | LID");
    for Manager { process, state, priority, guid, lid, .. } in rows {
        let lid = if lid.0 == 0 { "-".to_owned() } else { lid.to_string() };
        table.row(&[&process.as_deref().unwrap_or("another"), &state, &priority, &guid, &lid]);
    }
    table.to_string()
}

/// The performance manager in few words; all that it sees is `weft top`'s.
struct Pm {
    report: report::Pm,
    /// Why it does not answer.
    silent: Option<String>,
}

/// Whether a manager that is well would have said more since.
fn is_stale(age: Option<Duration>) -> bool {
    age.is_none_or(|age| age > STALE_AFTER)
}

impl Pm {
    fn of(process: &str, told: Told<PmStatus>) -> Self {
        let status = told.status();
        let age = status.map(|status| Duration::from_millis(status.age_ms));
        let statistics = status.map(|status| status.statistics).unwrap_or_default();
        let report = report::Pm {
            process: process.to_owned(),
            running: told.is_running(),
            age_s: age.map(|age| age.as_secs_f64()),
            stale: told.is_running() && is_stale(age),
            attached: status.is_some_and(|status| status.attached),
            ready: status.is_some_and(|status| status.ready),
            sweeps: statistics.sweeps,
            sweep_took_s: statistics.sweep_last.as_secs_f64(),
            nodes: statistics.nodes,
            silent_nodes: statistics.silent_nodes,
            ports: statistics.ports,
            hot_spots: status.map_or(0, |status| status.hot_spots.len()),
        };
        Self { report, silent: if let Told::Silent(why) = told { Some(why) } else { None } }
    }

    fn text(&self, log: &Path) -> String {
        let name = format!("the {}", named("performance manager", &self.report.process, PM));
        if let Some(why) = &self.silent {
            return silent(&name, why, log);
        }
        let age = self.report.age_s.map(Duration::from_secs_f64);
        let busy = if self.report.stale { running_text(&name, age, log) } else { String::new() };
        busy + &self.line()
    }

    fn line(&self) -> String {
        let name = named("performance manager", &self.report.process, PM);
        let state = match (self.report.running, self.report.attached, self.report.ready) {
            (false, ..) => return format!("{name}: not running\n"),
            (_, false, _) => "waiting for its agent",
            (_, _, false) => "learning the fabric",
            _ => "sweeping",
        };
        format!(
            "{name}: {state}; {}, the last in {:.3} s; {} of {}, {} silent; {}\n",
            count_of(self.report.sweeps as usize, "sweep"),
            self.report.sweep_took_s,
            count_of(self.report.ports as usize, "port"),
            count_of(self.report.nodes as usize, "node"),
            self.report.silent_nodes,
            count_of(self.report.hot_spots, "hot spot")
        )
    }
}
