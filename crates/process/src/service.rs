//! What a kind of process answers beside what all of them answer.

use std::future::Future;

use weft_control::process::{Condition, Health, ProcessKind};
use weft_control::{Answer, Error, ErrorCode, Request};

/// A process's own part of the API. The [`crate::Server`] answers `hello`, `events`, `cancel`, `clients` and the log's
/// requests itself, and has checked the client's role.
pub trait Service {
    /// Carries out one request. Requests of one client come one after the other; those of several may overlap.
    fn answer(&self, request: Request) -> impl Future<Output = Result<Answer, Error>>;

    /// How the process is.
    fn health(&self) -> impl Future<Output = Health> {
        std::future::ready(Health { condition: Condition::Ready, busy_ms: 0 })
    }
}

/// The request is for another kind of process.
pub fn not_here(request: &Request, kind: ProcessKind) -> Error {
    let message = format!("`{}` is not for a process of kind {}", request.name(), kind.name());
    Error::new(ErrorCode::NotHere, message).hint("`hello` tells what a process is")
}
