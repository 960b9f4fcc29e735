//! What the launcher says when a laboratory does not come up.

use super::super::progress::{Count, Phase};
use super::Launcher;
use crate::failure::Failure;
use crate::lab::names::{IBSIM, PM, SM};

impl Launcher<'_> {
    pub(super) fn who(&self, name: &str) -> String {
        if name == SM {
            return "the subnet manager".into();
        }
        if name == PM {
            return "the performance manager".into();
        }
        if name == IBSIM {
            return "the server for ibsim's programs".into();
        }
        let agent = self.record.agents.iter().find(|agent| agent.name == name);
        match agent.and_then(|agent| agent.devices.first()) {
            Some(device) => format!("the agent {name} (`{}`)", device.label),
            None => format!("the agent {name}"),
        }
    }

    /// Says what has not come.
    pub(super) fn stuck(&self) -> Failure {
        let seconds = self.goal.patience.as_secs();
        let unfinished = Phase::ALL.into_iter().find(|phase| self.phases.finished(*phase).is_none());
        let phase = unfinished.unwrap_or(Phase::PortsActive);
        let Count { done, total } = self.phases.count(phase);
        let missing: Vec<String> = match phase {
            Phase::AgentsStarted => {
                let silent = |name: &&str| !self.ready.contains_key(*name);
                self.record
                    .agents
                    .iter()
                    .map(|agent| agent.name.as_str())
                    .filter(silent)
                    .map(|name| self.who(name))
                    .collect()
            }
            Phase::LinksUp => {
                let lacking = self.links.iter().filter(|(_, count)| count.done < count.total);
                lacking.map(|(name, _)| self.who(name)).collect()
            }
            _ => Vec::new(),
        };
        let mut names = missing.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
        if missing.len() > 3 {
            names += &format!(" and {} more", missing.len() - 3);
        }
        let waiting = if names.is_empty() { String::new() } else { format!("; waiting for {names}") };
        let option = if self.goal.keep.is_some() { " (--patience)" } else { "" };
        let phase = phase.name();
        Failure::new(format!("no progress for {seconds} s{option}: {phase} {done} of {total}{waiting}"))
    }
}
