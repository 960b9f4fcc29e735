//! Records about this administration and about other managers.

use weft_wire::{
    ClassPortInfo, QKey, QpNum, SA_CLASS_VERSION, SmInfo, SmInfoRecord, SmKey, SmState, sa_capability,
};

use super::query::{Found, Query};
use super::{Administrator, plain};

impl Administrator {
    /// This manager, which is the master, and the others that the last discovery found.
    pub(super) fn managers(&self, query: &Query<'_>) -> Result<Found, u16> {
        let sm_info = SmInfo {
            guid: self.myself.guid,
            sm_key: if query.trusted { self.options.keys.sm_key } else { SmKey(0) },
            act_count: self.myself.act_count,
            priority: self.options.election.priority & 0xf,
            sm_state: SmState::Master,
        };
        let record = SmInfoRecord { lid: self.myself.lid, reserved_16: 0, sm_info };
        let seen = |guid| query.sight.sees(guid);
        let myself = Some(record).filter(|record| seen(record.sm_info.guid));
        let others = self.managers.iter().filter(|peer| seen(peer.guid)).map(|peer| SmInfoRecord {
            lid: peer.lid,
            reserved_16: 0,
            sm_info: SmInfo {
                guid: peer.guid,
                sm_key: SmKey(0),
                act_count: 0,
                priority: peer.priority,
                sm_state: peer.state,
            },
        });
        query.filter::<SmInfoRecord>()?.select(myself.into_iter().chain(others))
    }

    /// What this administration can do: it asks for no notices, serves no multicast, multipath or trace records, and
    /// not every optional one. No bit says that it takes repaths from others: the architecture has none for that.
    pub(super) fn class_port_info(&self) -> Found {
        let info = ClassPortInfo {
            base_version: 1,
            class_version: SA_CLASS_VERSION,
            capability_mask: sa_capability::IS_PORT_INFO_CAP_MASK_MATCH_SUPPORTED,
            // A sweep must end before tables are read that it left alone.
            resp_time_value: 18,
            redirect_qp: QpNum::GSI,
            redirect_q_key: QKey::GSI,
            trap_q_key: QKey::GSI,
            ..ClassPortInfo::default()
        };
        plain(&info.encode())
    }
}
