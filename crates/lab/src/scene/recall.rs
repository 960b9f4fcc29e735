//! The hub's last minutes, put before what a page has seen itself.

use std::sync::Arc;
use std::time::Duration;

use weft_bundle::folder::LabFolder;
use weft_bundle::names::HUB;
use weft_control::{Answer, PastPlace, Request};
use weft_page::Stage;
use weft_process::{Client, ClientError};

/// How long the hub has for a piece, also over a network.
const PATIENCE: Duration = Duration::from_secs(30);
/// What is taken of it at most.
const BYTES_MAX: usize = 64 << 20;

/// Asks the hub for its last minutes, by a thread of its own. A hub that keeps none is no error.
pub(super) fn begin(folder: &LabFolder, stage: &Arc<Stage>) {
    let (folder, stage) = (folder.clone(), stage.clone());
    let recall = move || match lines(&folder) {
        Ok(lines) => stage.recall(&lines),
        Err(error) => tracing::debug!("the hub's last minutes are not known: {error}"),
    };
    let _ = std::thread::Builder::new().name("recall".into()).spawn(recall);
}

fn lines(folder: &LabFolder) -> Result<String, ClientError> {
    let mut hub = Client::connect(&folder.control(HUB))?;
    let (mut lines, mut wanted) = (String::new(), Some(PastPlace::default()));
    while let Some(place) = wanted.filter(|_| lines.len() < BYTES_MAX) {
        let Answer::Past { from, text, next } = hub.ask(Request::Past(place), PATIENCE)? else {
            return Err(ClientError::Unexpected("past"));
        };
        // The oldest lines have gone meanwhile, and the rest of one with them: the next line is a whole one.
        if from != place && !lines.is_empty() {
            lines.push('\n');
        }
        lines += &text;
        wanted = next;
    }
    Ok(lines)
}
