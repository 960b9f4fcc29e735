//! Identity of a virtual machine: the part that moves with it.

use serde::{Deserialize, Serialize};
use weft_wire::{Guid, Lid, PKey};

/// Partitions of a virtual machine at most: as many as two blocks of a P_Key table hold (IBA 14.2.5.7).
pub const P_KEYS_MAX: usize = 64;

weft_wire::named! {
    /// The source of a virtual machine's LID (the two vSwitch schemes), and of its GUID (the two models of paper 004, section III).
    #[derive(Default)]
    pub enum Scheme {
        /// Every slot has an identity from the start. A virtual machine takes that of its first slot, and a move swaps the identities of
        /// two slots.
        #[default]
        Prepopulated = "prepopulated",
        /// A slot has an identity only with a virtual machine in it, and a move leaves it empty.
        Dynamic = "dynamic",
        /// The same, but the identity is the slot's: a virtual machine that moves has that of its new slot.
        Function = "function",
    }
}

impl Scheme {
    /// The scheme where slots are empty without a virtual machine, or not, and GUIDs stay with slots that are, or not.
    pub fn of(is_empty: bool, guids_stay: bool) -> Self {
        match (is_empty, guids_stay) {
            (true, true) => Self::Function,
            (true, false) => Self::Dynamic,
            (false, _) => Self::Prepopulated,
        }
    }
}

/// The addresses of a virtual function's port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortIdentity {
    /// The GUID of the node.
    pub node_guid: Guid,
    /// The GUID of its port, which is that of its GID.
    pub port_guid: Guid,
    /// The LID; 0 while it has none.
    pub lid: Lid,
}

impl PortIdentity {
    /// Whether both are the same port, whatever LID it has.
    pub fn is_same_port(&self, other: &Self) -> bool {
        (self.node_guid, self.port_guid) == (other.node_guid, other.port_guid)
    }
}

/// What moves with a virtual machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Its addresses.
    pub port: PortIdentity,
    /// Its partitions, [`P_KEYS_MAX`] at most.
    pub p_keys: Vec<PKey>,
    /// Its weight for routing.
    pub weight: u32,
    /// What it moves in each direction at most, in Mb/s of fabric time; 0 is no limit.
    pub rate_mbps: u32,
}
