//! LIDs: who gets which, which ones rest, and whose are still open after a change of the master.

mod arrival;
mod assign;
mod quarantine;
mod virtual_lids;

pub(crate) use arrival::Arrival;
pub(crate) use assign::{Claim, adopt, adopt_late, assign};
pub(crate) use quarantine::Quarantine;
pub(crate) use virtual_lids::{Ledger, has_own_lid};
