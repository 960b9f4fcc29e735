//! The state of a subnet manager, as its operator sees it.

use serde::{Deserialize, Serialize};

use crate::{Learning, SweepPhase, VmLids};

weft_wire::worded! {
    /// What the manager is doing; displayed, it follows the manager's name.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub enum Activity {
        /// It has no port.
        #[default]
        Detached => ("has no port"),
        /// Its port has no link.
        OwnPortDown => ("waits for its port's link"),
        /// Another manager is in charge; it polls that one.
        Standby => ("stands by for another manager"),
        /// Another manager has disabled it.
        NotActive => ("is silent, as another manager told it"),
        /// It is about to sweep, once traps have had time to come together.
        Waiting => ("is about to sweep"),
        /// It is in this phase of a heavy sweep.
        Sweeping(phase: SweepPhase) => ("sweeps, in the phase {phase}"),
        /// The subnet is up and it asks switches whether anything changed.
        LightSweep => ("makes a light sweep"),
        /// The subnet is up and it moves LIDs of virtual machines.
        Moving => ("moves LIDs of virtual machines"),
        /// The subnet is up and nothing is to be done.
        Up => ("has nothing to do"),
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
