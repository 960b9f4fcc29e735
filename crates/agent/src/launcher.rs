//! The agent's talk with the launcher that started it.

use std::io::Write;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tracing::debug;
use weft_umad::launch::{FromLauncher, LineDecoder, ToLauncher, line};

use crate::cables::LinkCounts;
use crate::core::Core;
use crate::shared::Agent;

/// Changes within this time are told as one.
const GATHER: Duration = Duration::from_millis(10);

/// Says that the agent is ready, waits for the word to dial, dials, and reports links from then on.
///
/// Returns when the launcher has gone; the agent goes on.
pub(crate) async fn converse(agent: Rc<Agent>, path: Option<&Path>) {
    let signals = agent.with_core(|core| core.signals.clone());
    let stream = match path {
        Some(path) => tokio::select! {
            stream = ready(&agent, path) => stream,
            () = signals.dial.notified() => None,
        },
        None => None,
    };
    agent.with_core(Core::start_dialling);
    if let Some(stream) = stream {
        report(&agent, stream).await;
    }
}

/// Announces the agent and waits for `Go`; `None` when the launcher is absent or leaves.
async fn ready(agent: &Rc<Agent>, path: &Path) -> Option<UnixStream> {
    let mut stream = match UnixStream::connect(path).await {
        Ok(stream) => stream,
        Err(error) => {
            debug!(%error, "no launcher");
            return None;
        }
    };
    let name = agent.with_core(|core| core.name.clone());
    let ready = ToLauncher::Ready { agent: name, pid: std::process::id() };
    stream.write_all(line(&ready).as_bytes()).await.ok()?;
    let mut decoder = LineDecoder::new();
    let mut buffer = [0; 256];
    loop {
        match decoder.next_message() {
            Ok(Some(FromLauncher::Go)) => return Some(stream),
            Ok(None) => {}
            Err(_) => return None,
        }
        match stream.read(&mut buffer).await {
            Ok(count) if count > 0 => decoder.feed(buffer.get(..count).unwrap_or_default()),
            _ => return None,
        }
    }
}

async fn report(agent: &Rc<Agent>, mut stream: UnixStream) {
    let (name, signals) = agent.with_core(|core| (core.name.clone(), core.signals.clone()));
    let mut told = None;
    loop {
        let counts = agent.with_core(|core| core.link_counts());
        if told != Some(counts) {
            told = Some(counts);
            let count = |number| u32::try_from(number).unwrap_or(u32::MAX);
            let LinkCounts { up, total, to_dial } = counts;
            let (up, total, to_dial) = (count(up), count(total), count(to_dial));
            let links = ToLauncher::Links { agent: name.clone(), up, total, to_dial };
            if stream.write_all(line(&links).as_bytes()).await.is_err() {
                return;
            }
        }
        signals.links.notified().await;
        // That all links stand, or all that are dialled here, is news at once; the others are told together.
        let now = agent.with_core(|core| core.link_counts());
        let has_dialled = now.to_dial == 0 && told.is_some_and(|told| told.to_dial > 0);
        if now.up != now.total && !has_dialled {
            tokio::time::sleep(GATHER).await;
        }
    }
}

/// Tells the launcher, if there is one, why the agent cannot go on.
pub(crate) fn report_failure(path: Option<&Path>, agent: &str, reason: String) {
    let stream = path.and_then(|path| std::os::unix::net::UnixStream::connect(path).ok());
    if let Some(mut stream) = stream {
        let failed = ToLauncher::Failed { agent: agent.to_owned(), reason };
        // The launcher may have gone; then the exit code tells.
        let _ = stream.write_all(line(&failed).as_bytes());
    }
}
