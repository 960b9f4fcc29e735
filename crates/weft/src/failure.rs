//! Reporting what went wrong, on standard error and as an exit code.

use std::process::ExitCode;

use weft_bundle::failure::{EXIT_INTERRUPTED, Interrupted, code_of, hint_of};

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
    ExitCode::from(code_of(error))
}
