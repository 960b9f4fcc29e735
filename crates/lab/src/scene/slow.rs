//! Slow questions, as silent processes keep one waiting: managers, virtual machines, faults, and ways of flows. A thread of
//! its own asks it, and events do not wait for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use weft_control::sm::PhaseTime;
use weft_page::state::{Fault, Hop, Hot, Manager, Partition, Table, Vm};
use weft_process::utc_now;

use crate::faults::lasting::{self, Listed};
use crate::managers::{Told, all_vports, in_charge, performance_manager, subnet_managers, vm_manager};
use crate::scene::partitions;
use crate::scene::paths::{Paths, Wanted};
use crate::scene::plan::Plan;
use crate::view::Lab;

/// How often managers are asked.
const MANAGERS_EVERY: Duration = Duration::from_secs(2);
/// How often faults and partitions are, if no event says that they have changed.
const UNTOLD_EVERY: Duration = Duration::from_secs(60);

/// What was asked for.
#[derive(Clone, Debug, Default)]
pub(super) struct Slow {
    pub(super) managers: Table<Manager>,
    pub(super) vms: Table<Vm>,
    pub(super) faults: Table<Fault>,
    /// The faults of each cable.
    pub(super) of_cables: BTreeMap<usize, Vec<String>>,
    /// Nodes that are frozen.
    pub(super) frozen: BTreeSet<String>,
    pub(super) hot: Table<Hot>,
    pub(super) partitions: Table<Partition>,
    /// The ways of flows, by their names.
    pub(super) paths: BTreeMap<String, Vec<Hop>>,
}

/// What the thread is to ask next.
#[derive(Default)]
struct Orders {
    site: Option<Arc<(Lab, Plan)>>,
    watched: bool,
    managers: bool,
    faults: bool,
    /// Tables may have changed.
    tables: bool,
    flows: Option<Vec<Wanted>>,
    /// No one asks any more.
    is_over: bool,
}

/// Where orders for the thread are left.
#[derive(Default)]
pub(super) struct Desk {
    orders: Mutex<Orders>,
    bell: Condvar,
}

