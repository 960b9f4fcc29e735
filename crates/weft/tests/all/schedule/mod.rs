//! One random schedule: what is drawn, and what is done to the laboratory.

mod balance;
mod judge;
mod rows;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use weft_machine::Random;
use weft_vm::Record;
use weft_wire::Guid;

use crate::common::machines::{Slots, guids};
use crate::common::{Home, Running, signal, text, wait_until};
use judge::Paths;
pub(crate) use judge::ROWS;
use rows::Log;

/// Names of machines, four of which run at first.
const VMS: u32 = 5;

/// Faults at once at most, so that moves go through between them.
const FAULTS_MAX: usize = 3;

/// How the subnet manager chooses the switches that it writes, and their order.
const METHODS: [&str; 4] = ["ftreeminrc", "itrc", "skyline", "full"];
const UPDATES: [&str; 4] = ["ordered", "ordered-late", "drop-first", "unordered"];

/// A command about a machine.
struct Client {
    vm: String,
    creates: bool,
    running: Running,
}

/// A laboratory, what is broken there, and who waits for an answer.
pub(crate) struct Schedule {
    home: Home,
    slots: Slots,
    hosts: Vec<String>,
    switches: Vec<String>,
    /// One end of each cable between agents.
    cables: Vec<String>,
    /// Whether vSwitches have the LIDs of physical functions.
    shares_lids: bool,
    fresh: Paths,
    /// The subnet managers' log.
    rows: Log,
    /// GUIDs of slots, where each has one from the start.
    identities: Option<BTreeSet<Guid>>,
    random: Random,
    /// A VM manager that dies at a step by name.
    doomed: Option<Running>,
    clients: Vec<Client>,
    /// Machines that their clients know to run.
    promised: BTreeSet<String>,
    /// Machines that someone asked to end.
    unwanted: BTreeSet<String>,
    /// Processes that are dead now.
    dead: BTreeSet<String>,
    stopped: BTreeMap<String, u32>,
    cut: BTreeSet<String>,
    /// Hosts whose agents have died at any time, and physical switches.
    killed: BTreeSet<String>,
    switches_killed: BTreeSet<String>,
    log: Vec<String>,
    wrong: Option<String>,
    samples: u64,
}

impl Schedule {
    pub(crate) fn new(seed: u64) -> Self {
        let home = Home::new();
        let file = home.small_tree();
        let lids = std::env::var("WEFT_LIDS").unwrap_or_else(|_| "dynamic".to_owned());
        let mut random = Random::of_purpose(seed, "laboratory");
        // Without a proof tables may have loops on the way; what they are at the end is as certain as ever.
        let [shares_lids, are_unproved] = [(); 2].map(|()| random.below(3) == 0);
        let mut options = vec!["--lids", &lids];
        options.extend(["--switch-lids", "shared"].into_iter().filter(|_| shares_lids));
        options.extend(["--unproved-moves", "true"].into_iter().filter(|_| are_unproved));
        let mut schedule = Self::on(home, &file, &options, seed);
        schedule.shares_lids = shares_lids;
        schedule.log.push(options.join(" "));
        schedule.home.weft(&["vm", "create", "vm", "--count", "4"]).succeeds();
        schedule.promised = (1..=4).map(|number| format!("vm-{number}")).collect();
        schedule
    }

    /// A laboratory without virtual machines.
    fn on(home: Home, file: &Path, options: &[&str], seed: u64) -> Self {
        let usual = ["--vfs", "2", "--packet-life-time", "14", "--history", rows::FILE];
        let up: Vec<&str> =
            ["up", text(file)].into_iter().chain(usual).chain(options.iter().copied()).collect();
        home.weft(&up).succeeds();
        let mut slots = Slots::of(&home).with_patience(Duration::from_millis(500));
        let identities = options.contains(&"prepopulated").then(|| guids(&slots.read()));
        let (hosts, fresh) = (slots.hosts(), Paths::of(&home, &slots.hosts()));
        Self {
            slots,
            hosts,
            fresh,
            rows: Log::of(&home),
            identities,
            switches: switches(&home),
            cables: cables(&home),
            shares_lids: false,
            home,
            random: Random::of_purpose(seed, "schedule"),
            doomed: None,
            clients: Vec::new(),
            promised: BTreeSet::new(),
            unwanted: BTreeSet::new(),
            dead: BTreeSet::new(),
            stopped: BTreeMap::new(),
            cut: BTreeSet::new(),
            killed: BTreeSet::new(),
            switches_killed: BTreeSet::new(),
            log: Vec::new(),
            wrong: None,
            samples: 0,
        }
    }

