//! Conditions that papers do not print: other buffers, packets and rate scales, under which the verdicts of an experiment may hold or not.
//!
//! They are an axis of variants that no file writes. Its first choice changes nothing, and is the outermost: the runs that are judged come
//! first, the others say how far their verdicts reach.

use super::error::{At, Wrong};
use super::tree::{Entry, Kind, words};
use super::variants::{Axis, AxisChoice, combinations};
use super::{ExperimentFile, FileError, RUNS_MAX, read_choice};
use crate::RunId;

/// The axis's name.
const AXIS: &str = "condition";
/// Its first choice.
const USUAL: &str = "as it is";
/// Seeds of each run.
const SEEDS: u64 = 3;

/// A condition under which an experiment cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Omitted {
    /// The condition.
    pub condition: String,
    /// Why not.
    pub why: String,
}

impl RunId {
    /// The condition; none where the series has no conditions.
    pub fn condition(&self) -> Option<&str> {
        condition(&self.choices)
    }

    /// Whether the run is under no other condition than its file's.
    pub fn is_usual(&self) -> bool {
        is_usual(&self.choices)
    }
}

/// The condition among the choices of axes.
pub(crate) fn condition(choices: &[(String, String)]) -> Option<&str> {
    choices.iter().find(|(axis, _)| axis == AXIS).map(|(_, label)| label.as_str())
}

pub(crate) fn is_usual(choices: &[(String, String)]) -> bool {
    condition(choices).is_none_or(|label| label == USUAL)
}

/// Those that there are: what they are called, and the key of `[rates]` with its value.
fn all(dilation: u32) -> Vec<(String, &'static str, u32)> {
    let buffers = [4, 16, 40].map(|depth| (format!("{depth} packets"), "buffer_packets", depth));
    let sizes = [1024, 4096].map(|size| (format!("MTU {size}"), "mtu", size));
    let twice = dilation.saturating_mul(2);
    let scale = (format!("scale 1/{twice}"), "dilation", twice);
    buffers.into_iter().chain(sizes).chain([scale]).collect()
}

/// Whether entries of a document give a key of `[rates]` a value.
fn sets(entries: &[Entry], key: &str) -> bool {
    entries.iter().filter(|entry| entry.key == "rates").any(|entry| match &entry.value.kind {
        Kind::Table(keys) => keys.iter().any(|inner| inner.key == key),
        _ => false,
    })
}

impl ExperimentFile {
    /// The same experiment under further conditions, each with three seeds: 4, 16 and 40 packets in each buffer, an MTU of 1024 and 4096
    /// bytes, and twice the dilation, one at a time.
    ///
    /// # Errors
    /// Where the file has an axis of this name, or the runs are too many.
    pub fn under_conditions(mut self) -> Result<Self, FileError> {
        if self.axes.iter().any(|axis| axis.name == AXIS) {
            let wrong = Wrong::new(At::default(), format!("the file has an axis `{AXIS}` of its own"));
            return Err(self.error(wrong.allowed("another name for it, to run the file under conditions")));
        }
        let mut choices = vec![AxisChoice { label: USUAL.to_owned(), entries: Vec::new() }];
        for (label, key, value) in all(self.plain.rates.dilation) {
            match self.laid_with(key, value) {
                Ok(entries) => choices.push(AxisChoice { label, entries }),
                Err(why) => self.omitted.push(Omitted { condition: label, why }),
            }
        }
        self.axes.insert(0, Axis { name: AXIS.to_owned(), choices });
        if self.seeds.len() < SEEDS as usize {
            self.seeds = (1..=SEEDS).collect();
        }
        self.seeds.truncate(SEEDS as usize);
        combinations(&self.axes, RUNS_MAX / self.seeds.len()).map_err(|wrong| self.error(wrong))?;
        Ok(self)
    }

    /// Conditions under which the experiment cannot be run.
    pub fn omitted(&self) -> &[Omitted] {
        &self.omitted
    }

    /// The conditions of the experiment, the usual one first; none where the series has none.
    pub fn conditions(&self) -> Vec<&str> {
        let axis = self.axes.iter().find(|axis| axis.name == AXIS);
        axis.map_or(Vec::new(), |axis| axis.choices.iter().map(|choice| choice.label.as_str()).collect())
    }

    /// What is laid upon the file for one value of `[rates]`, if every variant can be run with it.
    fn laid_with(&self, key: &str, value: u32) -> Result<Vec<Entry>, String> {
        let own = self.axes.iter().find(|axis| axis.choices.iter().any(|choice| sets(&choice.entries, key)));
        if let Some(axis) = own {
            return Err(format!("the file's own variants `{}` choose `{key}`", axis.name));
        }
        let entries = words("rates", &format!("{key}={value}")).map_err(|wrong| wrong.message)?;
        for choices in combinations(&self.axes, RUNS_MAX).map_err(|wrong| wrong.message)? {
            let mut document = self.laid(&choices);
            super::lay(&mut document, &entries);
            read_choice(&document, &self.axes).map_err(|wrong| wrong.message)?;
        }
        Ok(entries)
    }
}
