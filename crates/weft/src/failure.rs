//! What goes wrong, for a human: one line that says what, one that says what to do, and an exit code.

use std::fmt;
use std::process::ExitCode;

use rustix::process::{Resource, getrlimit};

/// The exit code of measurements that the machine spoilt.
pub(crate) const EXIT_INVALID: u8 = 3;

/// An error with advice and an exit code. Everything else that goes wrong is exit code 1 without advice.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    hint: Option<String>,
    code: u8,
}

impl Failure {
    /// Something did not work: exit code 1.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, code: 1 }
    }

    /// The user gave something wrong: exit code 2.
    pub(crate) fn bad_input(message: impl Into<String>) -> Self {
        Self { code: 2, ..Self::new(message) }
    }

    /// What was measured is no result, whatever it says, as the machine spoilt it: exit code 3.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self { code: EXIT_INVALID, ..Self::new(message) }
    }

    /// The user broke off what failed: exit code 130.
    pub(crate) fn interrupted(self) -> Self {
        Self { code: EXIT_INTERRUPTED, ..self }
    }

    /// Says what to do about it.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
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
pub(crate) struct Interrupted(pub(crate) &'static str);

impl Interrupted {
    /// Of what was being started.
    pub(crate) const NOTHING_RUNS: Self = Self("nothing is left running");
    /// Of what was being computed or measured.
    pub(crate) const NO_RESULT: Self = Self("there is no result");
}

/// The exit code of a program that Ctrl-C broke off, as shells have it for SIGINT.
pub(crate) const EXIT_INTERRUPTED: u8 = 130;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "interrupted: {}", self.0)
    }
}

impl std::error::Error for Interrupted {}

/// Says on standard error what went wrong; the exit code that goes with it.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    if error.is::<crate::output::StdoutClosed>() {
        return ExitCode::SUCCESS; // `weft … | head`: the reader has what it wanted.
    }
    if let Some(interrupted) = error.chain().find_map(|cause| cause.downcast_ref::<Interrupted>()) {
        // It is what the user wanted, and no error.
        crate::output::say(&interrupted.to_string());
        return ExitCode::from(EXIT_INTERRUPTED);
    }
    crate::output::say_labelled("error:", "31", &format!("{error:#}"));
    if let Some(hint) = hint_of(error) {
        crate::output::say_labelled("hint:", "36", &hint);
    }
    ExitCode::from(own(error).map_or(1, |failure| failure.code))
}

/// The same in one line, for those who pass it on.
pub(crate) fn in_words(error: &anyhow::Error) -> String {
    let hint = hint_of(error).map_or_else(String::new, |hint| format!(" (hint: {hint})"));
    format!("{error:#}{hint}")
}

fn own(error: &anyhow::Error) -> Option<&Failure> {
    error.chain().find_map(|cause| cause.downcast_ref::<Failure>())
}

fn hint_of(error: &anyhow::Error) -> Option<String> {
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
