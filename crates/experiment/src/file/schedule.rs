//! A schedule of faults as a file of its own: `[[fault]]` as experiments have it, without an experiment.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;

use weft_chaos::Planned;
use weft_machine::Time;

use super::error::{At, FileError, Wrong};
use super::faults::{Listed, listed, quoted, written};
use super::reader::Table;
use super::tree;

/// The longest schedule. Drawn ones last seconds, and what is judged at the end waits for it.
const TIME_MAX: Time = Time::from_secs(3600);

/// As many as `weft up` starts.
const STANDBYS_MAX: i64 = 4;

/// A schedule of faults that can be replayed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScheduleFile {
    /// What it is, for people.
    pub title: String,
    /// The topology file of its fabric, relative to its own folder.
    pub topology: Option<String>,
    /// What chance follows from that is not a fault's own.
    pub seed: u64,
    /// What its laboratory has, in virtual time, besides agents and a subnet manager.
    pub beside: Beside,
    /// The faults.
    pub faults: Vec<Planned<String, String>>,
}

/// Managers and virtual functions of a schedule's laboratory, as the command line of `weft up` says them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beside {
    /// Whether it has a performance manager.
    pub pm: bool,
    /// Subnet managers that stand by.
    pub standbys: u8,
    /// Virtual functions of every HCA, if they are to be virtualised.
    pub vfs: Option<u32>,
    /// Whether those are slots that are empty at first, as with `--lids dynamic`.
    pub is_dynamic: bool,
    /// Whether it has a VM manager for adapters that its topology file has virtualised already.
    pub vmm: bool,
}

impl ScheduleFile {
    /// Reads a file. `name` is what errors call it.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong, with its place.
    pub fn parse(name: &str, text: &str) -> Result<Self, FileError> {
        Self::read(text).map_err(|wrong| wrong.into_error(name, text))
    }

    fn read(text: &str) -> Result<Self, Wrong> {
        let (entries, places) = (tree::parse(text)?, RefCell::new(BTreeMap::new()));
        let mut top = Table::new("", At::default(), &entries, &places);
        let title = top.text("title")?.unwrap_or_default();
        let topology = top.text("topology")?;
        let seed = top.number::<u64>("seed", 0..=i64::MAX)?.unwrap_or(1);
        let beside = Beside {
            pm: top.flag("pm", false)?,
            standbys: top.number::<u8>("standby", 0..=STANDBYS_MAX)?.unwrap_or_default(),
            vfs: top.number::<u32>("vfs", 1..=u32::MAX.into())?,
            is_dynamic: top.word("lids", &["prepopulated", "dynamic"])? == Some(1),
            vmm: top.flag("vmm", false)?,
        };
        let faults = listed(&mut top, TIME_MAX)?;
        top.finish(())?;
        all_end(&faults)?;
        let faults = faults.into_iter().map(|fault| fault.planned).collect();
        Ok(Self { title, topology, seed, beside, faults })
    }
}

/// Every fault that lasts ends within the longest schedule: by itself, or by another fault after it. Otherwise the fabric could never
/// be judged.
fn all_end(faults: &[Listed]) -> Result<(), Wrong> {
    for Listed { planned: Planned { at, fault, lasts }, place, .. } in faults {
        if at.as_nanos().saturating_add(lasts.unwrap_or_default().as_nanos()) > TIME_MAX.as_nanos() {
            let message =
                format!("the fault ends later than {} s after the beginning", TIME_MAX.as_secs_f64());
            return Err(Wrong::new(*place, message));
        }
        let Some(end) = fault.end().filter(|_| lasts.is_none()) else { continue };
        let ends = |other: &Listed| other.planned.at >= *at && other.planned.fault == end;
        if !faults.iter().any(ends) {
            let message = "the fault never ends, and a schedule is judged once every fault has ended";
            let hint = format!("`for` in seconds, or another fault after it: {end}");
            return Err(Wrong::new(*place, message).allowed(hint));
        }
    }
    Ok(())
}

impl fmt::Display for ScheduleFile {
    /// As [`ScheduleFile::parse`] reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "title = {}", quoted(&self.title))?;
        if let Some(topology) = &self.topology {
            writeln!(f, "topology = {}", quoted(topology))?;
        }
        writeln!(f, "seed = {}", self.seed)?;
        let Beside { pm, standbys, vfs, is_dynamic, vmm } = self.beside;
        if pm {
            writeln!(f, "pm = true")?;
        }
        if standbys > 0 {
            writeln!(f, "standby = {standbys}")?;
        }
        if let Some(vfs) = vfs {
            writeln!(f, "vfs = {vfs}")?;
        }
        if is_dynamic {
            writeln!(f, "lids = \"dynamic\"")?;
        }
        if vmm {
            writeln!(f, "vmm = true")?;
        }
        self.faults.iter().try_for_each(|planned| write!(f, "\n{}", written(planned)))
    }
}
