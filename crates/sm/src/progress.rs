use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Learning, SweepPhase, VmLids};

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
    /// Another manager has disabled it.
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
    /// LIDs of virtual functions as of the last sweep; the late ones and rebalances as of now.
    #[serde(default)]
    pub vm_lids: VmLids,
    /// What has come of reports of what hosts receive.
    #[serde(default)]
    pub learning: Learning,
    /// Requests of this phase that are done.
    pub done: u64,
    /// Requests of this phase that are known of so far.
    pub total: u64,
    /// Ports that are Active, as far as this sweep knows, or the last one.
    pub ports_active: u32,
    /// Ports with a link behind which no one answers, as of the last sweep or look.
    pub ports_silent: u32,
    /// Whether something will be read back that an SMP may have changed which was late.
    #[serde(default)]
    pub audit_pending: bool,
    /// How often subscribers were notified to use paths differently.
    #[serde(default)]
    pub repaths: u64,
    /// SMPs sent since the beginning, retries included.
    pub smps_sent: u64,
    /// Of those, retries.
    pub smps_retried: u64,
    /// MADs that were ignored: malformed, unsolicited, late or not understood.
    pub mads_ignored: u64,
}
