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

/// A process of this machine, and who hears what is done to it.
pub(super) struct Machine<'a> {
    pub(super) lab: &'a LabFolder,
    pub(super) process: &'a LabProcess,
    pub(super) noted: Noted<'a>,
}

impl Machine<'_> {
    pub(super) fn carry_out(&self, order: Order) -> anyhow::Result<Option<Child>> {
        match order {
            Order::Kill => self.kill().map(|()| None),
            Order::Restart => self.restart().map(Some),
            Order::Freeze(lasts) => self.freeze(lasts),
            Order::Thaw => self.thaw().map(|()| None),
        }
    }

    fn kill(&self) -> anyhow::Result<()> {
        let Some(holder) = self.holder()? else {
            // A hub that is about to start it again leaves it dead.
            let _ = note_kill(&self.lock());
            self.lab.say(&format!("{} is not running", self.process.what()));
            return Ok(());
        };
        (self.noted)(Word::Kill);
        teardown::kill(vec![holder])?;
        self.lab.say(&format!("killed {}", self.process.what()));
        Ok(())
    }

    fn restart(&self) -> anyhow::Result<Child> {
        if let Some(holder) = self.holder()? {
            (self.noted)(Word::Kill);
            teardown::kill(vec![holder])?;
        }
        (self.noted)(Word::Restart);
        let child = match self.process.verb {
            HUB => restart::start_hub(self.lab)?,
            verb => restart::start(self.lab, verb, &self.process.name)?,
        };
        self.lab.say(&format!("restarted {}", self.process.what()));
        Ok(child)
    }

    fn freeze(&self, lasts: Option<Duration>) -> anyhow::Result<Option<Child>> {
        if self.process.name == OPENSM {
            return Err(Failure::bad_input(
                "OpenSM is not frozen by weft, which stops only processes of its own",
            )
            .hint("`weft fault kill opensm` ends it"));
        }
        let Some(holder) = self.holder()? else { return Err(self.not_running()) };
        if let Some(frozen) = Frozen::of(self.lab, &self.process.name, &holder)? {
            let message = format!("{} is frozen already (fault {})", self.process.what(), frozen.id);
            return Err(
                Failure::new(message).hint(format!("`weft fault thaw {}` lets it go on", self.process.name))
            );
        }
        let (id, _) = next_fault(self.lab)?;
        (self.noted)(Word::Freeze);
        let waiting = Frozen::begin(self.lab, &self.process.name, &holder, id.clone(), lasts)?;
        self.lab.say(&format!("froze {} (fault {id}{})", self.process.what(), for_how_long(lasts)));
        Ok(waiting)
    }

    fn thaw(&self) -> anyhow::Result<()> {
        let Some(holder) = self.holder()? else { return Err(self.not_running()) };
        Frozen::end(self.lab, &self.process.name, &holder)?;
        (self.noted)(Word::Thaw);
        Frozen::dismiss(self.lab, &self.process.name)?;
        self.lab.say(&format!("{} goes on", self.process.what()));
        Ok(())
    }

    fn lock(&self) -> PathBuf {
        self.lab.locks().join(&self.process.name)
    }

    pub(super) fn holder(&self) -> anyhow::Result<Option<Holder>> {
        Holder::of(&self.lock())
    }

    fn not_running(&self) -> anyhow::Error {
        Failure::new(format!("{} is not running", self.process.what()))
            .hint(format!("`weft fault restart {}` starts it", self.process.name))
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
