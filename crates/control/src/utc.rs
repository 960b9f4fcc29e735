//! Moments of the wall clock, and what tells one start of a process from the next.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A moment in UTC; in JSON it is RFC 3339: `"2026-11-20T13:29:55.012345678Z"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Utc {
    /// Nanoseconds since 1970-01-01.
    nanos: u64,
}

const NANOS: u64 = 1_000_000_000;

/// The shape of [`Utc`] in JSON: a digit stands for any digit.
const FORM: &str = "0000-00-00T00:00:00.000000000Z";

impl Utc {
    /// From nanoseconds since 1970-01-01.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self { nanos }
    }

    /// Nanoseconds since 1970-01-01.
    pub const fn as_nanos(self) -> u64 {
        self.nanos
    }

    /// The same moment by a clock that this one's is ahead of, by this number of nanoseconds; a negative number means behind.
    #[must_use]
    pub const fn less(self, ahead_ns: i64) -> Self {
        Self { nanos: self.nanos.saturating_sub_signed(ahead_ns) }
    }

    /// How many nanoseconds the clock that showed this is ahead of another one, by which it was read between `asked` and `heard`;
    /// negative where it is behind. 0 where the two may agree: more cannot be known.
    pub fn ahead_of(self, asked: Self, heard: Self) -> i64 {
        if (asked..=heard).contains(&self) {
            return 0;
        }
        let middle = i128::midpoint(asked.nanos.into(), heard.nanos.into());
        let ahead = i128::from(self.nanos) - middle;
        i64::try_from(ahead).unwrap_or(if ahead > 0 { i64::MAX } else { i64::MIN })
    }

    /// RFC 3339 with this many digits behind the second, at least one and at most nine.
    pub fn rfc3339(self, digits: usize) -> String {
        let [year, month, day, hour, minute, second] = self.parts();
        let mut fraction = format!("{:09}", self.nanos % NANOS);
        fraction.truncate(digits.max(1));
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction}Z")
    }

    /// Year to second in fourteen digits, for the names of files.
    pub fn digits(self) -> String {
        let [year, month, day, hour, minute, second] = self.parts();
        format!("{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}")
    }

    fn parts(self) -> [u64; 6] {
        let seconds = self.nanos / NANOS;
        let (year, month, day) = date(seconds / 86_400);
        let second = seconds % 86_400;
        [year, month, day, second / 3600, second / 60 % 60, second % 60]
    }
}

/// To the millisecond.
impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.rfc3339(3))
    }
}

/// A text that is no time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid time `{0}`; use the form 2026-11-20T13:29:55.012345678Z")]
pub struct InvalidTime(pub String);

impl FromStr for Utc {
    type Err = InvalidTime;

    fn from_str(text: &str) -> Result<Self, InvalidTime> {
        let invalid = || InvalidTime(text.to_owned());
        let fits = |(c, form): (u8, u8)| if form == b'0' { c.is_ascii_digit() } else { c == form };
        if text.len() != FORM.len() || !text.bytes().zip(FORM.bytes()).all(fits) {
            return Err(invalid());
        }
        let number = |range: std::ops::Range<usize>| text[range].parse::<u64>().unwrap_or_default();
        let (year, month, day) = (number(0..4), number(5..7), number(8..10));
        let (hour, minute, second) = (number(11..13), number(14..16), number(17..19));
        let days = days(year, month, day).ok_or_else(invalid)?;
        if hour > 23 || minute > 59 || second > 59 {
            return Err(invalid());
        }
        let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
        let nanos = seconds.checked_mul(NANOS).and_then(|whole| whole.checked_add(number(20..29)));
        nanos.map(Self::from_nanos).ok_or_else(invalid)
    }
}

/// The date of a day counted from 1970-01-01. Years are counted from March, so that the leap day comes last.
fn date(days_since_1970: u64) -> (u64, u64, u64) {
    let days = days_since_1970 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

/// The reverse of [`date`]; `None` for a day that no calendar has, and before 1970.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    if year < 1970 || !(1..=12).contains(&month) || day == 0 {
        return None;
    }
    let (march_year, march_month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, of_era) = (march_year / 400, march_year % 400);
    let of_year = (153 * march_month + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    (date(days) == (year, month, day)).then_some(days)
}

