//! Conditions that hold when every fault has ended.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use weft_control::vm::SlotState;

use super::Schedule;
use crate::common::machines::{guids, manager_status};
use crate::common::{Home, signal};
use crate::counts::Counts;

/// How long everything may take to come to rest. Clients wait for 120 s at most.
const PATIENCE: Duration = Duration::from_secs(150);

/// Rows that switches hold as the log has them, in counts.
pub(crate) const ROWS: &str = "rows compared";

/// Events of a report.
const EVENTS_SHOWN: usize = 80;

/// The ways between physical ports, hop by hop.
#[derive(PartialEq)]
pub(super) struct Paths(Vec<Value>);

impl Paths {
    pub(super) fn of(home: &Home, hosts: &[String]) -> Self {
        let pairs = hosts.iter().flat_map(|from| hosts.iter().map(move |to| (from, to)));
        let hops = |(from, to): (&String, &String)| home.json(&["trace", from, to, "--json"])["hops"].clone();
        Self(pairs.filter(|(from, to)| from != to).map(hops).collect())
    }
}

impl Schedule {
    /// Waits until nothing is under way, and judges what there is.
    pub(crate) fn rest(&mut self) {
        let until = Instant::now() + PATIENCE;
        let rests = |one: &mut Self| one.settled().and_then(|()| one.right());
        while self.wrong.is_none() {
            self.look();
            match rests(self) {
                Ok(()) => break,
                Err(wrong) if Instant::now() > until => self.wrong = Some(wrong),
                Err(_) => {}
            }
        }
        self.wrong = self.wrong.take().or_else(|| self.fabric_is_right().err());
    }

    /// Whether no one waits for anything.
    fn settled(&mut self) -> Result<(), String> {
        let waits =
            self.clients.iter_mut().filter_map(|client| client.running.is_running().then_some(&client.vm));
        if let Some(vm) = waits.last() {
            return Err(format!("a client waits for {vm}"));
        }
        let status = manager_status(&self.home).ok_or("the VM manager does not answer")?;
        let idle =
            status["under_way"] == 0 && status["queued"] == 0 && status["hosts_ready"] == status["hosts"];
        if idle { Ok(()) } else { Err(format!("something is under way: {status}")) }
    }

    /// Whether machines are where they are listed, once, and those that are lost died with their hosts.
    fn right(&mut self) -> Result<(), String> {
        let list = self.home.json(&["vm", "ls", "--json"]);
        let (mut used, slots) = (BTreeMap::new(), self.slots.read());
        let there = guids(&slots);
        if there.len() < slots.len() || self.identities.as_ref().is_some_and(|all| *all != there) {
            return Err(format!("GUIDs are in two slots or in none: {slots:?}"));
        }
        for seen in slots {
            let Some(vm) = &seen.slot.vm else { continue };
            if seen.slot.state != SlotState::Running || used.contains_key(vm) {
                return Err(format!("`{vm}` is not in one slot, and runs: {seen:?}, {used:?}"));
            }
            used.insert(vm.clone(), seen);
        }
        let (mut lids, mut known) = (BTreeSet::new(), BTreeSet::new());
        for port in list.as_array().unwrap() {
            let vm = port["vm"].as_str().unwrap().to_owned();
            match (port["vm_state"].as_str().unwrap(), used.remove(&vm)) {
                ("running", Some(seen)) => {
                    let lid = &port["virtual_port_lid"];
                    let is_there = port["system_name"] == seen.host.as_str() && *lid == seen.slot.lid.0;
                    if !is_there || *lid == 0 || !lids.insert(seen.slot.lid) {
                        return Err(format!("it has no LID of its own, or is elsewhere: {port}, {seen:?}"));
                    }
                }
                ("lost", None) => {
                    let proof = port["detail"].as_str().unwrap();
                    if !self.killed.iter().any(|host| proof.contains(host.as_str())) {
                        return Err(format!("no proof that it died: {port}, killed: {:?}", self.killed));
                    }
                }
                (_, seen) => return Err(format!("at rest: {port}, {seen:?}")),
            }
            known.insert(vm);
        }
        match used.into_iter().next() {
            Some((vm, seen)) => Err(format!("`{vm}` is not listed: {seen:?}")),
            None => self.promises(&known),
        }
    }

