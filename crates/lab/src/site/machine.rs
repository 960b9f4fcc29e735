//! Processes of this machine: whoever holds a process's lock is that process.

use std::fs;
use std::path::PathBuf;
use std::process::Child;
use std::time::Duration;

use anyhow::Context;
use weft_bundle::failure::Failure;
use weft_bundle::folder::bundle::Bundle;
use weft_bundle::folder::{self, LabFile, LabFolder};
use weft_bundle::identity::issue;
use weft_bundle::names::{HUB, OPENSM};
use weft_fault::{FaultId, Word};
use weft_process::lock::{ProcessLock, note_kill};

use crate::process::Holder;
use crate::site::frozen::{Frozen, for_how_long};
use crate::site::{LabProcess, Noted, Order};
use crate::{restart, teardown};

/// A laboratory's processes of this machine.
pub(super) struct Machine<'a> {
    pub(super) lab: &'a LabFolder,
}

impl Machine<'_> {
    pub(super) fn carry_out(
        &self,
        order: Order,
        process: &LabProcess,
        noted: Noted<'_>,
    ) -> anyhow::Result<Option<Child>> {
        match order {
            Order::Kill => self.kill(process, noted).map(|()| None),
            Order::Restart => self.restart(process, noted).map(Some),
            Order::Freeze(lasts) => self.freeze(process, lasts, noted),
            Order::Thaw => self.thaw(process, noted).map(|()| None),
        }
    }

    fn kill(&self, process: &LabProcess, noted: Noted<'_>) -> anyhow::Result<()> {
        let Some(holder) = self.holder(process)? else {
            // A hub that is about to start it again leaves it dead.
            let _ = note_kill(&self.lock(process));
            self.lab.say(&format!("{} is not running", process.what()));
            return Ok(());
        };
        noted(Word::Kill);
        teardown::kill(vec![holder])?;
        self.lab.say(&format!("killed {}", process.what()));
        Ok(())
    }

    fn restart(&self, process: &LabProcess, noted: Noted<'_>) -> anyhow::Result<Child> {
        if let Some(holder) = self.holder(process)? {
            noted(Word::Kill);
            teardown::kill(vec![holder])?;
        }
        noted(Word::Restart);
        let child = match process.verb {
            HUB => restart::start_hub(self.lab)?,
            verb => restart::start(self.lab, verb, &process.name)?,
        };
        self.lab.say(&format!("restarted {}", process.what()));
        Ok(child)
    }

    fn freeze(
        &self,
        process: &LabProcess,
        lasts: Option<Duration>,
        noted: Noted<'_>,
    ) -> anyhow::Result<Option<Child>> {
        if process.name == OPENSM {
            return Err(Failure::bad_input(
                "OpenSM is not frozen by weft, which stops only processes of its own",
            )
            .hint("`weft fault kill opensm` ends it")
            .into());
        }
        let Some(holder) = self.holder(process)? else { return Err(not_running(process).into()) };
        if let Some(frozen) = Frozen::of(self.lab, &process.name, &holder)? {
            return Err(Failure::new(format!("{} is frozen already (fault {})", process.what(), frozen.id))
                .hint(format!("`weft fault thaw {}` lets it go on", process.name))
                .into());
        }
        let (id, _) = next_fault(self.lab)?;
        noted(Word::Freeze);
        let waiting = Frozen::begin(self.lab, &process.name, &holder, (id.clone(), lasts))?;
        self.lab.say(&format!("froze {} (fault {id}{})", process.what(), for_how_long(lasts)));
        Ok(waiting)
    }

    fn thaw(&self, process: &LabProcess, noted: Noted<'_>) -> anyhow::Result<()> {
        let Some(holder) = self.holder(process)? else { return Err(not_running(process).into()) };
        Frozen::end(self.lab, &process.name, &holder)?;
        noted(Word::Thaw);
        Frozen::dismiss(self.lab, &process.name)?;
        self.lab.say(&format!("{} goes on", process.what()));
        Ok(())
    }

    fn lock(&self, process: &LabProcess) -> PathBuf {
        self.lab.locks().join(&process.name)
    }

    pub(super) fn holder(&self, process: &LabProcess) -> anyhow::Result<Option<Holder>> {
        Holder::of(&self.lock(process))
    }
}

/// The next name of a fault, and the number in it.
pub(super) fn next_fault(lab: &LabFolder) -> anyhow::Result<(FaultId, u32)> {
    let _turn = ProcessLock::wait(&lab.place(LabFile::FaultLock))?;
    let path = lab.place(LabFile::FaultCount);
    let count = match fs::read_to_string(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
        text => text.with_context(|| format!("cannot read {}", path.display()))?.trim().parse().unwrap_or(0),
    };
    let next: u32 = 1 + count;
    folder::replace(&path, format!("{next}\n").as_bytes())?;
    Ok((format!("f{next}").parse()?, next))
}

fn not_running(process: &LabProcess) -> Failure {
    Failure::new(format!("{} is not running", process.what()))
        .hint(format!("`weft fault restart {}` starts it", process.name))
}

/// Copies identities from the bundle in which they were issued to another.
pub(super) fn copy_identities(from: &Bundle, to: &Bundle, names: &[String]) -> anyhow::Result<()> {
    let place = |bundle: &Bundle| bundle.path().canonicalize().ok();
    if place(from) == place(to) {
        return Ok(());
    }
    names.iter().try_for_each(|name| {
        let issued = issue::read(from, &from.identity(name))?;
        folder::replace(&to.identity(name), issued.pem().as_bytes())
    })
}

/// Waits for the end of a fault's time, and lets the process of this machine go on then that it froze.
///
/// # Errors
/// When the process's lock, or the file that tells of the fault, cannot be used.
pub fn thaw_when_over(lab: &LabFolder, process: &str, id: &FaultId, noted: Noted<'_>) -> anyhow::Result<()> {
    let Some(holder) = Holder::of(&lab.locks().join(process))? else { return Ok(()) };
    if Frozen::wait_for_end(lab, process, &holder, id)? {
        Frozen::end(lab, process, &holder)?;
        noted(Word::Thaw);
    }
    Ok(())
}