impl Serialize for Utc {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.rfc3339(9))
    }
}

impl<'de> Deserialize<'de> for Utc {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for Utc {
    fn schema_name() -> Cow<'static, str> {
        "Utc".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A moment in UTC (RFC 3339, to the nanosecond).",
            "type": "string",
            "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{9}Z$"
        })
    }
}

/// One life of a process: another start is another incarnation, and a later one is greater. In JSON it is sixteen
/// hexadecimal digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(pub u64);

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Serialize for Incarnation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Incarnation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        let is_whole = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u64::from_str_radix(&text, 16).ok().filter(|_| is_whole);
        number.map(Self).ok_or_else(|| D::Error::custom(format!("invalid incarnation `{text}`")))
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for Incarnation {
    fn schema_name() -> Cow<'static, str> {
        "Incarnation".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "One life of a process; a later start is greater.",
            "type": "string",
            "pattern": "^[0-9a-f]{16}$"
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_clock_is_ahead_only_where_it_surely_is() {
        let at = Utc::from_nanos;
        for (theirs, ahead) in [(100, 0), (105, 0), (110, 0), (111, 6), (3_705, 3_600), (99, -6), (5, -100)] {
            assert_eq!(at(theirs).ahead_of(at(100), at(110)), ahead, "{theirs}");
        }
        assert_eq!((at(3_705).less(3_600), at(5).less(-100), at(5).less(9)), (at(105), at(105), at(0)));
        assert_eq!(at(u64::MAX).ahead_of(at(0), at(0)), i64::MAX);
    }

    #[test]
    fn moments_are_written_as_rfc_3339_has_them() {
        for (nanos, text) in [
            (0, "1970-01-01T00:00:00.000000000Z"),
            (951_782_400_000_000_000, "2000-02-29T00:00:00.000000000Z"),
            (1_795_181_395_012_345_678, "2026-11-20T13:29:55.012345678Z"),
            (4_107_542_400_000_000_000, "2100-03-01T00:00:00.000000000Z"),
        ] {
            assert_eq!(Utc { nanos }.rfc3339(9), text);
            assert_eq!(text.parse(), Ok(Utc { nanos }));
        }
        let moment = Utc::from_nanos(1_795_181_395_012_345_678);
        assert_eq!(moment.to_string(), "2026-11-20T13:29:55.012Z");
        assert_eq!(moment.digits(), "20261120132955");
        for wrong in [
            "",
            "2026-11-20",
            "2026-02-29T00:00:00.000000000Z",
            "2026-13-01T00:00:00.000000000Z",
            "2026-01-00T00:00:00.000000000Z",
            "2026-01-01T24:00:00.000000000Z",
            "1969-12-31T23:59:59.999000000Z",
            "2026-01-01T00:00:00.000Z",
            "9999-01-01T00:00:00.000000000Z",
            "2026-01-01 00:00:00.000000000Z",
        ] {
            assert!(wrong.parse::<Utc>().is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn every_moment_is_read_back(nanos: u64) {
            let utc = Utc { nanos };
            prop_assert_eq!(utc.rfc3339(9).parse(), Ok(utc));
        }

        #[test]
        fn later_moments_are_later_texts(a: u64, b: u64) {
            let texts = [Utc { nanos: a }, Utc { nanos: b }].map(|utc| utc.rfc3339(9));
            prop_assert_eq!(a.cmp(&b), texts[0].cmp(&texts[1]));
        }
    }

    #[test]
    fn incarnations_are_ordered_in_json_too() {
        let incarnation = Incarnation(0x1234);
        let text = serde_json::to_string(&incarnation).unwrap();
        assert_eq!(text, "\"0000000000001234\"");
        assert_eq!(serde_json::from_str::<Incarnation>(&text).unwrap(), incarnation);
        assert!(serde_json::from_str::<Incarnation>("\"1234\"").is_err());
    }
}
