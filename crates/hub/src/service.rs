//! Requests that a hub answers itself, and those that it passes on.

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, Semaphore};
use weft_control::process::ProcessKind;
use weft_control::{Answer, Error, ErrorCode, Request};
use weft_process::{NoCapture, Service, not_here};

use crate::flows::Flows;
use crate::metrics::Metrics;
use crate::shared::Shared;
use crate::starter;
use crate::talk::ask;
use crate::tend::{Tender, socket};

/// The most requests that are passed on at the same time; further ones wait.
pub const RELAYS_MAX: usize = 64;
/// Longer than a process takes to say that it is busy.
const RELAY_PATIENCE: Duration = Duration::from_secs(35);

/// The hub's own part of the API.
pub(crate) struct Desk {
    pub(crate) shared: Arc<Shared>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) folder: PathBuf,
    pub(crate) relays: Semaphore,
    /// Rings when a client wants the hub to stop.
    pub(crate) stop: Arc<Notify>,
    /// The tasks that talk to the processes.
    pub(crate) tender: Rc<Tender>,
    pub(crate) flows: Rc<Flows>,
}

impl Service for Desk {
    type Capture = NoCapture;

    async fn answer(&self, request: Request) -> Result<Answer, Error> {
        match request {
            Request::LabStatus(page) => Ok(Answer::LabStatus(Box::new(self.shared.status(&page)))),
            Request::Metrics => Ok(Answer::Metrics { text: self.metrics.text(&self.shared, &self.flows) }),
            Request::FlowStart { flows } => self.flows.start(flows).await,
            Request::FlowStop(choice) => self.flows.stop(&choice).await,
            Request::LabFlows(page) => Ok(self.flows.list(&page)),
            Request::Past(from) => Ok(self.shared.lab.past(from)),
            Request::ReadPlan => self.shared.read_plan(),
            Request::WriteCables { taken_out, put_in } => {
                let written = self.shared.lab.write_cables(&taken_out, &put_in);
                written
                    .map(|()| Answer::Done)
                    .map_err(|error| Error::new(ErrorCode::Failed, error.to_string()))
            }
            Request::Shutdown => {
                self.stop.notify_one();
                Ok(Answer::Done)
            }
            Request::StartProcess { process } => starter::on_order(&self.shared, &process).await,
            Request::Relay { process, request } => self.relay(&process, *request).await,
            other => Err(not_here(&other, ProcessKind::Hub)),
        }
    }

    /// Passes it on to all processes, now and when they come back, also after the hub itself has begun again.
    fn revoked(&self, list: &str, is_news: bool) -> Result<(), Error> {
        if is_news {
            self.shared.state().revoked = Some(list.into());
            self.tender.ring_all();
        }
        // A list without news may repeat one that could not be kept, or be older than the last.
        let Some(kept) = self.shared.state().revoked.clone() else { return Ok(()) };
        self.shared.lab.keep_revoked(&kept).map_err(|error| {
            let message = format!("the hub tells the processes, but cannot keep the list: {error}");
            Error::new(ErrorCode::Failed, message).hint("make room, and run the same command again")
        })
    }
}

impl Desk {
    async fn relay(&self, process: &str, request: Request) -> Result<Answer, Error> {
        refuse_streams(process, &self.shared.identity.name, &request)?;
        match self.shared.is_alive(process) {
            Some(true) => {}
            Some(false) => {
                let error = Error::new(ErrorCode::Conflict, format!("`{process}` does not run"));
                return Err(error.hint(format!("start it with `weft fault restart {process}`")));
            }
            None => {
                let error = Error::new(ErrorCode::NotFound, format!("no process is called `{process}`"));
                return Err(error.hint("`lab-status` lists them"));
            }
        }
        let failed = |what: String| Error::new(ErrorCode::Failed, format!("`{process}` {what}"));
        let permit = self.relays.acquire().await;
        let asked =
            tokio::time::timeout(RELAY_PATIENCE, ask(&socket(&self.folder, process), vec![request])).await;
        drop(permit);
        match asked {
            Ok(Ok(answers)) => {
                answers.into_iter().next().unwrap_or_else(|| Err(failed("gives no answer".to_owned())))
            }
            Ok(Err(error)) => Err(failed(format!("gives no answer: {error}"))),
            Err(_) => {
                let seconds = RELAY_PATIENCE.as_secs();
                let error = format!("`{process}` has not answered within {seconds} s");
                Err(Error::new(ErrorCode::Busy, error))
            }
        }
    }
}

/// Refuses what does not end with one answer, and what the hub answers itself.
fn refuse_streams(process: &str, own_name: &str, request: &Request) -> Result<(), Error> {
    let hint = match request {
        Request::Events(_) | Request::Cancel { .. } => "ask the hub for `events`, with `sources`",
        Request::Capture { .. } => "connect to the process's own control socket",
        Request::Relay { .. } => "relay the inner request itself",
        _ if process == own_name => "ask the hub itself, without `relay`",
        _ => return Ok(()),
    };
    let message = format!("`{}` to `{process}` is not passed on", request.name());
    Err(Error::new(ErrorCode::InvalidRequest, message).hint(hint))
}
