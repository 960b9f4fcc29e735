//! A process's machine, and its start from a bundle.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};

use crate::folder::{self, LabFolder};
use crate::names::SM;

/// `run.json`: options of processes that are not in the bundle, as they name files of this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RunOptions {
    /// Where the first subnet manager keeps LIDs; in the run folder without it.
    pub guid2lid: Option<PathBuf>,
    /// Where it writes down what tables are computed from, if it does.
    pub history: Option<PathBuf>,
    /// The folder in which agents record what they are fed.
    pub record: Option<PathBuf>,
    /// The same of single agents, whatever the others do.
    pub record_of: BTreeMap<String, Option<PathBuf>>,
    /// Where managers answer over the network, by name.
    pub doors: BTreeMap<String, SocketAddr>,
}

impl RunOptions {
    /// The options of this run; the default where none were stored.
    pub fn load(lab: &LabFolder) -> anyhow::Result<Self> {
        let path = lab.run_options();
        let Some(text) = crate::input::read_if_any(&path)? else { return Ok(Self::default()) };
        serde_json::from_slice(&text).with_context(|| format!("{} is invalid", path.display()))
    }

    /// Keeps it for those who start processes again.
    pub fn store(&self, lab: &LabFolder) -> anyhow::Result<()> {
        folder::replace(&lab.run_options(), &serde_json::to_vec_pretty(self)?)
    }

    /// Has one agent record in a folder, or not.
    pub fn record_agent(&mut self, agent: &str, folder: Option<PathBuf>) {
        self.record_of.insert(agent.to_owned(), folder);
    }

    /// Where an agent records, if it does.
    pub fn recording_of(&self, agent: &str) -> Option<PathBuf> {
        let folder = self.record_of.get(agent).unwrap_or(&self.record).as_ref()?;
        Some(folder.join(format!("{agent}.rec")))
    }

    /// The arguments of a process.
    pub fn arguments(&self, lab: &LabFolder, verb: &str, name: &str) -> Vec<OsString> {
        let folder = lab.path().as_os_str();
        let mut arguments: Vec<OsString> =
            [verb, "--detached", "--as", name, "--bundle"].map(OsString::from).to_vec();
        arguments.extend([folder.to_owned(), "--run".into(), folder.to_owned()]);
        let files = match verb {
            crate::names::AGENT => vec![("--record", self.recording_of(name))],
            SM if name == SM => {
                vec![("--guid2lid", self.guid2lid.clone()), ("--history", self.history.clone())]
            }
            _ => Vec::new(),
        };
        if let Some(door) = self.doors.get(name) {
            arguments.extend(["--door".into(), door.to_string().into()]);
        }
        for (option, path) in files {
            arguments.extend(path.into_iter().flat_map(|path| [option.into(), path.into_os_string()]));
        }
        arguments
    }
}

/// A folder to record in: it is made if it is not there, and named from the root.
pub fn recordings(path: &Path) -> anyhow::Result<PathBuf> {
    std::fs::create_dir_all(path).with_context(|| format!("cannot make {}", path.display()))?;
    folder::absolute(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_agent_may_record_where_the_others_do_not() {
        let mut run = RunOptions::default();
        assert_eq!(run.recording_of("a0"), None);
        run.record_agent("a0", Some("/x".into()));
        assert_eq!(run.recording_of("a0"), Some("/x/a0.rec".into()));
        assert_eq!(run.recording_of("a1"), None);
        run.record = Some("/y".into());
        run.record_agent("a0", None);
        assert_eq!((run.recording_of("a0"), run.recording_of("a1")), (None, Some("/y/a1.rec".into())));
    }
}
