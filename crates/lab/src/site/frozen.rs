//! Processes that are frozen by SIGSTOP. A process that is frozen keeps nothing of it, and a hub may be frozen itself: so a file in
//! the laboratory's folder tells of it, and a process of its own ends it in time.

use std::fs;
use std::process::Child;
use std::time::Duration;

use anyhow::Context;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use weft_bundle::folder::{self, LabFolder};
use weft_control::Utc;
use weft_control::fault::FaultId;
use weft_process::lock::{LockError, ProcessLock};
use weft_process::{readable, utc_now};

use crate::process::{Holder, spawn_thaw};
use crate::site;

/// What the file tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frozen {
    /// The fault that froze it.
    pub id: FaultId,
    /// Since when.
    pub since: Utc,
    /// When it ends by itself.
    pub until: Option<Utc>,
    /// The process, and when the kernel started it, in ticks since the machine did: a number alone may come to name another one.
    pid: i32,
    started: u64,
}

impl Frozen {
    /// Which fault keeps a process frozen, if any does.
    pub fn of(lab: &LabFolder, process: &str, holder: &Holder) -> anyhow::Result<Option<Self>> {
        let path = lab.faults(process);
        let Some(text) = weft_bundle::input::read_if_any(&path)? else { return Ok(None) };
        let frozen: Self =
            serde_json::from_slice(&text).with_context(|| format!("cannot read {}", path.display()))?;
        // A process that was killed or started again is not the one that was frozen.
        let pid = holder.pid.as_raw_nonzero().get();
        Ok((frozen.pid == pid && started(pid) == Some(frozen.started)).then_some(frozen))
    }

    /// Which fault keeps a manager or the hub frozen. None is known of a remote one, as its file lies there.
    pub fn find(lab: &LabFolder, process: &str) -> anyhow::Result<Option<Self>> {
        if !site::of(lab)?.is_local(process) || !lab.faults(process).exists() {
            return Ok(None);
        }
        match Holder::of(&lab.locks().join(process))? {
            Some(holder) => Self::of(lab, process, &holder),
            None => Ok(None),
        }
    }

    /// The same, or `None` also where that cannot be found out.
    pub fn of_process(lab: &LabFolder, process: &str) -> Option<Self> {
        Self::find(lab, process).ok()?
    }

    /// What a process does not answer for.
    pub fn why(&self, process: &str) -> String {
        format!("fault {} keeps it frozen; `weft fault thaw {process}` lets it go on", self.id)
    }

    /// Stops a process. The returned child ends the fault in time; a caller that goes on for long waits for it.
    pub fn begin(
        lab: &LabFolder,
        process: &str,
        holder: &Holder,
        id: FaultId,
        lasts: Option<Duration>,
    ) -> anyhow::Result<Option<Child>> {
        let since = utc_now();
        let later = |lasts: Duration| since.less(-i64::try_from(lasts.as_nanos()).unwrap_or(i64::MAX));
        let pid = holder.pid.as_raw_nonzero().get();
        let started = started(pid).context("the process has ended")?;
        let frozen = Self { id, since, until: lasts.map(later), pid, started };
        // Written before it is done, so that nothing stays frozen without a name.
        folder::replace(&lab.faults(process), &serde_json::to_vec(&frozen)?)?;
        holder.signal(Signal::STOP)?;
        lasts.map(|_| spawn_thaw(lab, process, &frozen.id)).transpose()
    }

    /// Lets a process go on.
    pub fn end(lab: &LabFolder, process: &str, holder: &Holder) -> anyhow::Result<()> {
        folder::remove(&lab.faults(process))?;
        holder.signal(Signal::CONT)
    }

    /// Ends whoever waits for the end of a fault that has ended before.
    pub fn dismiss(lab: &LabFolder, process: &str) -> anyhow::Result<()> {
        Holder::of(&thaw_lock(lab, process))?.map_or(Ok(()), |waiting| waiting.signal(Signal::TERM))
    }

    /// Waits until a fault's time is over; false when the fault or the process has ended before.
    pub fn wait_for_end(
        lab: &LabFolder,
        process: &str,
        holder: &Holder,
        id: &FaultId,
    ) -> anyhow::Result<bool> {
        let path = thaw_lock(lab, process);
        folder::touch(&path)?;
        // `down` ends whoever holds a lock. One that waits for a fault before this one lets it go as it ends.
        let _lock = match ProcessLock::wait(&path) {
            Err(LockError::Removed { .. }) => return Ok(false),
            lock => lock?,
        };
        let lasts = |frozen: Option<Self>| frozen.filter(|frozen| frozen.id == *id);
        let Some(frozen) = lasts(Self::of(lab, process, holder)?) else { return Ok(false) };
        let Some(until) = frozen.until else { return Ok(false) };
        let left = Duration::from_nanos(until.as_nanos().saturating_sub(utc_now().as_nanos()));
        if readable(holder, Some(left))? {
            return Ok(false);
        }
        Ok(lasts(Self::of(lab, process, holder)?).is_some())
    }
}

/// How long a fault lasts, as it is shown behind its name.
pub(crate) fn for_how_long(lasts: Option<Duration>) -> String {
    lasts.map_or_else(String::new, |lasts| format!(", for {} s", (lasts.as_secs_f64() * 1e6).round() / 1e6))
}

fn thaw_lock(lab: &LabFolder, process: &str) -> std::path::PathBuf {
    lab.locks().join(format!("thaw-{process}"))
}

/// When the kernel started a process, in ticks; `None` when there is none of that number.
fn started(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in front may hold anything, a parenthesis too. Behind it the state is the third field, the start the 22nd.
    stat.rsplit_once(')')?.1.split_whitespace().nth(22 - 3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::started;

    #[test]
    fn the_start_of_a_process_is_its_own() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(started(own).unwrap() >= started(1).unwrap_or(0));
        assert_eq!(started(own), started(own));
        assert_eq!(started(i32::MAX), None);
    }
}