    /// Does something, and looks at the slots for a while.
    pub(crate) fn step(&mut self) {
        self.see_death();
        let is_calm = self.dead.len() + self.stopped.len() + self.cut.len() < FAULTS_MAX;
        match self.random.below(20) {
            0..2 => self.create(),
            2..10 => self.migrate(),
            10 => self.end_a_machine(),
            11..14 if is_calm => self.break_something(),
            14..16 if is_calm => self.doom(),
            _ => self.mend_something(),
        }
        let look = Duration::from_millis(u64::from(self.random.below(120)));
        self.look_for(look);
    }

    /// Looks at the slots again and again.
    fn look_for(&mut self, time: Duration) {
        let until = Instant::now() + time;
        loop {
            self.look();
            if Instant::now() >= until {
                return;
            }
        }
    }

    fn look(&mut self) {
        self.samples += 1;
        let twice = self.slots.twice();
        self.wrong = self.wrong.take().or(twice);
    }

    fn pick<T: Clone>(&mut self, all: &[T]) -> Option<T> {
        let count = u32::try_from(all.len()).unwrap();
        (count > 0).then(|| all[self.random.below(count) as usize].clone())
    }

    fn host(&mut self) -> String {
        self.pick(&self.hosts.clone()).unwrap()
    }

    fn vm(&mut self) -> String {
        format!("vm-{}", 1 + self.random.below(VMS))
    }

    /// Starts a command, and does not wait for it.
    fn ask(&mut self, vm: String, arguments: &[&str]) {
        self.log.push(arguments.join(" "));
        let (creates, running) = (arguments.contains(&"create"), Running::start(&self.home, arguments));
        self.clients.push(Client { vm, creates, running });
    }

    fn create(&mut self) {
        let (vm, host) = (self.vm(), self.host());
        self.ask(vm.clone(), &["vm", "create", &vm, "--host", &host]);
    }

    fn migrate(&mut self) {
        let (vm, host) = (self.vm(), self.host());
        let times: Vec<String> = (0..3).map(|_| self.random.below(100).to_string()).collect();
        let mut arguments = vec!["vm", "migrate", &vm, &host];
        match self.random.below(4) {
            0 => arguments.push("--cold"),
            _ => arguments.extend(["--pre-copy", &times[0], "--stop-copy", &times[1], "--resume", &times[2]]),
        }
        if self.random.below(2) == 0 {
            let (method, update) = (self.pick(&METHODS).unwrap(), self.pick(&UPDATES).unwrap());
            arguments.extend(["--method", method, "--update", update]);
        }
        self.ask(vm.clone(), &arguments);
    }

    fn end_a_machine(&mut self) {
        let vm = self.vm();
        self.unwanted.insert(vm.clone());
        match self.random.below(3) {
            0 => self.ask(vm.clone(), &["vm", "forget", &vm, "--force"]),
            _ => self.ask(vm.clone(), &["vm", "destroy", &vm]),
        }
    }

    fn fault(&mut self, word: &str, target: &str) {
        self.log.push(format!("fault {word} {target}"));
        self.home.weft(&["fault", word, target]).succeeds();
    }

    /// Cuts a cable or plugs it in, if an agent lives at one of its ends at least; whether it was done.
    fn cable_fault(&mut self, word: &str, cable: &str) -> bool {
        // Ends that live have to answer.
        self.continue_all();
        self.log.push(format!("fault {word} {cable}"));
        let done = self.home.weft(&["fault", word, cable]);
        if done.code != 0 && self.dead.len() >= 2 {
            done.fails(1, "the agents at both ends are not running");
            self.log.push("both ends are dead".to_owned());
            return false;
        }
        done.succeeds();
        true
    }

    fn break_something(&mut self) {
        match self.random.below(9) {
            0..2 => {
                let host = self.host();
                if !self.stopped.contains_key(&host) {
                    self.kill(&host);
                }
            }
            2 => self.kill("sm"),
            3..5 => self.kill("vmm"),
            5..7 => {
                let cable = self.pick(&self.cables.clone()).unwrap();
                if self.cable_fault("link-down", &cable) {
                    self.cut.insert(cable);
                }
            }
            7 => {
                let switch = self.pick(&self.switches.clone()).unwrap();
                self.kill(&switch);
            }
            _ => self.stop(),
        }
    }

    fn kill(&mut self, process: &str) {
        self.fault("kill", process);
        self.dead.insert(process.to_owned());
        if self.hosts.iter().any(|host| host == process) {
            self.killed.insert(process.to_owned());
        } else if self.switches.iter().any(|switch| switch == process) {
            self.switches_killed.insert(process.to_owned());
        }
    }

