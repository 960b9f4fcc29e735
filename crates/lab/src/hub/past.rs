//! The last minutes, which the hub keeps so that a page which begins now can go back. They are gathered from events and from what these make
//! worth asking; counters are not, as no one looks.

use std::sync::{Arc, Mutex, PoisonError};

use weft_bundle::folder::LabFolder;
use weft_control::{Answer, PastPlace, Role};
use weft_page::{Counts, Registry, Stage};

use crate::scene::{Seen, show};

/// Memory that it may take.
const BYTES_MAX: usize = 16 << 20;
/// What one answer holds, about.
const PIECE_BYTES: usize = 512 << 10;

/// The last minutes of a laboratory.
#[derive(Debug, Default)]
pub(crate) struct Past(Mutex<Option<Arc<Stage>>>);

impl Past {
    /// Begins to keep them, if that has not begun.
    pub(crate) fn begin(&self, folder: &LabFolder) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_some() {
            return;
        }
        let stage = Stage::bounded(Counts::new(&Registry::new()), BYTES_MAX);
        *known = Some(stage.clone());
        let folder = folder.clone();
        // The hub itself waits for no one.
        let keep = move || {
            if let Err(error) = show(&folder, &stage, Role::Viewer, Seen::default()) {
                tracing::warn!("the last minutes are not kept: {error:#}");
            }
        };
        if let Err(error) = std::thread::Builder::new().name("past".into()).spawn(keep) {
            tracing::warn!("the last minutes are not kept: {error}");
        }
    }

    /// A piece of them.
    pub(crate) fn piece(&self, from: PastPlace) -> Answer {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(stage) = known else { return Answer::Past { from, text: String::new(), next: None } };
        let offset = usize::try_from(from.offset).unwrap_or(usize::MAX);
        let piece = stage.piece(from.line, offset, PIECE_BYTES);
        let place = |line, offset: usize| PastPlace { line, offset: offset as u64 };
        let next = piece.next.map(|(line, offset)| place(line, offset));
        Answer::Past { from: place(piece.line, piece.offset), text: piece.text, next }
    }
}
