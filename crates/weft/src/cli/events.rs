//! The options of `weft events`.

use std::str::FromStr;
use std::time::Duration;

use clap::Args;

/// `events`
#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// Print events as they come, from now on or from `--since`, until the laboratory ends
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// First moment to print: a duration back (`30s`, `5m`, `2h`, `500ms`), a time in UTC (`2026-01-31T12:00:00Z`), or
    /// `start` [default: `start`; with --follow, now]
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<Since>,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// The first moment of which events are printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Since {
    /// All that is remembered.
    Start,
    /// This long ago.
    Ago(Duration),
    /// A time in UTC or its beginning, in RFC 3339's form, without `Z`.
    Time(String),
}

impl FromStr for Since {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "start" {
            return Ok(Self::Start);
        }
        let wrong = || {
            format!(
                "invalid time `{text}`; use `30s`, `5m`, `2h`, `500ms`, `2026-01-31T12:00:00Z` or `start`"
            )
        };
        // Each digit where the form has one, as far as the text goes.
        let time = text.strip_suffix('Z').unwrap_or(text);
        let form = "0000-00-00T00:00:00.000000000";
        let fits = |(c, form): (char, char)| if form == '0' { c.is_ascii_digit() } else { c == form };
        if (10..=form.len()).contains(&time.len()) && time.chars().zip(form.chars()).all(fits) {
            return Ok(Self::Time(time.to_owned()));
        }
        duration(text).map(Self::Ago).map_err(|_| wrong())
    }
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
            ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00"),
            ("2026-01-31T12:00:00.25Z", "2026-01-31T12:00:00.25"),
            ("2026-01-31", "2026-01-31"),
        ] {
            assert_eq!(text.parse(), Ok(Since::Time(time.to_owned())));
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
        ] {
            assert!(wrong.parse::<Since>().is_err(), "{wrong}");
        }
    }
}