    /// A host that hangs cannot be reached.
    fn stop(&mut self) {
        let host = self.host();
        let agent = self.slots.agent(&host);
        let pid = self.home.processes().iter().find(|(name, _)| *name == agent).unwrap().1;
        if !self.dead.contains(&host) && !self.stopped.contains_key(&host) {
            self.log.push(format!("stop {host}"));
            signal(pid, Signal::STOP);
            self.stopped.insert(host, pid);
        }
    }

    /// Puts a VM manager in the place of the one that runs, which dies at a step by name.
    fn doom(&mut self) {
        let record = self.pick(&Record::NAMES).unwrap();
        self.kill("vmm");
        self.dead.remove("vmm");
        self.log.push(format!("vmm --die-after {record}"));
        let folder = self.home.lab("default");
        let folder = text(&folder);
        let arguments = ["vmm", "--bundle", folder, "--run", folder, "--as", "vmm", "--die-after", record];
        let mut manager = Running::start(&self.home, &arguments);
        // One that has not got to its lock yet could not be killed.
        wait_until("the manager that is to die runs, or has died", || {
            !manager.is_running()
                || self.home.processes().iter().any(|(name, pid)| name == "vmm" && *pid != 0)
        });
        self.doomed = Some(manager);
    }

    /// Whether the VM manager that was to die has done so.
    fn see_death(&mut self) {
        if self.doomed.as_mut().is_some_and(|manager| !manager.is_running()) {
            self.doomed = None;
            self.log.push("it has died".to_owned());
            self.dead.insert("vmm".to_owned());
        }
    }

    fn mend_something(&mut self) {
        // Without it nothing moves.
        if self.dead.contains("vmm") && self.random.below(2) == 0 {
            return self.mend("restart", "vmm");
        }
        let dead = self.dead.iter().map(|process| ("restart", process.clone()));
        let stopped = self.stopped.keys().map(|host| ("continue", host.clone()));
        let cut = self.cut.iter().map(|cable| ("link-up", cable.clone()));
        let all: Vec<(&str, String)> = dead.chain(stopped).chain(cut).collect();
        if let Some((word, what)) = self.pick(&all) {
            self.mend(word, &what);
        }
    }

    fn mend(&mut self, word: &str, what: &str) {
        match self.stopped.remove(what) {
            Some(pid) if word == "continue" => {
                self.log.push(format!("continue {what}"));
                signal(pid, Signal::CONT);
            }
            _ if word == "link-up" => {
                // A cable whose ends are both dead stays cut.
                if self.cable_fault(word, what) {
                    self.cut.remove(what);
                }
            }
            _ => self.fault(word, what),
        }
        self.dead.remove(what);
    }

    fn continue_all(&mut self) {
        while let Some((host, pid)) = self.stopped.pop_first() {
            self.log.push(format!("continue {host}"));
            signal(pid, Signal::CONT);
        }
    }

    /// Everything runs and is plugged in again.
    pub(crate) fn end_faults(&mut self) {
        self.continue_all();
        for cable in self.cut.clone() {
            self.mend("link-up", &cable);
        }
        let is_doomed = self.doomed.take().is_some();
        self.dead.extend(is_doomed.then(|| "vmm".to_owned()));
        for process in self.dead.clone() {
            self.mend("restart", &process);
        }
        // An agent that was dead when its cable was to be plugged in still has it unplugged.
        self.cut.clear();
        self.home.weft(&["fault", "clear", "--all"]).succeeds();
    }
}

/// The physical switches.
fn switches(home: &Home) -> Vec<String> {
    let links = home.json(&["links", "--json"]);
    let ends = links.as_array().unwrap().iter().flat_map(|link| [&link["a"], &link["b"]]);
    let names = ends.map(|end| end["node"].as_str().unwrap()).filter(|name| name.starts_with("switch-"));
    names.map(ToOwned::to_owned).collect::<BTreeSet<_>>().into_iter().collect()
}

/// One end of each cable between switches, and of those to hosts.
fn cables(home: &Home) -> Vec<String> {
    let links = home.json(&["links", "--json"]);
    let end = |end: &Value| format!("{}:{}", end["node"].as_str().unwrap(), end["port"]);
    let is_switch = |link: &&Value| {
        [&link["a"], &link["b"]].iter().any(|end| end["node"].as_str().unwrap().starts_with("switch-"))
    };
    let switch = |link: &Value| {
        let ends = [&link["a"], &link["b"]];
        ends.into_iter().find(|end| end["node"].as_str().unwrap().starts_with("switch-")).map(end).unwrap()
    };
    links.as_array().unwrap().iter().filter(is_switch).map(switch).collect()
}
