//! Faults that last: they outlive the agent's process, and end when a client clears them or their time is over.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use weft_control::fault::{BadIdentity, Damage, FaultId, LastingFault};
use weft_control::{Error, ErrorCode};
use weft_process::{Papers, utc_now};

use crate::kept;

/// The faults that last, and the file that keeps them for the agent's next life.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    file: Option<PathBuf>,
    /// By name, and by what is broken: both ends of a cable may be here.
    pub(crate) active: BTreeMap<(FaultId, Damage), LastingFault>,
    /// What the agent proves itself with.
    papers: Option<Arc<dyn Papers>>,
    /// What it presents instead now.
    presented: Option<BadIdentity>,
}

impl Faults {
    /// Faults that the agent's previous life left. An unreadable file is logged and means none.
    pub(crate) fn load(file: Option<&Path>, papers: Option<Arc<dyn Papers>>) -> Self {
        let kept = file.map(kept::read::<Vec<LastingFault>>).transpose().unwrap_or_else(|error| {
            tracing::warn!(file = file.map(|file| tracing::field::display(file.display())), %error, "faults of the agent's life before are not known");
            None
        });
        let kept = kept.into_iter().flatten().map(|fault| ((fault.id.clone(), fault.damage), fault));
        Self { file: file.map(Path::to_owned), active: kept.collect(), papers, presented: None }
    }

    /// Whether a fault that lasts does the same.
    pub(crate) fn holds(&self, damage: Damage) -> bool {
        let unplugs = |damage: Damage| match damage {
            Damage::Unplugged(end) | Damage::Parted(end) => Some(end),
            Damage::Frozen(_) | Damage::BadIdentity { .. } | Damage::Impaired { .. } => None,
        };
        let same = |other: Damage| {
            other == damage || (unplugs(damage).is_some() && unplugs(other) == unplugs(damage))
        };
        self.active.values().any(|fault| same(fault.damage))
    }

    /// Has the agent prove itself as its faults have it. Says whether that is another identity than before.
    pub(crate) fn present(&mut self) -> Result<bool, Error> {
        let bad = self.active.values().filter_map(|fault| match fault.damage {
            Damage::BadIdentity { identity, .. } => Some((fault.since, identity)),
            _ => None,
        });
        // The latest of several.
        let wanted = bad.max().map(|(_, identity)| identity);
        if wanted == self.presented {
            return Ok(false);
        }
        let none =
            || Error::new(ErrorCode::InvalidRequest, "this agent has no identity that could be replaced");
        let presented = self.papers.as_ref().ok_or_else(none)?.present(wanted);
        if presented.is_ok() || wanted.is_none() {
            self.presented = wanted;
        }
        presented.map(|()| true)
    }

    /// How long until the next one ends by itself.
    pub(crate) fn next_end(&self) -> Option<Duration> {
        let until = self.active.values().filter_map(|fault| fault.until).min()?;
        Some(Duration::from_nanos(until.as_nanos().saturating_sub(utc_now().as_nanos())))
    }

    /// Keeps the faults for the agent's next life.
    pub(crate) fn keep(&self) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        kept::write(file, &self.active.values().collect::<Vec<_>>())
    }
}
