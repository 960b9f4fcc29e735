//! Amounts: whole numbers, so that the same text and the same seed mean the same on every machine.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A text or a number is no amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadAmount {
    /// No share.
    #[error("a share is a number of percent above 0 and up to 100, to the fourth decimal place")]
    Share,
    /// No time.
    #[error("a time is a whole number with ns, us, ms or s, up to 10 s")]
    Lag,
    /// No rate.
    #[error("a rate of bit errors lies between 1e-15 and 1e-3, as in `1e-9`")]
    Rate,
}

/// A share of packets: above nothing, and all of them at most. In JSON a number of parts per million, as text `2.5%`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline, extend("minimum" = 1, "maximum" = 1_000_000)))]
#[serde(try_from = "u32", into = "u32")]
pub struct Share(u32);

/// How late a packet is: above nothing, and 10 s at most. In JSON a number of nanoseconds, as text `2ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline, extend("minimum" = 1, "maximum" = 10_000_000_000_u64)))]
#[serde(try_from = "u64", into = "u64")]
pub struct Lag(u64);

/// How many of the bits are wrong: 1e-15 to 1e-3. In JSON the number of wrong bits in 10^15, as text `1e-9`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline, extend("minimum" = 1, "maximum" = 1_000_000_000_000_u64)))]
#[serde(try_from = "u64", into = "u64")]
pub struct Rate(u64);

const PPM: u32 = 1_000_000;
const PPM_PER_PERCENT: u32 = 10_000;
const PPM_DECIMALS: usize = 4;
const LAG_MAX: u64 = 10_000_000_000;
const RATE_MAX: u64 = 1_000_000_000_000;
const RATE_EXPONENT: i32 = 15;
const UNITS: [(&str, u64); 4] = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];

/// An amount as a number: its name, the most that it may be, and how it is read.
macro_rules! amount {
    ($name:ident($number:ty) up to $most:expr, $( #[$doc:meta] )+ $read:ident) => {
        impl $name {
            $( #[$doc] )+
            pub const fn $read(self) -> $number {
                self.0
            }
        }

        impl TryFrom<$number> for $name {
            type Error = BadAmount;

            fn try_from(number: $number) -> Result<Self, BadAmount> {
                if (1..=$most).contains(&number) { Ok(Self(number)) } else { Err(BadAmount::$name) }
            }
        }

        impl From<$name> for $number {
            fn from(amount: $name) -> Self {
                amount.0
            }
        }
    };
}

amount! {
    Share(u32) up to PPM,
    /// In parts per million.
    ppm
}
amount! {
    Lag(u64) up to LAG_MAX,
    /// In nanoseconds.
    as_nanos
}
amount! {
    Rate(u64) up to RATE_MAX,
    /// Wrong bits in 10^15.
    in_1e15
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / PPM_PER_PERCENT, self.0 % PPM_PER_PERCENT);
        if rest == 0 {
            return write!(f, "{whole}%");
        }
        let decimals = format!("{rest:0PPM_DECIMALS$}");
        write!(f, "{whole}.{}%", decimals.trim_end_matches('0'))
    }
}

impl fmt::Display for Lag {
    /// In the largest unit that leaves a whole number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = UNITS.iter().find(|(_, nanos)| self.0.is_multiple_of(*nanos));
        let (unit, nanos) = fits.unwrap_or(&UNITS[3]);
        write!(f, "{}{unit}", self.0 / nanos)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut digits, mut exponent) = (self.0, RATE_EXPONENT);
        while digits.is_multiple_of(10) {
            (digits, exponent) = (digits / 10, exponent - 1);
        }
        write!(f, "{digits}e-{exponent}")
    }
}

/// `12.5` as 125 and one decimal place; digits and one point alone.
fn decimal(text: &str) -> Option<(u64, usize)> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let sound = !whole.is_empty() && digits(whole) && digits(decimals) && !text.ends_with('.');
    let number = sound.then(|| format!("{whole}{decimals}").parse().ok())??;
    Some((number, decimals.len()))
}

impl FromStr for Share {
    type Err = BadAmount;

