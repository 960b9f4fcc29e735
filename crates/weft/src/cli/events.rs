//! The options of `weft events`.

use std::ffi::OsStr;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, StyledStr, TypedValueParser};
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, Args, Command, Error};
use weft_control::{EventKind, Utc};

/// `events`
#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// Print events as they come, from now on or from `--since`, until the laboratory ends
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Only events of this node, its ports or its process
    #[arg(long, value_name = "NODE")]
    pub(crate) node: Option<String>,
    /// Only events of these kinds, by their names in `--fields` (`link-down,link-up`)
    #[arg(long, value_name = "KIND", value_delimiter = ',', hide_possible_values = true,
        value_parser = KindParser)]
    pub(crate) kind: Vec<String>,
    /// First moment to print: a duration back (`30s`, `5m`, `2h`, `500ms`), a time in UTC (`12:00:00` of the last 24 hours,
    /// `2026-01-31T12:00:00Z`), or `start` [default: `start`; with --follow, now]
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<Since>,
    /// Print kind and fields as `name=value` instead of a sentence
    #[arg(long, conflicts_with = "json")]
    pub(crate) fields: bool,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Takes the name of a kind. One that does not exist is refused with a similar name: all of them would fill a screen.
#[derive(Clone, Copy)]
struct KindParser;

impl TypedValueParser for KindParser {
    type Value = String;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<String, Error> {
        let kinds = PossibleValuesParser::new(EventKind::names());
        kinds.parse_ref(command, arg, value).map_err(|mut error| {
            error.remove(ContextKind::ValidValue);
            let all: StyledStr = "docs/control.md lists all kinds of events".into();
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![all]));
            error
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(EventKind::names().map(PossibleValue::new)))
    }
}

/// The first moment of which events are printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Since {
    /// All that is remembered.
    Start,
    /// This long ago.
    Ago(Duration),
    /// The last time that clocks showed this in UTC, in nanoseconds since midnight.
    Clock(u64),
    /// A time in UTC.
    Time(Utc),
}

/// The last whole year that 64 bits of nanoseconds since 1970 count.
const LAST_YEAR: u16 = 2553;

/// A day and its first moment.
const DAY: &str = "1970-01-01T";
const MIDNIGHT: &str = "T00:00:00.000000000Z";

impl Since {
    /// The moment, if it is this time now.
    pub(crate) fn before(&self, now: Utc) -> Utc {
        const DAY_NS: u64 = 86_400_000_000_000;
        let back = |nanos: u64| Utc::from_nanos(now.as_nanos().saturating_sub(nanos));
        match self {
            Self::Start => Utc::default(),
            Self::Ago(ago) => back(u64::try_from(ago.as_nanos()).unwrap_or(u64::MAX)),
            Self::Clock(since_midnight) => back((now.as_nanos() % DAY_NS + DAY_NS - since_midnight) % DAY_NS),
            Self::Time(time) => *time,
        }
    }
}

impl FromStr for Since {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "start" {
            return Ok(Self::Start);
        }
        let whole = text.strip_suffix('Z').unwrap_or(text);
        // What a time leaves out at its end is that of midnight.
        let filled = |time: &str| {
            let rest = MIDNIGHT.get(time.len().checked_sub("2026-01-31".len())?..)?;
            let whole = format!("{time}{rest}");
            whole.parse::<Utc>().ok().or_else(|| far_away(&whole))
        };
        if let Some(time) = filled(whole) {
            return Ok(Self::Time(time));
        }
        if let Some(time) = filled(&format!("{DAY}{whole}")).filter(|_| whole.len() >= "12:00".len()) {
            return Ok(Self::Clock(time.as_nanos()));
        }
        duration(text).map(Self::Ago).map_err(|_| {
            format!(
                "invalid time `{text}`; use `30s`, `5m`, `2h`, `500ms`, `12:00:00`, `2026-01-31T12:00:00Z` or `start`"
            )
        })
    }
}

/// The last moment that 64 bits of nanoseconds count, for a date after it.
fn far_away(text: &str) -> Option<Utc> {
    let (year, rest) = text.split_at_checked(4)?;
    let is_later = year.parse::<u16>().ok()? > LAST_YEAR;
    is_later.then(|| format!("2000{rest}").parse::<Utc>().ok())?.map(|_| Utc::from_nanos(u64::MAX))
}

/// A number and its unit: `30s`, `5m`, `500ms`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("invalid duration `{text}`; use `30s`, `5m`, `2h` or `500ms`");
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let milliseconds = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(wrong()),
    };
    number.checked_mul(milliseconds).map(Duration::from_millis).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments() {
        let ago = |text: &str| match text.parse() {
            Ok(Since::Ago(ago)) => ago.as_millis(),
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(
            [ago("30s"), ago("5m"), ago("2h"), ago("500ms"), ago("0s")],
            [30_000, 300_000, 7_200_000, 500, 0]
        );
        for (text, time) in [
            ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00.000000000Z"),
            ("2999-01-01T00:00:00Z", "2554-07-21T23:34:33.709551615Z"),
            ("2026-01-31T12:00:00.25Z", "2026-01-31T12:00:00.250000000Z"),
            ("2026-01-31T12:30", "2026-01-31T12:30:00.000000000Z"),
            ("2026-01-31", "2026-01-31T00:00:00.000000000Z"),
        ] {
            assert_eq!(text.parse(), Ok(Since::Time(time.parse().unwrap())), "{text}");
        }
        assert_eq!("start".parse(), Ok(Since::Start));
        for wrong in [
            "",
            "5",
            "s",
            "5 s",
            "5w",
            "-5s",
            "yesterday",
            "2026-1-31",
            "99999999999999999999s",
            "2026/01/31",
            "2026-02-30",
            "2026-01-31T24:00:00Z",
            "24:00",
            "12",
            "12:0x",
            "noon",
        ] {
            let says = format!("invalid time `{wrong}`; use `30s`, `5m`, `2h`, `500ms`, `12:00:00`, ");
            assert!(wrong.parse::<Since>().unwrap_err().starts_with(&says), "{wrong}");
        }
    }

    #[test]
    fn a_clock_time_is_of_the_last_24_hours() {
        let now: Utc = "2026-01-31T12:00:00.500000000Z".parse().unwrap();
        let first = |text: &str| text.parse::<Since>().unwrap().before(now).rfc3339(3);
        for (text, moment) in [
            ("11:59", "2026-01-31T11:59:00.000Z"),
            ("12:00:00.5", "2026-01-31T12:00:00.500Z"),
            ("12:00:01Z", "2026-01-30T12:00:01.000Z"),
            ("23:59:59.999", "2026-01-30T23:59:59.999Z"),
            ("1s", "2026-01-31T11:59:59.500Z"),
            ("start", "1970-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(first(text), moment, "{text}");
        }
    }
}
