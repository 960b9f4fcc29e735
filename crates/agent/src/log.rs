//! What processes of a laboratory log.

use tracing::warn;
use tracing_subscriber::filter::{LevelFilter, ParseError, Targets};
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

/// Logs to standard error what `WEFT_LOG` asks for, `info` of weft's own without it. A wish that makes no sense is
/// said and taken for that.
pub fn log_to_stderr() {
    let wish = std::env::var("WEFT_LOG").unwrap_or_default();
    let (filter, wrong) = match filter(&wish) {
        Ok(filter) => (filter, None),
        Err(error) => (only_weft(LevelFilter::INFO), Some(error)),
    };
    let lines =
        tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false).with_filter(filter);
    // A program that logs already keeps its own way.
    let _ = tracing_subscriber::registry().with(lines).try_init();
    if let Some(error) = wrong {
        warn!(WEFT_LOG = %wish, %error, "WEFT_LOG makes no sense, so it is taken for `info`");
    }
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
}