    /// A number of percent, with or without the sign.
    fn from_str(text: &str) -> Result<Self, BadAmount> {
        let (number, decimals) = decimal(text.strip_suffix('%').unwrap_or(text)).ok_or(BadAmount::Share)?;
        let shift = PPM_DECIMALS.checked_sub(decimals).ok_or(BadAmount::Share)? as u32;
        let ppm = number.checked_mul(10_u64.pow(shift)).and_then(|ppm| u32::try_from(ppm).ok());
        ppm.ok_or(BadAmount::Share)?.try_into()
    }
}

impl FromStr for Lag {
    type Err = BadAmount;

    fn from_str(text: &str) -> Result<Self, BadAmount> {
        let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
        let (_, nanos) = UNITS.iter().find(|(name, _)| *name == unit).ok_or(BadAmount::Lag)?;
        let number: u64 = digits.parse().map_err(|_| BadAmount::Lag)?;
        number.checked_mul(*nanos).ok_or(BadAmount::Lag)?.try_into()
    }
}

impl FromStr for Rate {
    type Err = BadAmount;

    fn from_str(text: &str) -> Result<Self, BadAmount> {
        let (mantissa, exponent) = text.split_once("e-").ok_or(BadAmount::Rate)?;
        let (number, decimals) = decimal(mantissa).ok_or(BadAmount::Rate)?;
        let exponent: u8 = exponent.parse().map_err(|_| BadAmount::Rate)?;
        let shift = usize::from(exponent) + decimals;
        let shift = (RATE_EXPONENT as usize).checked_sub(shift).ok_or(BadAmount::Rate)?;
        number.checked_mul(10_u64.pow(shift as u32)).ok_or(BadAmount::Rate)?.try_into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_as_text() {
        for (text, ppm, written) in [
            ("5%", 50_000, "5%"),
            ("5", 50_000, "5%"),
            ("0.0001", 1, "0.0001%"),
            ("12.50%", 125_000, "12.5%"),
        ] {
            let share: Share = text.parse().unwrap();
            assert_eq!((share.ppm(), share.to_string().as_str()), (ppm, written));
        }
        for (text, nanos, written) in [
            ("2ms", 2_000_000, "2ms"),
            ("1500us", 1_500_000, "1500us"),
            ("10s", LAG_MAX, "10s"),
            ("7ns", 7, "7ns"),
        ] {
            let lag: Lag = text.parse().unwrap();
            assert_eq!((lag.as_nanos(), lag.to_string().as_str()), (nanos, written));
        }
        for (text, number, written) in [
            ("1e-9", 1_000_000, "1e-9"),
            ("2.5e-12", 2_500, "25e-13"),
            ("1e-15", 1, "1e-15"),
            ("1e-3", RATE_MAX, "1e-3"),
        ] {
            let rate: Rate = text.parse().unwrap();
            assert_eq!((rate.in_1e15(), rate.to_string().as_str()), (number, written));
        }
    }

    #[test]
    fn invalid_amounts_are_refused() {
        for text in [
            "",
            "0",
            "0%",
            "-1",
            "101",
            "100.0001",
            "0.00001",
            "1.",
            ".5",
            "5 %",
            "5%%",
            "1e1",
            "99999999999999999999",
        ] {
            assert_eq!(text.parse::<Share>(), Err(BadAmount::Share), "{text}");
        }
        for text in ["", "0s", "1", "ms", "1.5ms", "-1ms", "11s", "1h", "1 ms", "99999999999999999999ns"] {
            assert_eq!(text.parse::<Lag>(), Err(BadAmount::Lag), "{text}");
        }
        for text in [
            "",
            "0e-9",
            "1",
            "1e9",
            "1e-16",
            "1e-2",
            "1.5e-15",
            "e-9",
            "1e-",
            "1e-999",
            "99999999999999999999e-9",
        ] {
            assert_eq!(text.parse::<Rate>(), Err(BadAmount::Rate), "{text}");
        }
        assert!(
            serde_json::from_str::<Share>("0").is_err() && serde_json::from_str::<Share>("1000001").is_err()
        );
        assert!(serde_json::from_str::<Lag>("0").is_err() && serde_json::from_str::<Rate>("0").is_err());
    }
}
