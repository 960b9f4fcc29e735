//! Answers of a kind of process, beside those of all.

use std::future::Future;
use std::time::Duration;

use weft_control::agent::{CaptureTotals, Captured, Tap};
use weft_control::fault::BadIdentity;
use weft_control::process::{Condition, ProcessKind};
use weft_control::{Answer, Error, ErrorCode, Request};

use crate::Requester;

/// A process's own part of the API. The [`crate::Server`] answers `hello`, `events`, `cancel`, `clients` and the log's
/// requests itself, and has checked the client's role.
pub trait Service {
    /// Packets that a client captures; [`NoCapture`] for a process without cables.
    type Capture: Capture;

    /// Carries out one request. Requests of one client come one after the other; those of several may overlap.
    fn answer(&self, request: Request) -> impl Future<Output = Result<Answer, Error>>;

    /// What the process is doing, and how long its loop has been at it.
    fn condition(&self) -> impl Future<Output = (Condition, Duration)> {
        std::future::ready((Condition::Ready, Duration::ZERO))
    }

    /// Identities were revoked, by a list as PEM text that the process's papers have verified. One that is no news has nothing that
    /// lists before it lack.
    ///
    /// # Errors
    /// Says why the process cannot keep it.
    fn revoked(&self, _list: &str, _is_news: bool) -> Result<(), Error> {
        Ok(())
    }

    /// Begins to capture for a client; `None` for a process without cables.
    fn capture(&self, _tap: &Tap, _requester: &Requester) -> Option<Result<Self::Capture, Error>> {
        None
    }
}

/// What a process proves itself with to others, as far as that changes while it runs.
pub trait Papers: std::fmt::Debug + Send + Sync {
    /// Reads the own identity again, and uses it from now on.
    ///
    /// # Errors
    /// Says why it is of no use; the one before stays in use.
    fn renew(&self) -> Result<(), Error>;

    /// Proves itself with a bad identity from now on, on purpose; with none, with its own again.
    ///
    /// # Errors
    /// Says why there is none; the one before stays in use.
    fn present(&self, bad: Option<BadIdentity>) -> Result<(), Error>;

    /// Believes none of the identities of a list any more. Says whether the list is news.
    ///
    /// # Errors
    /// Says why the list is of no use.
    fn revoke(&self, list: &str) -> Result<bool, Error>;

    /// The newest list that it has verified, as PEM text.
    fn revoked(&self) -> Option<String>;

    /// Whether it can verify lists at all.
    fn can_verify(&self) -> bool {
        true
    }
}

/// Packets that cross cables, for one client. Dropping it ends the capture.
pub trait Capture {
    /// Waits until there are packets to take.
    fn ready(&mut self) -> impl Future<Output = ()>;

    /// Takes some packets without waiting; none when there are none.
    fn take(&mut self) -> Vec<Captured>;

    /// What became of all packets so far.
    fn totals(&self) -> CaptureTotals;
}

/// For a process without cables.
#[derive(Clone, Copy, Debug)]
pub enum NoCapture {}

impl Capture for NoCapture {
    async fn ready(&mut self) {
        match *self {}
    }

    fn take(&mut self) -> Vec<Captured> {
        match *self {}
    }

    fn totals(&self) -> CaptureTotals {
        match *self {}
    }
}

/// The request is for another kind of process.
pub fn not_here(request: &Request, kind: ProcessKind) -> Error {
    let message = format!("`{}` is not for a process of kind {}", request.name(), kind.name());
    Error::new(ErrorCode::NotHere, message).hint("`hello` tells what a process is")
}