    /// A machine that its client knows to run is listed, unless someone asked to end it.
    fn promises(&mut self, known: &BTreeSet<String>) -> Result<(), String> {
        let mut created = Vec::new();
        for client in std::mem::take(&mut self.clients) {
            created.extend((client.running.end().success() && client.creates).then_some(client.vm));
        }
        self.promised.extend(created);
        match self.promised.iter().find(|vm| !known.contains(*vm) && !self.unwanted.contains(*vm)) {
            Some(vm) => Err(format!("`{vm}` was created, no one asked to end it, and it is not listed")),
            None => Ok(()),
        }
    }

    /// LIDs are unique, tables lead everywhere, for physical ports they are those of the fresh start, and all rows are the log's.
    ///
    /// A subnet manager that has repaired keeps tables that are as good; those of the engine come with a sweep that is ordered.
    fn fabric_is_right(&mut self) -> Result<(), String> {
        self.check()?;
        self.rows_are_the_logs("the last fault")?;
        let sweeps = self.sweeps_at_rest()?;
        let sm = self.home.processes().into_iter().find(|(name, _)| name == "sm").unwrap().1;
        signal(sm, Signal::HUP);
        let until = Instant::now() + PATIENCE;
        while self.resting() <= Some(sweeps) || Paths::of(&self.home, &self.hosts) != self.fresh {
            if Instant::now() > until {
                return Err("ways between physical ports are not those of the fresh start".to_owned());
            }
        }
        self.check()?;
        self.rows_are_the_logs("an ordered sweep")?;
        self.lids_are_unique()?;
        self.kill("sm");
        self.mend("restart", "sm");
        self.check()?;
        self.rows_are_the_logs("a new manager")
    }

    fn lids_are_unique(&self) -> Result<(), String> {
        let links = self.home.json(&["links", "--json"]);
        let ends = links.as_array().unwrap().iter().flat_map(|link| [&link["a"], &link["b"]]);
        let mut owners = BTreeMap::new();
        let owner = |end: &Value| {
            let name = end["node"].as_str().unwrap();
            // A vSwitch may have the LID of its host.
            let host = name.strip_suffix(" vSwitch").unwrap_or(name).to_owned();
            Some(host)
                .filter(|host| self.shares_lids && self.hosts.contains(host))
                .unwrap_or_else(|| end["guid"].to_string())
        };
        for end in ends {
            let (lid, guid) = (end["lid"].as_u64().unwrap(), owner(end));
            if lid > 0 && owners.insert(lid, guid.clone()).is_some_and(|other| other != guid) {
                return Err(format!("LID {lid} is given twice"));
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        let check = self.home.weft(&["check", "--wait", "30"]);
        let said = format!("weft check: {}{}", check.stdout, check.stderr);
        if check.code == 0 { Ok(()) } else { Err(said) }
    }

    /// What happened, and what is wrong with it.
    pub(crate) fn report(self) -> Result<Counts, String> {
        let events = self.home.weft(&["events", "--fields"]).stdout;
        let count = |words: &str| events.lines().filter(|line| line.contains(words)).count() as u64;
        let Some(wrong) = &self.wrong else {
            let deaths = self.log.iter().filter(|line| *line == "fault kill sm").count() as u64;
            return Ok(Counts::from([
                ("steps", self.log.len() as u64),
                ("looks at all slots", self.samples),
                ("moves done", count("step=done")),
                ("moves undone", count("step=undone")),
                ("machines lost", count("vm-lost")),
                ("switches killed", self.switches_killed.len() as u64),
                ("plans and repairs replayed", self.rows.replayed()),
                ("managers whose logs were replayed", 1 + deaths),
                (ROWS, self.rows.rows),
            ]));
        };
        let matters = |line: &&str| [" vm-", "fault", "process-"].iter().any(|kind| line.contains(kind));
        let told: Vec<&str> = events.lines().filter(matters).collect();
        let last = told[told.len().saturating_sub(EVENTS_SHOWN)..].join("\n  ");
        let list = self.home.weft(&["vm", "ls"]).stdout;
        Err(format!("{wrong}\n{}\n{list}\n  {last}\n", self.log.join("\n")))
    }
}
