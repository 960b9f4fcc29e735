//! Processes that serve metrics, read from the record when somebody asks: a large laboratory's takes a while.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weft_bundle::failure::in_words;
use weft_bundle::folder::LabFolder;
use weft_bundle::record::LabRecord;
use weft_hub::{LabError, Target};

use crate::site::metrics;

/// The targets of the newest plan, once they have been asked for.
#[derive(Debug, Default)]
pub(crate) struct Targets(Mutex<Option<Arc<[Target]>>>);

impl Targets {
    /// Those of the laboratory in this folder.
    pub(crate) fn of(&self, folder: &LabFolder) -> Result<Arc<[Target]>, LabError> {
        if let Some(known) = &*self.known() {
            return Ok(known.clone());
        }
        let record = LabRecord::load(folder).map_err(|error| LabError::from(in_words(&error)))?;
        Ok(self.known().insert(metrics::discovered(&record)).clone())
    }

    /// The plan is another one.
    pub(crate) fn forget(&self) {
        *self.known() = None;
    }

    fn known(&self) -> MutexGuard<'_, Option<Arc<[Target]>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
