//! What other subnet managers are told. Electing a master comes later: for now this manager answers who it is, and
//! says so when it meets another.

use weft_wire::{AddressedMad, DirectedSmp, Guid, Mad, Method, SmInfo, SmKey, SmState, Smp};

use crate::Options;

/// This manager, as others see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) port_guid: Guid,
    pub(crate) act_count: u32,
    pub(crate) master: bool,
}

impl Candidate {
    /// The answer to another manager's Get(SMInfo), by the way that it came.
    pub(crate) fn answer(self, options: &Options, asked: &AddressedMad) -> AddressedMad {
        let info = SmInfo {
            guid: self.port_guid,
            // The key is for managers that have shown theirs, and a Get shows none.
            sm_key: SmKey::default(),
            act_count: self.act_count,
            priority: options.priority & 0xf,
            sm_state: if self.master { SmState::Master } else { SmState::Discovering },
        };
        let mut mad: Mad = asked.mad;
        Smp::method.set(&mut mad.0, Method::GetResp);
        if mad.is_directed() {
            DirectedSmp::direction.set(&mut mad.0, true);
        }
        mad.set_smp_data(&info.encode());
        AddressedMad::smp(asked.lid, mad)
    }
}
