//! Diagnosis of a laboratory that does not come up.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use weft_bundle::failure::Failure;
use weft_bundle::names::{IBSIM, what};
use weft_control::hub::{ProcessLine, ProcessState};
use weft_control::process::ProcessKind;

use crate::launch::{Launcher, process};
use crate::progress::{Count, StartPhase};
use crate::site::status::lab_status;

impl Launcher<'_> {
    pub(crate) fn who(&self, name: &str) -> String {
        if name == IBSIM {
            return "the server for ibsim's programs".into();
        }
        if let Some(what) = what(name) {
            return what;
        }
        let agent = self.record.agents.iter().find(|agent| agent.name == name);
        match agent.and_then(|agent| agent.devices.first()) {
            Some(device) => format!("the agent {name} (`{}`)", device.label),
            None => format!("the agent {name}"),
        }
    }

    pub(crate) fn is_standby(&self, name: &str) -> bool {
        let mut managers = self.record.subnet_managers();
        managers.any(|(own, _)| own == name) && self.record.leaders().all(|(own, _)| own != name)
    }

    /// How a process ended that should not have.
    pub(crate) fn ended(&self, name: &str, code: Option<i32>, signal: Option<i32>) -> Failure {
        let who = self.who(name);
        let last = process::last_words(&self.lab.log(name));
        if let Some(reason) = last.strip_prefix("error: ") {
            return Failure::new(format!("{who} failed: {reason}"));
        }
        let status = signal.or(code.map(|code| code << 8)).map(ExitStatus::from_raw);
        let with = status.map_or_else(String::new, |status| format!(" with {status}"));
        Failure::new(format!("{who} ended{with}: {last}"))
    }

    /// Says what has not come.
    pub(crate) fn stuck(&self) -> Failure {
        let seconds = self.goal.patience.as_secs();
        let unfinished = StartPhase::ALL.into_iter().find(|phase| self.phases.finished(*phase).is_none());
        let option = if self.goal.keep.is_some() { " (--patience)" } else { "" };
        let waits = self.phases.finished(StartPhase::LinksUp).is_some();
        if let Some(name) = waits.then(|| self.opensm_that_waits()).flatten() {
            let (who, last) = (self.who(&name), process::last_words(&self.lab.log(&name)));
            return Failure::new(format!(
                "no progress for {seconds} s{option}: {who} has not brought the subnet up; the last line of its log: {last}"
            ));
        }
        let phase = unfinished.unwrap_or(StartPhase::PortsActive);
        let Count { done, total } = self.phases.count(phase);
        let missing: Vec<String> = match phase {
            StartPhase::AgentsStarted => self.agents(|line| line.state != ProcessState::Ready),
            StartPhase::LinksUp => self.agents(|line| line.links.is_some_and(|links| links.up < links.total)),
            _ => Vec::new(),
        };
        let mut names = missing.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
        if missing.len() > 3 {
            names += &format!(" and {} more", missing.len() - 3);
        }
        let waiting = if names.is_empty() { String::new() } else { format!("; waiting for {names}") };
        let phase = phase.name();
        Failure::new(format!("no progress for {seconds} s{option}: {phase} {done} of {total}{waiting}"))
    }

    /// An OpenSM that has not brought its subnet up, if OpenSM manages any.
    fn opensm_that_waits(&self) -> Option<String> {
        let first = self.record.opensms.first()?;
        let mut lines = self.lines();
        lines.retain(|line| line.kind == Some(ProcessKind::Opensm) && line.state != ProcessState::Ready);
        Some(lines.first().map_or(&first.name, |line| &line.name).clone())
    }

    /// The agents of which the hub knows that.
    fn agents(&self, is_wanted: impl Fn(&ProcessLine) -> bool) -> Vec<String> {
        let lines = self.lines().into_iter();
        let agents = lines.filter(|line| line.kind == Some(ProcessKind::Agent) && is_wanted(line));
        agents.map(|line| self.who(&line.name)).collect()
    }

    /// What the hub knows of all processes; nothing if it does not answer.
    fn lines(&self) -> Vec<ProcessLine> {
        lab_status(self.lab).map(|status| status.processes).unwrap_or_default()
    }
}
