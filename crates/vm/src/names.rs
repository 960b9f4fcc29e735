//! Names of virtual machines, hosts and slots.

use serde::{Deserialize, Serialize};

/// Bytes of a name at most.
pub const NAME_BYTES_MAX: usize = 64;
/// Virtual functions of one adapter at most: a vSwitch has 254 ports, two of which are the uplink's and the PF's.
pub const VFS_MAX: u8 = 252;

/// A text cannot be a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("`{0}` cannot be a name; use 1 to 64 letters, digits, `-`, `_` and `.`")]
pub struct BadName(String);

fn is_good(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_.".contains(c)
}

fn check(text: &str) -> Result<String, BadName> {
    let fits = (1..=NAME_BYTES_MAX).contains(&text.len()) && text.chars().all(is_good);
    let shown = || text.chars().take(NAME_BYTES_MAX).collect();
    if fits { Ok(text.to_owned()) } else { Err(BadName(shown())) }
}

macro_rules! name {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl std::str::FromStr for $name {
            type Err = BadName;
            fn from_str(text: &str) -> Result<Self, BadName> {
                check(text).map(Self)
            }
        }

        weft_wire::displayed!($name(text) => "{text}");
        weft_wire::serde_as_text!($name);
    };
}

name! {
    /// A virtual machine's name: 1 to 64 letters, digits, `-`, `_` and `.`.
    VmName
}
name! {
    /// A host's id in its laboratory, of the same form.
    HostName
}

impl HostName {
    /// What comes before all names.
    pub(crate) fn lowest() -> Self {
        Self(String::new())
    }
}

impl VmName {
    /// The name of a machine that somebody else has booted: other characters are `_`, and what is too long is cut.
    pub fn heard(text: &str) -> Self {
        let clean = |c: char| if is_good(c) { c } else { '_' };
        let text: String = text.chars().map(clean).take(NAME_BYTES_MAX).collect();
        Self(if text.is_empty() { "_".to_owned() } else { text })
    }

    /// The name of machine `number` of a fleet, counted from 1.
    ///
    /// # Errors
    ///
    /// [`BadName`] if it gets too long.
    pub fn numbered(&self, number: u32) -> Result<Self, BadName> {
        format!("{self}-{number}").parse()
    }
}

/// A place for one virtual machine: a virtual function of a host's adapter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Slot {
    /// The host.
    pub host: HostName,
    /// The virtual function, counted from 1.
    pub vf: u8,
}

weft_wire::displayed!(Slot { host, vf } => "{host} vf{vf}");

/// A slot in one life of its host's agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The slot.
    pub slot: Slot,
    /// The incarnation of the agent.
    pub incarnation: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for good in ["1", "web-12", "run.3_a", &"x".repeat(64)] {
            assert_eq!(good.parse::<VmName>().unwrap().to_string(), good);
        }
        for bad in ["", "a b", "../x", "é", &"x".repeat(65)] {
            assert!(bad.parse::<VmName>().is_err(), "{bad}");
            assert!(serde_json::from_value::<HostName>(bad.into()).is_err(), "{bad}");
        }
        let heard = |text: &str| VmName::heard(text).to_string();
        assert_eq!([heard("web-1"), heard("a bé"), heard("")], ["web-1", "a_b_", "_"]);
        assert_eq!(heard(&"é".repeat(65)), "_".repeat(64));
        let fleet: VmName = "fleet".parse().unwrap();
        assert_eq!(fleet.numbered(200).unwrap().to_string(), "fleet-200");
        assert!("x".repeat(63).parse::<VmName>().unwrap().numbered(1).is_err());
    }
}
