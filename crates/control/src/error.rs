//! Errors: the answer to a request that is not carried out.

use std::fmt;

use serde::{Deserialize, Serialize};

weft_wire::named! {
    /// What went wrong, for programs.
    #[derive(PartialOrd, Ord, Hash)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    #[non_exhaustive]
    pub enum ErrorCode {
        /// The line is longer than a request may be.
        LineTooLong = "line-too-long",
        /// The line is not UTF-8.
        InvalidUtf8 = "invalid-utf8",
        /// The line is not JSON, or has no version, id or request.
        Malformed = "malformed",
        /// The version of the protocol is not spoken here.
        UnknownVersion = "unknown-version",
        /// No request has this name.
        UnknownRequest = "unknown-request",
        /// The request has fields that do not fit it.
        InvalidRequest = "invalid-request",
        /// The client's role may not make this request.
        Forbidden = "forbidden",
        /// The request is for another kind of process.
        NotHere = "not-here",
        /// What the request names does not exist.
        NotFound = "not-found",
        /// It cannot be done in the present state.
        Conflict = "conflict",
        /// The process did not find time to answer.
        Busy = "busy",
        /// Too many clients or subscriptions.
        TooMany = "too-many",
        /// The answer is longer than a line may be.
        AnswerTooLong = "answer-too-long",
        /// The process stops.
        Stopping = "stopping",
        /// It was tried and failed.
        Failed = "failed",
    }
}

/// Why a request was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Error {
    /// For programs.
    pub code: ErrorCode,
    /// What is wrong, for people.
    pub message: String,
    /// What to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Error {
    /// Without a hint.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None }
    }

    /// Adds what to do.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
