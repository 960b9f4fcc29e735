//! The VM manager is killed at each step by name: right after the step's record is on disk, and before anything follows from it. Another
//! process goes on with the journal: what was not committed is taken back, what was is completed, and nothing is left over.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt as _;

use common::machines::{Slots, guids, listed, manager_status, state};
use common::{Home, Running, signal, text, wait_until};
use rustix::process::Signal;
use serde_json::Value;
use weft_control::vm::SlotState;
use weft_wire::Guid;

use crate::common;

/// Steps of a move that happen without a fault, in order, and whether the destination runs after a death there.
const STEPS: [(&str, bool); 7] = [
    ("reserve", false),
    ("freeze", false),
    ("import", false),
    ("reroute", false),
    ("commit", true),
    ("done", true),
    ("cleared", true),
];

/// A laboratory with a machine on host-0, and one on host-1 that nothing happens to.
struct Site {
    home: Home,
    slots: Slots,
    /// GUIDs of slots without a machine, before there was one.
    spares: BTreeSet<Guid>,
}

impl Site {
    fn new(lids: &str) -> Self {
        let home = Home::new();
        let file = home.small_tree();
        // Packets are gone sooner than by default, and so a move need not wait for those of the one before.
        let options = ["--vfs", "2", "--lids", lids, "--packet-life-time", "14"];
        let up: Vec<&str> = ["up", text(&file)].into_iter().chain(options).collect();
        home.weft(&up).succeeds();
        let mut slots = Slots::of(&home);
        let spares = guids(&slots.read());
        for (vm, host) in [("web", "host-0"), ("other", "host-1")] {
            home.weft(&["vm", "create", vm, "--host", host]).succeeds();
        }
        Self { home, slots, spares }
    }

    /// Puts a manager in the place of the one that runs, which dies after a record of this kind. It starts as any other does.
    fn doomed(&self, record: &str) -> Running {
        self.home.weft(&["fault", "kill", "vmm"]).succeeds();
        let folder = self.home.lab("default");
        let folder = text(&folder);
        Running::start(
            &self.home,
            &["vmm", "--bundle", folder, "--run", folder, "--as", "vmm", "--die-after", record],
        )
    }

    /// Waits until the manager and all hosts are ready.
    fn is_ready(&self) {
        wait_until("the VM manager is ready", || {
            manager_status(&self.home).is_some_and(|status| status["hosts_ready"] == status["hosts"])
        });
    }

    /// Does something under a manager that dies after a record of this kind, and starts another one.
    #[track_caller]
    fn dies_after(&mut self, record: &str, command: &[&str]) {
        let manager = self.doomed(record);
        self.is_ready();
        let client = Running::start(&self.home, command);
        died(manager, record);
        // It has its answer, or the end of its connection.
        client.end();
        assert_eq!(self.slots.twice(), None, "after {record}");
        self.restart();
    }

    fn restart(&self) {
        self.home.weft(&["fault", "restart", "vmm"]).succeeds();
        self.is_ready();
    }

    /// LID and GUID.
    fn address(&self, vm: &str) -> (Value, Value) {
        let port = listed(&self.home, vm).unwrap();
        (port["virtual_port_lid"].clone(), port["virtual_port_guid"].clone())
    }

    /// Waits until these machines run on these hosts, each in one slot, and no other slot is used. Then packets find all of them.
    #[track_caller]
    fn settles(&mut self, what: &str, machines: &[(&str, &str)]) {
        let all: Vec<(&str, &str)> = machines.iter().copied().chain([("other", "host-1")]).collect();
        let Self { home, slots, spares } = self;
        wait_until(what, || {
            let idle =
                manager_status(home).is_some_and(|status| status["under_way"] == 0 && status["queued"] == 0);
            let seen = slots.read();
            let used: BTreeSet<_> = seen
                .iter()
                .filter_map(|seen| Some((seen.slot.vm.as_deref()?, seen.host.as_str(), seen.slot.state)))
                .collect();
            let wanted = all.iter().map(|(vm, host)| (*vm, *host, SlotState::Running)).collect();
            let used_slots = seen.iter().filter(|seen| seen.slot.vm.is_some()).count();
            idle && used == wanted && used_slots == all.len()
        });
        let seen = slots.read();
        assert_eq!(guids(&seen).len(), seen.len(), "{what}: a GUID is in two slots: {seen:?}");
        if seen.iter().any(|seen| seen.slot.state == SlotState::Free) {
            assert_eq!(guids(&seen), *spares, "{what}: identities are lost or new");
        }
        for (vm, host) in all {
            let port = listed(home, vm).unwrap();
            assert_eq!(
                (&port["vm_state"], &port["system_name"]),
                (&"running".into(), &host.into()),
                "{what}"
            );
        }
        home.weft(&["check", "--wait", "30"]).succeeds();
    }
}

