//! The arguments about keys of management.

use std::io::Read as _;

use clap::Args;
use weft_wire::GidPrefix;

/// The keys that managers, ports and clients of subnet administration show each other.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Subnet manager")]
pub(crate) struct KeyArgs {
    /// M_Key that ports ask for: a number, or @FILE to keep it out of process lists; 0 protects nothing
    #[arg(long, value_name = "KEY|@FILE", default_value = "0")]
    pub(crate) m_key: Key,

    /// Protection without the M_Key: 0 refuses Sets, 1 also hides the key, 2 and 3 refuse every request
    #[arg(long, value_name = "LEVEL", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=3))]
    pub(crate) m_key_protection: u8,

    /// Seconds until a port drops its protection after a wrong M_Key and no right one; 0 for never
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub(crate) m_key_lease: u16,

    /// SM_Key that subnet managers of one fabric share: a number, or @FILE
    #[arg(long, value_name = "KEY|@FILE", default_value = "1")]
    pub(crate) sm_key: Key,

    /// Key by which subnet administration trusts a request: a number, or @FILE [default: 1; a random one with --vfs]
    #[arg(long, value_name = "KEY|@FILE")]
    pub(crate) sa_key: Option<Key>,
}

/// A key that must not be printed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key(pub(crate) u64);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}

/// No key is longer, in digits.
const FILE_BYTES_MAX: u64 = 64;

impl std::str::FromStr for Key {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some(path) = text.strip_prefix('@') else { return number(text) };
        let mut read = String::new();
        let file = std::fs::File::open(path).map(|file| file.take(FILE_BYTES_MAX));
        file.and_then(|mut file| file.read_to_string(&mut read))
            .map_err(|error| format!("{path}: {error}"))?;
        number(read.trim()).map_err(|error| format!("{path}: {error}"))
    }
}

/// The upper half of the GIDs of a subnet.
pub(super) fn subnet_prefix(text: &str) -> Result<GidPrefix, String> {
    const MULTICAST: u64 = 0xff;
    let Key(prefix) = number(text).map_err(|_| "a prefix is a number of 64 bits, in hex with 0x")?;
    if prefix == 0 || prefix >> 56 == MULTICAST {
        return Err("a prefix is not 0, and does not begin with 0xff, as multicast groups do".into());
    }
    Ok(GidPrefix(prefix))
}

fn number(text: &str) -> Result<Key, String> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let number = digits.map_or_else(|| text.parse(), |digits| u64::from_str_radix(digits, 16));
    number.map(Key).map_err(|_| "a key is a number of 64 bits, in hex with 0x".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_not_a_multicast_groups() {
        assert_eq!(subnet_prefix("0xfec0000000000001"), Ok(GidPrefix(0xfec0_0000_0000_0001)));
        for wrong in ["0", "0xff02000000000000", "fe80", "0x1fe80000000000000"] {
            assert!(subnet_prefix(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_key_is_a_number_or_a_file_of_one() {
        let key = |text: &str| text.parse::<Key>();
        assert_eq!((key("17"), key("0x1234")), (Ok(Key(17)), Ok(Key(0x1234))));
        assert_eq!(key("0xffffffffffffffff"), Ok(Key(u64::MAX)));
        for wrong in ["", "0x", "-1", "0x1ffffffffffffffff", "12 34", "@/nowhere/at/all"] {
            assert!(key(wrong).is_err(), "{wrong}");
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        let named = format!("@{}", file.path().display());
        assert!(key(&named).is_err(), "the file is empty");
        std::fs::write(file.path(), "0xfeed\n").unwrap();
        assert_eq!(key(&named), Ok(Key(0xfeed)));
        assert_eq!(format!("{:?}", Key(0xfeed)), "Key", "it is for no log");
    }
}
