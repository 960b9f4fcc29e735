//! A process's clocks. All of weft reads the wall clock here, so that a test can set it wrong: containers share their machine's
//! clock, and the clocks of machines differ.

use std::env;
use std::sync::LazyLock;
use std::time::{Instant, SystemTime};

use weft_control::{Incarnation, Utc};

/// The variable that says how far a process's wall clock is ahead of its machine's: `+3600s`, `-1h`, `+500ms`.
pub const CLOCK_OFFSET: &str = "WEFT_CLOCK_OFFSET";

/// Read once: a clock does not jump while its process runs.
static OFFSET_NS: LazyLock<i64> = LazyLock::new(|| wished().and_then(Result::ok).unwrap_or(0));

/// Units of an offset, in nanoseconds. `ms` comes before `s`, which ends it.
const UNITS: [(&str, i64); 4] =
    [("ms", 1_000_000), ("s", 1_000_000_000), ("m", 60_000_000_000), ("h", 3_600_000_000_000)];

/// Now, by the wall clock.
pub fn utc_now() -> Utc {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let machines = Utc::from_nanos(u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX));
    machines.less(-*OFFSET_NS)
}

/// What the environment asks for: an offset in nanoseconds, or a text that is none.
pub(crate) fn wished() -> Option<Result<i64, String>> {
    let text = env::var_os(CLOCK_OFFSET)?.to_string_lossy().into_owned();
    Some(offset_ns(&text).ok_or(text))
}

/// A sign, a whole number and a unit, as nanoseconds. No more than the machine's own clock can bear.
fn offset_ns(text: &str) -> Option<i64> {
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let amount = text.strip_prefix(['+', '-'])?;
    let (digits, unit) = UNITS.iter().find_map(|(name, nanos)| Some((amount.strip_suffix(name)?, *nanos)))?;
    let is_whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: i64 = is_whole.then(|| digits.parse().ok())??;
    number.checked_mul(unit)?.checked_mul(sign)
}

/// The clocks of one life of a process.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    began: Instant,
    incarnation: Incarnation,
}

impl Clock {
    /// The process begins now.
    pub fn start() -> Self {
        // A machine starts a process again in more than a nanosecond; a clock that was set back is not its fault.
        Self { began: Instant::now(), incarnation: Incarnation(utc_now().as_nanos()) }
    }

    /// This life of the process.
    pub fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// Nanoseconds since the process began.
    pub fn monotonic_ns(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_have_a_sign_and_a_unit() {
        for (text, nanos) in [
            ("+3600s", 3_600_000_000_000),
            ("-1h", -3_600_000_000_000),
            ("+90m", 5_400_000_000_000),
            ("-500ms", -500_000_000),
            ("+0s", 0),
        ] {
            assert_eq!(offset_ns(text), Some(nanos), "{text}");
        }
        for text in ["", "3600s", "+", "-s", "+1", "+1.5h", "+-1h", "+1 h", "+1d", "+9223372036854775807h"] {
            assert_eq!(offset_ns(text), None, "{text}");
        }
    }
}
