//! One thing to write.

use weft_wire::{AttributeId, PortNum};

use crate::knowledge::{Key, PortAt, Subnet, VlBlock};
use crate::requests::Set;
use crate::sweep::settings::{ALL_INPUTS, ALL_OUTPUTS, Lanes, vl_arbitration_modifier};

/// One thing to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Write {
    PortInfo(PortAt),
    Lft {
        node: u32,
        block: u16,
    },
    SwitchInfo {
        node: u32,
        top: u16,
    },
    SlToVl {
        at: PortAt,
        modifier: u32,
        lanes: Lanes,
    },
    VlArbitration {
        at: PortAt,
        block: VlBlock,
    },
    /// `is_first`: as a table is before another block is written.
    PKeys {
        at: PortAt,
        block: u16,
        is_first: bool,
    },
}

/// The modifier of a common SLtoVL mapping.
pub(super) const EVERYWHERE: u32 = ALL_INPUTS | ALL_OUTPUTS;

impl Write {
    /// Where it is written to.
    pub(super) fn at(self) -> PortAt {
        match self {
            Self::PortInfo(at)
            | Self::SlToVl { at, .. }
            | Self::VlArbitration { at, .. }
            | Self::PKeys { at, .. } => at,
            Self::Lft { node, .. } | Self::SwitchInfo { node, .. } => PortAt { node, port: PortNum::ZERO },
        }
    }

    /// Whether it goes to all ports of a switch, over what single ones got before.
    pub(super) fn is_common(self) -> bool {
        matches!(self, Self::SlToVl { modifier: EVERYWHERE, .. })
    }

    pub(super) fn name(self) -> (AttributeId, u32) {
        (self.kind().attribute_id(), self.modifier())
    }

    pub(super) fn kind(self) -> Set {
        match self {
            Self::PortInfo(_) => Set::PortInfo,
            Self::Lft { .. } => Set::Lft,
            Self::SwitchInfo { .. } => Set::SwitchInfo,
            Self::SlToVl { .. } => Set::SlToVl,
            Self::PKeys { .. } => Set::PKeys,
            Self::VlArbitration { .. } => Set::VlArbitration,
        }
    }

    pub(super) fn modifier(self) -> u32 {
        match self {
            Self::PortInfo(at) => u32::from(at.port.0),
            Self::Lft { block, .. } | Self::PKeys { block, .. } => u32::from(block),
            Self::SwitchInfo { .. } => 0,
            Self::SlToVl { modifier, .. } => modifier,
            Self::VlArbitration { at, block } => vl_arbitration_modifier(at, block),
        }
    }

    /// How to read back what it writes.
    pub(super) fn read_back(self, subnet: &Subnet) -> Vec<Key> {
        match self {
            Self::PortInfo(at) => vec![Key::PortInfo(at)],
            Self::Lft { node, block } => vec![Key::Lft { node, block }],
            Self::SwitchInfo { node, .. } => vec![Key::SwitchInfo(node)],
            Self::SlToVl { at, modifier: EVERYWHERE, .. } => {
                let of_node = subnet.cabled_ports().filter(|(other, ..)| other.node == at.node);
                of_node.map(|(at, ..)| Key::SlToVl(at, 0)).collect()
            }
            // All inputs are 0x2_0000, whose low byte is input 0.
            Self::SlToVl { at, modifier, .. } => vec![Key::SlToVl(at, (modifier >> 8) as u8)],
            Self::PKeys { at, block, .. } => vec![Key::PKeys(at, block)],
            Self::VlArbitration { at, block } => vec![Key::VlArbitration(at, block)],
        }
    }
}
