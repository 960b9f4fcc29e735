//! Options of the VM manager.

use serde::{Deserialize, Serialize};
use weft_machine::Time;
use weft_wire::Guid;

use crate::identity::Scheme;
use crate::journal::JOURNAL_BYTES_MAX;
use crate::partitions::PortPartitions;

/// How long a question waits for someone who can be asked, besides the time in which a standby notices that the master is gone: for the
/// sweep with which it takes over.
pub const ASK_FOR: Time = Time::from_secs(20);

/// How much longer where a subnet manager answers that it is busy: it is there, and will have swept.
pub const BUSY_FOR: Time = Time::from_secs(30);

/// How long is waited for standbys to notice a death at most: as long as those take that poll as OpenSM does by default, every 10 s and
/// four times more. A client's patience ends soon after.
const NOTICES_MAX: Time = Time::from_secs(60);

/// How much later than its client the manager gives a question up.
const MARGIN: Time = Time::from_secs(10);

weft_wire::defaults! {
    /// What an operator can choose.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct Options {
        /// Who gives virtual machines their LIDs.
        pub scheme: Scheme = Scheme::default(),
        /// The first GUID for virtual machines of dynamic LIDs; the others follow. 2^57, which marks local GUIDs, is set in the
        /// default. A driver that begins a journal chooses another one at random: the GUIDs that a lost journal gave may still be in use.
        pub first_guid: Guid = Guid(0x0200_0000_0076_0001),
        /// The partitions of ports; `None` where the subnet manager has none, or none that is known.
        pub partitions: Option<PortPartitions> = None,
        /// How long an agent may take to answer before it is asked again.
        pub timeout: Time = Time::from_secs(1),
        /// How often an agent is asked before it counts as unreachable. It is asked further, every [`Options::timeout`].
        pub tries: u32 = 3,
        /// How long a move waits for an unreachable destination before it is undone.
        pub patience: Time = Time::from_secs(5),
        /// How long to wait before the subnet manager is asked again after it did not answer.
        pub sm_retry: Time = Time::from_secs(1),
        /// How long a question waits for a subnet manager that can be asked. One that is busy is waited for [`BUSY_FOR`] longer.
        pub ask_for: Time = ASK_FOR,
        /// How long the subnet manager may take.
        pub sm_timeout: Time = ASK_FOR + BUSY_FOR + MARGIN,
        /// How long to wait for a LID where the subnet manager does not know moves.
        pub lid_patience: Time = Time::from_secs(60),
        /// How long a client waits at most; then the outcome is in doubt, and the work goes on.
        pub answer_within: Time = Time::from_secs(120),
        /// How long a new manager waits for agents to tell their generations.
        pub gather: Time = Time::from_secs(2),
        /// Creations, removals and moves at once; at least 1. Further ones wait in the order in which they came.
        pub at_once: u32 = 16,
        /// Records that are appended to the journal before it is written as a whole again, with what they have come to.
        pub compact_after: u64 = 4096,
        /// Bytes of the journal at most. It is written as a whole again before it has more, and no machine is started while what its records
        /// have come to is more than half of that. [`JOURNAL_BYTES_MAX`] at most, which is what can be read.
        pub journal_bytes_max: usize = JOURNAL_BYTES_MAX,
    }
}

impl Options {
    /// The same where standbys poll a subnet manager as often as this. The first poll that fails comes up to one interval after a death,
    /// `retries` more follow, and the last one takes its timeout, an interval at most.
    pub fn with_standbys(mut self, polling: Time, retries: u32) -> Self {
        let notices = Time::from_nanos(polling.as_nanos().saturating_mul(u64::from(retries) + 2));
        self.ask_for = ASK_FOR + notices.min(NOTICES_MAX);
        self.sm_timeout = self.ask_for + BUSY_FOR + MARGIN;
        self.answer_within = self.answer_within.max(self.sm_timeout + MARGIN);
        self
    }

    /// The same with values that the machine can work with.
    pub(crate) fn sound(mut self) -> Self {
        let least = Time::from_millis(1);
        let times = [
            &mut self.timeout,
            &mut self.patience,
            &mut self.sm_retry,
            &mut self.ask_for,
            &mut self.sm_timeout,
            &mut self.lid_patience,
            &mut self.answer_within,
            &mut self.gather,
        ];
        times.into_iter().for_each(|time| *time = least.max(*time));
        self.tries = self.tries.max(1);
        self.at_once = self.at_once.max(1);
        self.journal_bytes_max = self.journal_bytes_max.min(JOURNAL_BYTES_MAX);
        self.first_guid.0 = self.first_guid.0.max(1);
        self
    }
}
