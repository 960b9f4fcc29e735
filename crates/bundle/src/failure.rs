//! Errors for people: one line that says what is wrong, one that says what to do, and an exit code.

use std::fmt;

use rustix::process::{Resource, getrlimit};

/// The exit code of measurements that the machine spoilt.
pub const EXIT_INVALID: u8 = 3;

/// An error with advice and an exit code. Everything else that goes wrong is exit code 1 without advice.
#[derive(Debug)]
pub struct Failure {
    message: String,
    hint: Option<String>,
    code: u8,
}

impl Failure {
    /// Something did not work: exit code 1.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, code: 1 }
    }

    /// The user gave something wrong: exit code 2.
    pub fn bad_input(message: impl Into<String>) -> Self {
        Self { code: 2, ..Self::new(message) }
    }

    /// What was measured is no result, whatever it says, as the machine spoilt it: exit code 3.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self { code: EXIT_INVALID, ..Self::new(message) }
    }

    /// The user broke off what failed: exit code 130.
    pub fn interrupted(self) -> Self {
        Self { code: EXIT_INTERRUPTED, ..self }
    }

    /// The whole error, with what to do about it.
    pub fn hint(self, hint: impl Into<String>) -> anyhow::Error {
        self.hint_if_any(Some(hint.into()))
    }

    /// The whole error, with what to do about it where that is known.
    pub fn hint_if_any(self, hint: Option<String>) -> anyhow::Error {
        Self { hint, ..self }.into()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// The user has broken off work, with what is left of it. It ends a program with [`EXIT_INTERRUPTED`].
#[derive(Debug)]
pub struct Interrupted(pub &'static str);

impl Interrupted {
    /// Of what was being started.
    pub const NOTHING_RUNS: Self = Self("nothing is left running");
    /// Of what was being computed or measured.
    pub const NO_RESULT: Self = Self("there is no result");
}

/// The exit code of a program that Ctrl-C broke off, as shells have it for SIGINT.
pub const EXIT_INTERRUPTED: u8 = 130;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "interrupted: {}", self.0)
    }
}

impl std::error::Error for Interrupted {}

/// An error and what to do about it in one line, for those who pass it on.
pub fn in_words(error: &anyhow::Error) -> String {
    let hint = hint_of(error).map_or_else(String::new, |hint| format!(" (hint: {hint})"));
    format!("{error:#}{hint}")
}

/// The exit code that goes with an error: 1, unless a [`Failure`] says another.
pub fn code_of(error: &anyhow::Error) -> u8 {
    own(error).map_or(1, |failure| failure.code)
}

fn own(error: &anyhow::Error) -> Option<&Failure> {
    error.chain().find_map(|cause| cause.downcast_ref::<Failure>())
}

/// What to do about an error, where that is known.
pub fn hint_of(error: &anyhow::Error) -> Option<String> {
    own(error)
        .and_then(|failure| failure.hint.clone())
        .or_else(|| open_files(error))
        .or_else(|| full_disk(error))
}

/// What to do where a disk was full, or a quota used up.
fn full_disk(error: &anyhow::Error) -> Option<String> {
    let is_full = |cause: &(dyn std::error::Error + 'static)| {
        let kind = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        matches!(kind, Some(std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded))
    };
    error.chain().any(is_full).then(|| "make room, and run the same command again".to_owned())
}

/// Files that a hub has open besides one for each agent: sockets, locks, signals, and what starting a process takes.
const OPEN_FILES: u32 = 40;

/// What to do where the limit of open files was met.
fn open_files(error: &anyhow::Error) -> Option<String> {
    let limit = rustix::io::Errno::MFILE;
    let met = |cause: &(dyn std::error::Error + 'static)| {
        let code = cause.downcast_ref::<std::io::Error>().and_then(std::io::Error::raw_os_error);
        code == Some(limit.raw_os_error()) || cause.downcast_ref() == Some(&limit)
    };
    let hint = || {
        let most = getrlimit(Resource::Nofile).current.map_or_else(String::new, |most| format!(" of {most}"));
        format!(
            "raise the limit{most} open files, as in `ulimit -n 4096`; the hub needs some {OPEN_FILES} and one for each \
             agent, of which --pack makes fewer"
        )
    };
    error.chain().any(met).then(hint)
}
