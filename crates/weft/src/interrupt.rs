//! Ctrl-C while a verb computes.

use anyhow::Context;
use weft_bundle::failure::{EXIT_INTERRUPTED, Interrupted};
use weft_lab::signals::{SIGINT, Signals};
use weft_process::readable;

/// Has Ctrl-C break off a verb that computes and asks for no signals itself; `kept` says what is left of its work.
pub(crate) fn break_off_when_interrupted(
    kept: impl Fn() -> &'static str + Send + 'static,
) -> anyhow::Result<()> {
    let signals = Signals::watch(&[SIGINT])?;
    let watch = move || {
        if readable(&signals, None).is_ok() {
            crate::progress::clear();
            crate::output::say(&Interrupted(kept()).to_string());
            std::process::exit(EXIT_INTERRUPTED.into())
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(watch).context("cannot start a thread")?;
    Ok(())
}
