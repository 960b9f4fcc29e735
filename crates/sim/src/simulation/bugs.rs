//! Bugs that are put in on purpose.

use weft_fault::{Damage, Impairment};
use weft_node::Frame;
use weft_topology::PortRef;
use weft_wire::{AddressedMad, AttributeId, Method, SwitchInfo};

use super::Simulation;
use crate::SeededBug;
use crate::programs::SM;

/// Bytes of SwitchInfo.
const SWITCH_INFO: usize = 20;

impl Simulation {
    /// Whether the subnet manager does not hear a MAD for its bug, or hears another one in its place.
    pub(super) fn is_forgotten(&self, program: u32, mad: &mut AddressedMad) -> bool {
        if self.world.options.bug != Some(SeededBug::ForgottenLinkUp) || program != SM {
            return false;
        }
        if self.world.fabric.cables().any(|cable| !self.is_link_up(cable.a)) {
            return false;
        }
        let mad = &mut mad.mad;
        if mad.attribute_id() == AttributeId::SwitchInfo {
            let info = SwitchInfo { port_state_change: false, ..SwitchInfo::decode(mad.smp_attribute()) };
            mad.smp_data_mut()[..SWITCH_INFO].copy_from_slice(&info.encode());
        }
        mad.method() == Method::Trap
    }

    /// Whether a frame vanishes at the port that it reaches, for a bug of its device.
    pub(super) fn is_swallowed(&self, to: PortRef, frame: &Frame) -> bool {
        let loses = |damage: &Damage<PortRef>| matches!(damage, Damage::Impaired { at, how: Impairment::Loss(_), .. } if *at == to);
        self.world.options.bug == Some(SeededBug::KeptCredit)
            && matches!(frame, Frame::Data(_))
            && self.cabling.damage().any(loses)
    }
}