/// The manager has been killed by itself.
#[track_caller]
fn died(mut manager: Running, record: &str) {
    wait_until(record, || !manager.is_running());
    assert_eq!(manager.end().signal(), Some(9), "after {record}");
}

#[track_caller]
fn each_step_of_a_move(lids: &str, options: &[&str]) {
    let mut site = Site::new(lids);
    let address = site.address("web");
    let mut at = "host-0";
    for (record, goes_on) in STEPS {
        let to = if at == "host-0" { "host-3" } else { "host-0" };
        let command: Vec<&str> =
            ["vm", "migrate", "web", to].into_iter().chain(options.iter().copied()).collect();
        site.dies_after(record, &command);
        at = if goes_on { to } else { at };
        site.settles(&format!("a death after {record}"), &[("web", at)]);
        assert_eq!(site.address("web"), address, "after {record}");
    }
    site.home.weft(&["down"]).succeeds();
}

#[test]
fn each_step_of_a_hot_move_with_dynamic_lids() {
    each_step_of_a_move("dynamic", &[]);
}

#[test]
fn each_step_of_a_hot_move_with_prepopulated_lids() {
    each_step_of_a_move("prepopulated", &["--stop-copy", "50"]);
}

#[test]
fn each_step_of_a_cold_move() {
    each_step_of_a_move("dynamic", &["--cold"]);
}

/// A first manager dies when the machine's rows are about to be moved. The second one takes that back, and dies on each step of the way.
#[test]
fn each_step_of_the_way_back() {
    let mut site = Site::new("dynamic");
    let address = site.address("web");
    for record in ["undo", "back", "resume", "undone"] {
        let first = site.doomed("reroute");
        site.is_ready();
        let client = Running::start(&site.home, &["vm", "migrate", "web", "host-3"]);
        died(first, "reroute");
        assert!(!client.end().success());
        died(site.doomed(record), record);
        site.restart();
        site.settles(&format!("a death after {record}"), &[("web", "host-0")]);
        assert_eq!(site.address("web"), address, "after {record}");
    }
    // The same with a third manager, which dies further on.
    for record in ["reroute", "undo", "back", "resume"] {
        let manager = site.doomed(record);
        if record == "reroute" {
            site.is_ready();
            Running::start(&site.home, &["vm", "migrate", "web", "host-3"]).end();
        }
        died(manager, record);
    }
    site.restart();
    site.settles("four deaths in a row", &[("web", "host-0")]);
    assert_eq!(site.address("web"), address);
    site.home.weft(&["down"]).succeeds();
}

#[test]
fn each_step_of_a_creation_and_of_an_end() {
    let mut site = Site::new("dynamic");
    let web = ("web", "host-0");
    site.dies_after("create", &["vm", "create", "new", "--host", "host-2"]);
    site.settles("a machine that was not started is gone", &[web]);
    // The second manager gives the machine up, and dies before its slot is cleared.
    let manager = site.doomed("create");
    site.is_ready();
    Running::start(&site.home, &["vm", "create", "new", "--host", "host-2"]).end();
    died(manager, "create");
    died(site.doomed("forgotten"), "forgotten");
    site.restart();
    site.settles("a machine that was given up is gone", &[web]);
    for record in ["created", "has-lid"] {
        site.dies_after(record, &["vm", "create", "new", "--host", "host-2"]);
        site.settles(&format!("a death after {record}"), &[web, ("new", "host-2")]);
        let end = if record == "created" { "destroy" } else { "gone" };
        site.dies_after(end, &["vm", "destroy", "new"]);
        site.settles(&format!("a death after {end}"), &[web]);
        assert_eq!(listed(&site.home, "new"), None, "after {end}");
    }
    site.home.weft(&["down"]).succeeds();
}

