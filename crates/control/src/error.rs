//! Errors: the answer to a request that is not carried out.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What went wrong, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ErrorCode {
    /// The line is longer than a request may be.
    LineTooLong,
    /// The line is not UTF-8.
    InvalidUtf8,
    /// The line is not JSON, or has no version, id or request.
    Malformed,
    /// The version of the protocol is not spoken here.
    UnknownVersion,
    /// No request has this name.
    UnknownRequest,
    /// The request has fields that do not fit it.
    InvalidRequest,
    /// The client's role may not make this request.
    Forbidden,
    /// The request is for another kind of process.
    NotHere,
    /// What the request names does not exist.
    NotFound,
    /// It cannot be done in the present state.
    Conflict,
    /// The process did not find time to answer.
    Busy,
    /// Too many clients or subscriptions.
    TooMany,
    /// The answer is longer than a line may be.
    AnswerTooLong,
    /// The process stops.
    Stopping,
    /// It was tried and failed.
    Failed,
}

impl ErrorCode {
    /// Its name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LineTooLong => "line-too-long",
            Self::InvalidUtf8 => "invalid-utf8",
            Self::Malformed => "malformed",
            Self::UnknownVersion => "unknown-version",
            Self::UnknownRequest => "unknown-request",
            Self::InvalidRequest => "invalid-request",
            Self::Forbidden => "forbidden",
            Self::NotHere => "not-here",
            Self::NotFound => "not-found",
            Self::Conflict => "conflict",
            Self::Busy => "busy",
            Self::TooMany => "too-many",
            Self::AnswerTooLong => "answer-too-long",
            Self::Stopping => "stopping",
            Self::Failed => "failed",
        }
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
