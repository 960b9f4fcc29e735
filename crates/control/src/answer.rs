//! What a process answers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::agent::{AgentStatus, CaptureTotals, DeviceAccount, DeviceStatus, PortStatus};
use crate::fault::LastingFault;
use crate::hub::LabStatus;
use crate::pm::{PmPort, PmStatus};
use crate::process::{Clients, Health, Hello, LogFilter, Subscribed};
use crate::sm::{Instructed, SmStatus};
use crate::traffic::HostFlows;
use crate::utc::Utc;
use crate::vm::{ImagePart, Slot};
use crate::vmm::{VPort, VmMigration, VmMoveCounts, VmPlace, VmPlanWrite, VmSilent, VmmStatus};

/// An answer. `type` names it in JSON: as the request, or `done` where there is nothing to tell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Answer {
    /// It is done, and there is nothing to tell.
    Done,
    /// To `hello`.
    Hello(Hello),
    /// To `health`.
    Health(Health),
    /// To `events`.
    Subscribed(Subscribed),
    /// To `events` with `past_only`, behind the last event.
    EventsEnded,
    /// To `metrics`.
    Metrics {
        /// Prometheus' text format.
        text: String,
    },
    /// To `log-filter`.
    LogFilter(LogFilter),
    /// To `clients`.
    Clients(Clients),
    /// To `revoked-identities`.
    RevokedIdentities {
        /// The newest list that the process has verified: PEM text (RFC 5280, section 5). None where it has no list, or no identity
        /// to verify one with.
        list: Option<String>,
    },
    /// To `sm-status`.
    SmStatus(Box<SmStatus>),
    /// To `sm-instruct`.
    SmInstruct {
        /// What became of it.
        outcome: Instructed,
    },
    /// To `pm-status`.
    PmStatus(Box<PmStatus>),
    /// To `pm-ports`.
    PmPorts {
        /// The page.
        ports: Vec<PmPort>,
        /// Whether more follow.
        more: bool,
    },
    /// To `agent-status`.
    AgentStatus(AgentStatus),
    /// To `devices`.
    Devices {
        /// The page.
        devices: Vec<DeviceStatus>,
        /// Whether more follow.
        more: bool,
    },
    /// To `ports`.
    Ports {
        /// The page.
        ports: Vec<PortStatus>,
        /// Whether more follow.
        more: bool,
    },
    /// To `faults`.
    Faults {
        /// All of them, in order of their names.
        faults: Vec<LastingFault>,
        /// What the agent's wall clock shows, by which faults end.
        now: Utc,
    },
    /// To `flows`.
    Flows {
        /// The page.
        hosts: Vec<HostFlows>,
        /// Whether more follow.
        more: bool,
    },
    /// To `account`.
    Account {
        /// The page.
        devices: Vec<DeviceAccount>,
        /// Whether more follow.
        more: bool,
    },
    /// To `slots`.
    Slots {
        /// The highest generation of a manager of virtual machines that the agent has heard of; 0 before the first.
        generation: u64,
        /// The same of other managers than the first, by name.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        others: BTreeMap<String, u64>,
        /// The page, in order of the slots' names.
        slots: Vec<Slot>,
        /// Whether more follow.
        more: bool,
    },
    /// To `vm`.
    Vm {
        /// The slot after the step.
        slot: Box<Slot>,
        /// What `export` gives.
        image: Option<ImagePart>,
    },
    /// To `vmm-status`.
    VmmStatus(Box<VmmStatus>),
    /// To `vms`.
    Vms {
        /// The page, in order of the machines' names.
        vports: Vec<VPort>,
        /// Whether more follow.
        more: bool,
    },
    /// To `vm-create`: they run.
    VmCreate {
        /// All of them.
        vms: Vec<VmPlace>,
    },
    /// To `vm-migrate`: it runs at its destination.
    VmMigrate(Box<VmMigration>),
    /// To `vm-plan`.
    VmPlan {
        /// What it would cost.
        counts: VmMoveCounts,
        /// Its writes, in order of sending.
        writes: Vec<VmPlanWrite>,
        /// The switches with hosts that hear nothing of the machine for a time after the move.
        #[serde(default)]
        silent: Vec<VmSilent>,
    },
    /// To `lab-status`.
    LabStatus(Box<LabStatus>),
    /// To `cancel` of a capture.
    CaptureEnded(CaptureTotals),
}