#[test]
fn the_steps_of_a_loss_and_of_a_manager_that_begins() {
    let mut site = Site::new("dynamic");
    let web = ("web", "host-0");
    died(site.doomed("started"), "started");
    site.restart();
    site.settles("a death at the beginning", &[web]);
    site.home.weft(&["vm", "create", "new", "--host", "host-2"]).succeeds();
    let manager = site.doomed("lost");
    site.is_ready();
    site.home.weft(&["fault", "kill", "host-2"]).succeeds();
    died(manager, "lost");
    site.home.weft(&["fault", "restart", "host-2"]).succeeds();
    site.restart();
    assert_eq!(state(&site.home, "new"), "lost");
    site.dies_after("gone", &["vm", "forget", "new"]);
    site.settles("a death when a lost machine is off the list", &[web]);
    assert_eq!(listed(&site.home, "new"), None);
    site.home.weft(&["down"]).succeeds();
}

/// A host stops while its machine is away on a move that is to be taken back. The machine stays frozen and in doubt, and its identity is its
/// own until someone gives it up.
#[test]
fn a_machine_in_doubt_is_given_up_by_force_alone() {
    let mut site = Site::new("dynamic");
    let web = ("web", "host-0");
    let create = ["vm", "create", "new", "--host", "host-2"];
    site.home.weft(&create).succeeds();
    let (_, guid) = site.address("new");
    let guid = format!("0x{}", guid.as_str().unwrap());
    let (agent, processes) = (site.slots.agent("host-2"), site.home.processes());
    let pid = processes.iter().find(|(name, _)| *name == agent).unwrap().1;
    let first = site.doomed("import");
    site.is_ready();
    Running::start(&site.home, &["vm", "migrate", "new", "host-3"]).end();
    died(first, "import");
    signal(pid, Signal::STOP);
    let second = site.doomed("forgotten");
    let home = &site.home;
    wait_until("the second manager begins", || manager_status(home).is_some());
    let doubt = "it is frozen (resume), and host `host-2` cannot be reached";
    wait_until(doubt, || listed(home, "new").unwrap()["detail"] == doubt);
    assert_eq!(state(home, "new"), "in doubt");
    home.weft(&["vm", "forget", "new"]).fails(1, "--force");
    home.weft(&["vm", "destroy", "new"]).fails(1, "`new` is busy");
    let again = |host| ["vm", "create", "again", "--host", host, "--guid", &guid];
    home.weft(&again("host-1")).fails(1, "in use by `new`");
    assert_ne!(home.weft(&["vm", "forget", "new", "--force"]).code, 0, "the manager dies of it");
    died(second, "forgotten");
    home.weft(&["fault", "restart", "vmm"]).succeeds();
    wait_until("the third manager begins", || manager_status(home).is_some());
    assert_eq!(listed(home, "new"), None);
    home.weft(&again("host-1")).succeeds();
    signal(pid, Signal::CONT);
    site.settles("what is left on the host is cleared", &[web, ("again", "host-1")]);
    assert_eq!(site.address("again").1, guid.trim_start_matches("0x"));
    site.home.weft(&["down"]).succeeds();
}

/// A manager without its journal adopts what runs, and dies after the first machine or slot that it writes down.
#[track_caller]
fn each_step_of_an_adoption(lids: &str, record: &str) {
    let mut site = Site::new(lids);
    site.home.weft(&["vm", "migrate", "web", "host-3"]).succeeds();
    let address = site.address("web");
    site.home.weft(&["fault", "kill", "vmm"]).succeeds();
    std::fs::remove_file(site.home.lab("default").join("vms.journal")).unwrap();
    died(site.doomed(record), record);
    site.restart();
    site.settles(&format!("a death after {record}"), &[("web", "host-3")]);
    assert_eq!(site.address("web"), address);
    site.home.weft(&["down"]).succeeds();
}

#[test]
fn a_machine_that_is_adopted() {
    each_step_of_an_adoption("dynamic", "vm");
}

#[test]
fn an_identity_of_a_free_slot_that_is_learnt() {
    each_step_of_an_adoption("prepopulated", "spare");
}
