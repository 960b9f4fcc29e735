//! Partitions, and how well each is to be isolated from the others.

use serde::{Deserialize, Serialize};
use weft_wire::Guid;

/// The lower 15 bits of the default partition's P_Key (IBA 10.9.2).
pub const DEFAULT_PKEY: u16 = 0x7fff;

/// The partitions of a fabric.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partitions {
    /// In the order of the file.
    pub list: Vec<Partition>,
    /// What happens when a policy cannot be kept.
    pub strictness: Strictness,
}

impl Partitions {
    /// Whether any partition has a policy of its own.
    pub fn isolates(&self) -> bool {
        self.list.iter().any(|partition| partition.isolation != Isolation::Def)
    }
}

/// One partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partition {
    /// Its name; may be empty.
    pub name: String,
    /// The lower 15 bits of its P_Key.
    pub pkey: u16,
    /// Who belongs to it.
    pub members: Vec<Member>,
    /// How well it is to be isolated.
    pub isolation: Isolation,
}

/// A member of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The port's GUID.
    pub guid: Guid,
    /// Full members talk to all, limited ones to full ones.
    pub full: bool,
}

weft_wire::named! {
    /// How well a partition is to be isolated (Zahid 2016, section 6.1), by its word in a partitions file.
    #[derive(Default, PartialOrd, Ord)]
    pub enum Isolation {
        /// Its links carry no one else.
        Phy = "phy",
        /// Where it shares links, it has lanes of its own there.
        Vlane = "vlane",
        /// As well as is left over.
        #[default]
        Def = "def",
    }
}

/// What happens when a policy cannot be kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strictness {
    /// The engine refuses.
    Strict,
    /// The engine goes on and says which policies are not kept.
    #[default]
    BestEffort,
}
