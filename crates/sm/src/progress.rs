use std::fmt;

use serde::{Deserialize, Serialize};

use weft_wire::{Guid, Lid, SmState};

use crate::SweepPhase;

/// What the manager is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Activity {
    /// It has no port.
    #[default]
    Detached,
    /// Its port has no link.
    OwnPortDown,
    /// Another manager is in charge; it polls that one.
    Standby,
    /// Another manager has told it to be silent.
    NotActive,
    /// It is about to sweep, once traps have had time to come together.
    Waiting,
    /// It is in this phase of a heavy sweep.
    Sweeping(SweepPhase),
    /// The subnet is up and it asks switches whether anything changed.
    LightSweep,
    /// The subnet is up and it moves LIDs of virtual machines.
    Moving,
    /// The subnet is up and nothing is to be done.
    Up,
}

/// A subnet manager among others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManagerStatus {
    /// The port that it is behind.
    pub guid: Guid,
    /// Its LID; 0 is not known.
    pub lid: Lid,
    /// Its priority.
    pub priority: u8,
    /// Its state.
    pub state: SmState,
    /// Whether it is the manager that says so.
    pub is_self: bool,
    /// Whether it shows this manager's SM_Key. Mastership is neither handed to one that does not, nor awaited from it.
    pub is_trusted: bool,
}

impl fmt::Display for Activity {
    /// What the manager does, after its name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Detached => f.write_str("has no port"),
            Self::OwnPortDown => f.write_str("waits for its port's link"),
            Self::Standby => f.write_str("stands by for another manager"),
            Self::NotActive => f.write_str("is silent, as another manager told it"),
            Self::Waiting => f.write_str("is about to sweep"),
            Self::Sweeping(phase) => write!(f, "sweeps, in the phase {phase}"),
            Self::LightSweep => f.write_str("makes a light sweep"),
            Self::Moving => f.write_str("moves LIDs of virtual machines"),
            Self::Up => f.write_str("has nothing to do"),
        }
    }
}

/// LIDs of virtual functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmLids {
    /// Those that a function has.
    pub in_use: u32,
    /// Those of functions that are gone, which no other gets yet.
    pub quarantined: u32,
    /// How many more there are.
    pub free: u32,
    /// Functions that did not get one, since there were no more.
    pub refused: u32,
}

/// What has become of the balance of machines' rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rebalances {
    /// Rebalances that were completed.
    pub runs: u64,
    /// LIDs whose rows they wrote.
    pub lids: u64,
    /// Blocks that they wrote.
    pub smps: u64,
    /// How good the tables in force were beside fresh ones when they were weighed last, in thousandths; 0 before.
    pub balance: u32,
}

/// How far the manager is; see [`SubnetManager::progress`](crate::SubnetManager::progress).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// What it is doing.
    pub activity: Activity,
    /// Switches found by this sweep so far, or by the last one.
    pub switches: u32,
    /// HCAs found by this sweep so far, or by the last one.
    pub hosts: u32,
    /// Ports that this sweep has given LIDs, or the last one.
    pub lids: u32,
    /// LIDs of virtual functions as of the last sweep.
    #[serde(default)]
    pub vm_lids: VmLids,
    /// LIDs that have moved and of which some switches get their rows late.
    #[serde(default)]
    pub late_rows: u32,
    /// Rebalances of machines' rows.
    #[serde(default)]
    pub rebalances: Rebalances,
    /// Requests of this phase that are done.
    pub done: u64,
    /// Requests of this phase that are known of so far.
    pub total: u64,
    /// Ports that are Active, as far as this sweep knows, or the last one.
    pub ports_active: u32,
    /// Ports with a link behind which nobody answers, as of the last sweep or look.
    pub ports_silent: u32,
    /// Whether something will be read back that an SMP may have changed which was late.
    #[serde(default)]
    pub audit_pending: bool,
    /// How often subscribers were told to use paths differently.
    #[serde(default)]
    pub repaths: u64,
    /// SMPs sent since the beginning, retries included.
    pub smps_sent: u64,
    /// Of those, retries.
    pub smps_retried: u64,
    /// MADs that were ignored: malformed, unsolicited, late or not understood.
    pub mads_ignored: u64,
}
