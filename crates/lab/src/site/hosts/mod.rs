//! Hosts that ssh reaches, without containers: each host's share is a laboratory of its own there, with a hub that starts and restarts
//! its processes; a hub here watches all processes over the network, and verbs ask it.
//!
//! ```text
//!   weft up --hosts a,b ──ssh──▶ a: weft up --part a -      hub, a0000 …, sm
//!          │            ──ssh──▶ b: weft up --part b -      hub, a0004 …
//!       weft hub ◀══ QUIC ══▶ agents and managers of a and b
//! ```

mod errand;
mod identities;
mod ssh;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use weft_bundle::failure::Failure;
use weft_bundle::folder::{self, LabFile, LabFolder};
use weft_bundle::record::LabRecord;
use weft_fault::Word;

use crate::site::status::pids;
use crate::site::{LabProcess, Noted, Order, host_of};
use errand::run_on;

pub use identities::take;
pub use ssh::Ssh;

pub(crate) use errand::{ended_on, silent, wait_for_one};
pub(super) use identities::hand_over;
pub(crate) use ssh::Running;

/// `hosts.json`: where the processes of a laboratory run that was started from here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Shares {
    /// How hosts are reached.
    pub(crate) ssh: Ssh,
    /// The hosts.
    pub(crate) hosts: Vec<String>,
}

impl Shares {
    /// Those that a laboratory is planned with.
    pub(crate) fn planned(ssh: Ssh, record: &LabRecord) -> Self {
        Self { ssh, hosts: record.hosts() }
    }

    /// Of a laboratory; `None` where it has no share on another host.
    pub(crate) fn load(lab: &LabFolder) -> anyhow::Result<Option<Self>> {
        let path = lab.place(LabFile::Hosts);
        let Some(text) = weft_bundle::input::read_if_any(&path)? else { return Ok(None) };
        serde_json::from_slice(&text).map(Some).with_context(|| format!("{} is invalid", path.display()))
    }

    pub(crate) fn store(&self, lab: &LabFolder) -> anyhow::Result<()> {
        folder::replace(&lab.place(LabFile::Hosts), &serde_json::to_vec_pretty(self)?)
    }

    /// Has weft on the host of a process do it.
    pub(super) fn carry_out(
        &self,
        lab: &LabFolder,
        order: Order,
        process: &LabProcess,
        noted: Noted<'_>,
    ) -> anyhow::Result<()> {
        let record = LabRecord::load(lab)?;
        let host =
            host_of(&record, &process.name).with_context(|| format!("`{}` has no host", process.given))?;
        let (word, done, lasts) = match order {
            Order::Kill => (Word::Kill, "killed", None),
            Order::Restart => (Word::Restart, "restarted", None),
            Order::Freeze(lasts) => (Word::Freeze, "froze", lasts),
            Order::Thaw => (Word::Thaw, "thawed", None),
        };
        let lasts = lasts.map(|lasts| format!("--for={}ms", lasts.as_millis()));
        let line = ["--lab", lab.name(), "fault", word.name()];
        let line: Vec<&str> =
            line.into_iter().chain(lasts.as_deref()).chain(["--", &process.given]).collect();
        run_on(self, &host, &line, &[])?;
        // A host that cannot be reached has no fault.
        noted(word);
        lab.say(&format!("{done} {} on {host}", process.what()));
        Ok(())
    }

    /// Takes down what runs on the hosts, and returns those where nothing is left. As long as something is, the laboratory stays known
    /// here.
    pub(super) fn end(&self, lab: &LabFolder, forget: bool) -> anyhow::Result<Vec<String>> {
        let name = lab.name();
        let left = ended_on(self, name, &self.hosts)?;
        let is_left = |host: &&String| left.iter().any(|(other, _)| other == *host);
        let ended = self.hosts.iter().filter(|host| !is_left(host)).cloned().collect();
        let Some((host, why)) = left.first() else { return Ok(ended) };
        for (host, why) in left.iter().skip(usize::from(!forget)) {
            lab.say(&format!("warning: what runs on {host} is left: {why}"));
        }
        if forget {
            return Ok(ended);
        }
        let others = if left.len() > 1 { format!(" and {} more", left.len() - 1) } else { String::new() };
        Err(Failure::new(format!("`{name}` runs on, on {host}{others}: {why}"))
            .hint(format!(
                "`weft down --lab {name}` tries again; `weft down --lab {name} --forget` leaves the host alone, where \
                 `weft down --lab {name}` ends what runs"
            )))
    }
}

/// The laboratory as its verbs see it: with the processes that run, where that is on other hosts.
pub(crate) fn entered(lab: LabFolder) -> anyhow::Result<LabFolder> {
    if Shares::load(&lab)?.is_none() {
        return Ok(lab);
    }
    let pids = pids(&lab)?.ok_or_else(|| {
        Failure::new(format!("the hub of `{}` does not answer, and only it reaches the hosts", lab.name()))
            .hint(format!("start another with `weft hub --detached --lab {}`", lab.name()))
    })?;
    Ok(lab.with_remote(pids))
}