impl Desk {
    fn orders(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the thread work for this cabling.
    pub(super) fn cabled(&self, site: Arc<(Lab, Plan)>) {
        let mut orders = self.orders();
        orders.site = Some(site);
        (orders.managers, orders.faults, orders.tables) = (true, true, true);
        self.bell.notify_one();
    }

    pub(super) fn ask(&self, managers: bool, faults: bool, tables: bool) {
        let mut orders = self.orders();
        orders.managers |= managers;
        orders.faults |= faults;
        orders.tables |= tables;
        if managers || faults || tables {
            self.bell.notify_one();
        }
    }

    /// Says whether anybody looks.
    pub(super) fn watched(&self, watched: bool) {
        self.orders().watched = watched;
    }

    /// Ends the thread.
    pub(super) fn end(&self) {
        self.orders().is_over = true;
        self.bell.notify_one();
    }

    /// Has it find the ways of these flows, where they are others than before.
    pub(super) fn follow(&self, flows: Vec<Wanted>) {
        self.orders().flows = Some(flows);
        self.bell.notify_one();
    }

    fn next(&self) -> Orders {
        let orders = self.orders();
        let is_idle = |orders: &mut Orders| {
            !(orders.managers || orders.faults || orders.tables || orders.flows.is_some() || orders.is_over)
        };
        let waited = self.bell.wait_timeout_while(orders, MANAGERS_EVERY, is_idle);
        let (mut orders, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let next = Orders { site: orders.site.clone(), watched: orders.watched, ..Orders::default() };
        std::mem::replace(&mut *orders, next)
    }
}

/// Asks for as long as `take` wants what comes of it.
pub(super) fn run(desk: &Desk, mut take: impl FnMut(Slow) -> bool) {
    let (mut slow, mut paths) = (Slow::default(), Paths::default());
    let (mut flows, mut asked_untold) = (Vec::new(), None::<Instant>);
    let mut leader = None;
    loop {
        let orders = desk.next();
        if orders.is_over {
            return;
        }
        let Some(site) = &orders.site else { continue };
        let (lab, plan) = &**site;
        let is_time = asked_untold.is_none_or(|at: Instant| at.elapsed() > UNTOLD_EVERY);
        let is_idle = !(orders.watched || orders.managers || orders.faults || orders.tables);
        if is_idle && orders.flows.is_none() && !is_time {
            continue;
        }
        let led_by = leader.clone();
        if orders.watched || orders.managers {
            leader = managers(lab, &mut slow);
            machines(lab, &mut slow);
        }
        if orders.faults || is_time {
            faults(lab, plan, &mut slow);
            asked_untold = Some(Instant::now());
        }
        if orders.tables || is_time || leader != led_by {
            let found = leader.as_deref().and_then(|manager| partitions::of(lab, manager));
            slow.partitions = found.unwrap_or(slow.partitions);
        }
        if orders.tables {
            paths.forget();
        }
        if let Some(wanted) = orders.flows {
            flows = wanted;
        }
        if orders.watched {
            slow.paths = paths.of(lab, plan, &flows);
        }
        if !take(slow.clone()) {
            return;
        }
    }
}

/// Asks all managers, and names the subnet manager that has the say.
fn managers(lab: &Lab, slow: &mut Slow) -> Option<String> {
    let node = |guid| lab.fabric.by_guid(guid).map(|index| lab.fabric.label(index));
    let mut all = Table::new();
    let seats: BTreeMap<String, _> =
        lab.record.subnet_managers().map(|(name, place)| (name, place.node)).collect();
    let subnet = subnet_managers(&lab.folder, &lab.record).unwrap_or_default();
    let leader = in_charge(&subnet).map(|manager| manager.name.clone());
    for manager in subnet {
        let mut shown = shown(&manager.told, "sm", seats.get(&manager.name).and_then(|guid| node(*guid)));
        if let Some(status) = manager.told.status() {
            shown.state = status.state().map_or("starting", |state| state.name()).to_owned();
            shown.phase = status.phase.map(|phase| phase.to_string());
            shown.window = status.window.as_ref().map(|window| window.most);
            shown.in_flight = Some(status.in_flight);
            let last = status.last.iter().map(|last| phases(&last.phases));
            let lines = status.to_string().lines().take(2).map(str::to_owned).collect::<Vec<_>>();
            shown.text = lines.into_iter().chain(last).collect::<Vec<_>>().join("; ");
        }
        all.insert(manager.name, shown);
    }
    let mut hot = Table::new();
    for place in &lab.record.pms {
        let Ok(told) = performance_manager(&lab.folder, &place.name) else { continue };
        let mut shown = shown(&told, "pm", node(place.node));
        if let Some(status) = told.status() {
            shown.state = if status.ready { "ready" } else { "learning" }.to_owned();
            shown.text = format!("{} sweeps, {} hot spots", status.statistics.sweeps, status.hot_spots.len());
            let name = |guid| lab.fabric.by_port_guid(guid).map(|index| lab.fabric.label(index));
            for spot in &status.hot_spots {
                let Some(host) = name(spot.port_guid.0) else { continue };
                let now = utc_now().as_nanos() / 1_000_000;
                let since_ms = slow.hot.get(&host).map_or(now, |known| known.since_ms);
                let slow_lane = spot.contributors.iter().filter_map(|guid| name(guid.0)).collect();
                hot.insert(host, Hot { since_ms, slow_lane });
            }
        }
        all.insert(place.name.clone(), shown);
    }
    for place in &lab.record.vmms {
        let Ok(told) = vm_manager(&lab.folder, &place.name) else { continue };
        let mut shown = shown(&told, "vmm", node(place.node));
        if let Some(status) = told.status() {
            shown.state = if status.stopped.is_some() { "stopped" } else { "ready" }.to_owned();
            shown.text = status.stopped.clone().unwrap_or_default();
        }
        all.insert(place.name.clone(), shown);
    }
    (slow.managers, slow.hot) = (all, hot);
    leader
}

/// How long each phase of a sweep took.
pub fn phases(phases: &[PhaseTime]) -> String {
    let of = |time: &PhaseTime| format!("{} {:.1} ms", time.phase, time.took.as_nanos() as f64 / 1e6);
    format!("last sweep: {}", phases.iter().map(of).collect::<Vec<_>>().join(", "))
}

fn shown<T>(told: &Told<T>, kind: &str, node: Option<String>) -> Manager {
    let (state, text) = match told {
        Told::NotRunning => ("down", String::new()),
        Told::Silent(why) => ("silent", why.clone()),
        Told::Status(_) => ("ready", String::new()),
    };
    Manager { kind: kind.to_owned(), node, state: state.to_owned(), text, ..Manager::default() }
}

fn machines(lab: &Lab, slow: &mut Slow) {
    let mut all = Table::new();
    for place in &lab.record.vmms {
        for port in all_vports(&lab.folder, &place.name).unwrap_or_default() {
            let is_moving = port.vm_state == "moving";
            let vm = Vm {
                name: port.vm.clone(),
                host: port.system_name,
                lid: Some(port.virtual_port_lid).filter(|lid| *lid > 0),
                state: port.vm_state,
                moving_to: Some(port.detail).filter(|detail| is_moving && !detail.is_empty()),
            };
            all.insert(port.vm, vm);
        }
    }
    slow.vms = all;
}

fn faults(lab: &Lab, plan: &Plan, slow: &mut Slow) {
    // Those of agents that do not run come with the agents.
    let Ok((listed, _)) = lasting::list(lab) else { return };
    (slow.faults, slow.of_cables, slow.frozen) = <_>::default();
    for fault in listed {
        let ports: Vec<_> = fault.at.iter().filter_map(|at| lab.port(at).ok()).collect();
        let id = fault.id.to_string();
        let cables: BTreeSet<usize> =
            ports.iter().filter_map(|port| plan.at.get(port)).map(|end| end.cable).collect();
        for cable in &cables {
            slow.of_cables.entry(*cable).or_default().push(id.clone());
        }
        if fault.damage == "frozen" {
            slow.frozen.extend(fault.at.iter().cloned());
        }
        slow.faults.insert(id, line(fault, cables.first()));
    }
}

fn line(fault: Listed, cable: Option<&usize>) -> Fault {
    let text = match (&fault.impairment, &fault.identity) {
        (Some(how), _) => how.to_string(),
        (None, Some(identity)) => identity.to_string(),
        (None, None) => fault.damage.to_owned(),
    };
    let node = if cable.is_none() { fault.at.first().cloned() } else { None };
    Fault {
        kind: fault.impairment.map_or(fault.damage, |how| how.word().name()).to_owned(),
        r#where: fault.at.into_iter().collect::<Vec<_>>().join(", "),
        cable: cable.map(ToString::to_string),
        node,
        until_ms: fault.until.map(|until| until.as_nanos() / 1_000_000),
        text,
    }
}
