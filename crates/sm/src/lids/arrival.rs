//! A manager that has come into charge, until it knows whose the LIDs are that have rows and no port.
//!
//! Forwarding tables do not name GUIDs. So a machine that was on its way when the manager before died has a LID that only the VM
//! manager knows. Until that has repeated the addresses of its machines, ports of virtual functions without a LID get none, and every LID
//! with a row rests.

use std::collections::BTreeSet;

use weft_machine::Time;
use weft_wire::Guid;

use super::assign::Claim;
use crate::{GuidToLid, Options};

/// How long that is waited for at most where LIDs rest without a limit of time: as long as they rest else.
const WITHIN: Time = Time::from_secs(40);

/// A manager that has come into charge.
#[derive(Debug)]
pub(crate) struct Arrival {
    /// The number by which the VM manager names this mastership: another one for each.
    pub(crate) mastership: u32,
    /// Until when the VM manager's word is waited for.
    until: Time,
    /// Whether others were in charge before: then what is on file may be old.
    is_successor: bool,
    /// The GUIDs whose LIDs the VM manager has repeated.
    pub(crate) confirmed: BTreeSet<Guid>,
    /// Whether it has said that these are all.
    pub(crate) is_told: bool,
    /// How many ports wait for that.
    pub(crate) waiting: u32,
}

impl Arrival {
    pub(crate) fn new(now: Time, own: Guid, is_successor: bool, options: &Options) -> Self {
        let seed = (own.0 ^ now.as_nanos().rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self {
            mastership: (seed >> 32) as u32 | 1,
            until: now + options.quarantine().unwrap_or(WITHIN),
            is_successor,
            confirmed: BTreeSet::new(),
            is_told: false,
            waiting: 0,
        }
    }

    /// Whether it is still to be known whose the LIDs without a port are.
    pub(crate) fn is_open(&self, now: Time) -> bool {
        !self.is_told && now < self.until
    }

    /// How many ports wait for the VM manager's word, and until when.
    pub(crate) fn awaited(&self) -> Option<(u32, Time)> {
        (self.waiting > 0 && !self.is_told).then_some((self.waiting, self.until))
    }

    /// Whether what is on file for a GUID that has no LID at its port is as it was last.
    pub(crate) fn trusts_file(&self, guid: Guid) -> bool {
        !self.is_successor || self.confirmed.contains(&guid)
    }

    /// Whether a port is to wait for its LID, where there are LIDs that may be its own.
    pub(crate) fn keeps_waiting(&self, claim: &Claim, known: &GuidToLid) -> bool {
        let is_known = known.range(claim.guid).is_some() && self.trusts_file(claim.guid);
        claim.is_function && !claim.present.is_unicast() && !is_known
    }
}
