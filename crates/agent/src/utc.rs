//! Points in time as people read them.

use std::time::{Duration, SystemTime};

/// A point in time in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Utc {
    since_1970: Duration,
}

impl Utc {
    /// Now.
    pub fn now() -> Self {
        Self { since_1970: SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default() }
    }

    /// From nanoseconds since 1970-01-01.
    pub fn from_nanos(nanoseconds: u64) -> Self {
        Self { since_1970: Duration::from_nanos(nanoseconds) }
    }

    /// Nanoseconds since 1970-01-01.
    pub fn as_nanos(self) -> u64 {
        u64::try_from(self.since_1970.as_nanos()).unwrap_or(u64::MAX)
    }

    /// RFC 3339 with so many digits behind the second, at least one and at most nine.
    pub fn rfc3339(self, digits: usize) -> String {
        let (year, month, day) = date(self.since_1970.as_secs() / 86_400);
        let (hour, minute, second) = self.time_of_day();
        let mut fraction = format!("{:09}", self.since_1970.subsec_nanos());
        fraction.truncate(digits.max(1));
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction}Z")
    }

    /// Year to second in fourteen digits, for the names of files.
    pub fn digits(self) -> String {
        let (year, month, day) = date(self.since_1970.as_secs() / 86_400);
        let (hour, minute, second) = self.time_of_day();
        format!("{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}")
    }

    fn time_of_day(self) -> (u64, u64, u64) {
        let second = self.since_1970.as_secs() % 86_400;
        (second / 3600, second / 60 % 60, second % 60)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_dates() {
        assert_eq!(date(0), (1970, 1, 1));
        assert_eq!(date(59), (1970, 3, 1));
        assert_eq!(date(11_016), (2000, 2, 29));
        assert_eq!(date(11_017), (2000, 3, 1));
        assert_eq!(date(20_777), (2026, 11, 20));
        assert_eq!(date(47_540), (2100, 2, 28));
    }

    #[test]
    fn a_moment_is_written_to_the_digit() {
        let moment = Utc::from_nanos(1_795_181_395_012_345_678);
        assert_eq!(moment.rfc3339(3), "2026-11-20T13:29:55.012Z");
        assert_eq!(moment.rfc3339(9), "2026-11-20T13:29:55.012345678Z");
        assert_eq!(moment.digits(), "20261120132955");
        assert_eq!(moment.as_nanos(), 1_795_181_395_012_345_678);
    }
}
