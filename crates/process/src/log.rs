//! The log of a process, and its filter, which can change while it runs.

use std::sync::{Mutex, OnceLock, PoisonError};

use tracing::{info, warn};
use tracing_subscriber::Registry;
use tracing_subscriber::filter::{LevelFilter, ParseError, Targets};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::layer::{Layer, SubscriberExt as _};
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::clock::{CLOCK_OFFSET, utc_now, wished};

/// The log of this process. A process has one, as `tracing` does.
static LOG: OnceLock<Log> = OnceLock::new();

struct Log {
    handle: reload::Handle<Targets, Registry>,
    wish: Mutex<String>,
}

/// Why the log does not change.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetError {
    /// The filter makes no sense.
    #[error("invalid log filter")]
    Invalid(#[from] ParseError),
    /// The process has no log of weft's.
    #[error("this process does not log in weft's way")]
    NoLog,
}

/// Logs to standard error what `WEFT_LOG` asks for, weft's own `info` without it, as text or, with
/// `WEFT_LOG_FORMAT=json`, as JSON lines. A wrong wish is said and `info` taken instead.
pub fn log_to_stderr() {
    let wish = std::env::var("WEFT_LOG").unwrap_or_default();
    let (targets, wish, wrong) = match filter(&wish) {
        Ok(targets) => (targets, wish, None),
        Err(error) => (only_weft(LevelFilter::INFO), "info".to_owned(), Some((wish, error))),
    };
    let (targets, handle) = reload::Layer::new(targets);
    let lines =
        tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false).with_timer(WallClock);
    let lines: Box<dyn Layer<Registry> + Send + Sync> = match std::env::var("WEFT_LOG_FORMAT").as_deref() {
        Ok("json") => lines.json().with_filter(targets).boxed(),
        _ => lines.with_filter(targets).boxed(),
    };
    // A program that logs already keeps its own way.
    if tracing_subscriber::registry().with(lines).try_init().is_ok() {
        let _ = LOG.set(Log { handle, wish: Mutex::new(wish) });
    }
    if let Some((wish, error)) = wrong {
        warn!(WEFT_LOG = %wish, %error, "invalid WEFT_LOG; `info` is taken instead");
    }
    match wished() {
        None => {}
        Some(Ok(offset_ns)) => info!(offset_ns, "{CLOCK_OFFSET} sets this process's wall clock wrong"),
        Some(Err(text)) => {
            warn!(
                "invalid {CLOCK_OFFSET} `{text}`; use the form +3600s, -1h or +500ms. The clock stays as it is"
            );
        }
    }
}

/// The process's wall clock, to the microsecond.
struct WallClock;

impl FormatTime for WallClock {
    fn format_time(&self, to: &mut Writer<'_>) -> std::fmt::Result {
        to.write_str(&utc_now().rfc3339(6))
    }
}

/// Logs this from now on: a level, or directives as in `WEFT_LOG`.
///
/// # Errors
/// When it is neither, or the process does not log by [`log_to_stderr`].
pub fn set(wish: &str) -> Result<(), SetError> {
    let targets = filter(wish)?;
    let log = LOG.get().ok_or(SetError::NoLog)?;
    log.handle.reload(targets).map_err(|_| SetError::NoLog)?;
    wish.trim().clone_into(&mut log.wish.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(())
}

/// What is logged: a level, or directives.
pub fn current() -> String {
    let wish = LOG.get().map(|log| log.wish.lock().unwrap_or_else(PoisonError::into_inner).clone());
    wish.filter(|wish| !wish.is_empty()).unwrap_or_else(|| "info".to_owned())
}

/// A level, or directives: `warn,weft_link=debug`.
fn filter(wish: &str) -> Result<Targets, ParseError> {
    match wish.trim() {
        "" => Ok(only_weft(LevelFilter::INFO)),
        wish => wish.parse().map_or_else(|_| wish.parse(), |level| Ok(only_weft(level))),
    }
}

/// QUIC's own spans are left out unless they are asked for: entering one at every packet costs.
fn only_weft(level: LevelFilter) -> Targets {
    Targets::new().with_target("weft", level)
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn a_level_is_for_weft_and_directives_are_for_what_they_name() {
        for (wish, level) in [("", Level::INFO), ("debug", Level::DEBUG), (" WARN ", Level::WARN)] {
            let filter = filter(wish).unwrap();
            assert!(filter.would_enable("weft_link::dial", &level), "{wish:?}");
            assert!(!filter.would_enable("quinn::connection", &level), "{wish:?}");
        }
        assert!(!filter("").unwrap().would_enable("weft_agent", &Level::DEBUG));
        let filter = filter("warn,weft_link=debug,quinn=trace").unwrap();
        assert!(filter.would_enable("weft_link::dial", &Level::DEBUG));
        assert!(!filter.would_enable("weft_agent", &Level::INFO));
        assert!(filter.would_enable("quinn::connection", &Level::TRACE));
        assert!(super::filter("weft=loud").is_err());
    }

    #[test]
    fn the_filter_changes_while_the_process_runs() {
        log_to_stderr();
        assert_eq!(current(), "info");
        let enabled = || tracing::enabled!(target: "weft_test", Level::DEBUG);
        assert!(!enabled());
        set("warn,weft_test=debug").unwrap();
        assert_eq!((current().as_str(), enabled()), ("warn,weft_test=debug", true));
        assert!(matches!(set("weft=loud"), Err(SetError::Invalid(_))));
        assert_eq!(current(), "warn,weft_test=debug", "what is wrong changes nothing");
        set("error").unwrap();
        assert!(!enabled());
    }
}
