//! Events of a test's agents, through all of their lives.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use weft_control::{EventFilter, Request, Since};
use weft_process::Client;

use super::PATIENCE;

/// Follows the events of one life of an agent into the file of its fabric.
pub(crate) struct Follower {
    over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Follower {
    pub(crate) fn start(control: &Path) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let (control, is_over) = (control.to_owned(), over.clone());
        Self { over, thread: std::thread::spawn(move || follow(&control, &is_over)) }
    }

    /// To be called when the agent has ended: all that it said to anybody is in the file then.
    pub(crate) fn finish(self) {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
    }
}

fn follow(control: &Path, over: &AtomicBool) {
    let mut client = loop {
        match Client::connect(control) {
            Ok(client) => break client,
            Err(_) if over.load(Ordering::Relaxed) => return,
            Err(_) => std::thread::yield_now(),
        }
    };
    let all = EventFilter { from: Since::Start, ..EventFilter::default() };
    if client.ask(Request::Events(all), PATIENCE).is_err() {
        return; // It has ended already.
    }
    let mut file = std::fs::File::options().append(true).create(true).open(file_of(control)).unwrap();
    // The stream ends with the agent.
    while let Ok(event) = client.next_event(PATIENCE) {
        let Some(event) = event else { continue };
        file.write_all(format!("{}\n", serde_json::to_string(&event).unwrap()).as_bytes()).unwrap();
    }
}

fn file_of(control: &Path) -> PathBuf {
    control.with_file_name("events")
}

/// The events of one kind, as JSON.
pub(crate) fn events(folder: &Path, event: &str) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join("events")).unwrap();
    let wanted = format!("\"event\":\"{event}\"");
    text.lines().filter(|line| line.contains(&wanted)).map(str::to_owned).collect()
}
