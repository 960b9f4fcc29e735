//! Answers of a process.

use std::collections::BTreeMap;

use weft_vocabulary::routing::PlannedRoutes;
use weft_vocabulary::tagged;

use crate::agent::{AgentStatus, CaptureTotals, DeviceAccount, DeviceStatus, PortCounts, PortStatus};
use crate::fault::LastingFault;
use crate::flow::{FlowLine, FlowRefused};
use crate::hub::LabStatus;
use crate::p_keys::{KeyBlock, PartitionsTaken};
use crate::page::PastPlace;
use crate::pm::{PmPort, PmStatus};
use crate::process::{Clients, Health, Hello, LogFilter, Subscribed};
use crate::sm::{Instructed, SmStatus};
use crate::traffic::HostFlows;
use crate::utc::Utc;
use crate::vm::{ImagePart, Slot};
use crate::vmm::{VPort, VmMigration, VmMoveCounts, VmPlace, VmPlanWrite, VmSilent, VmmStatus};

tagged! {
    /// An answer. `type` names it in JSON: as the request, or `done` where there is nothing to tell.
    Answer by "type" {
        /// It is done, and there is nothing to tell.
        Done = "done",
        /// To `hello`.
        Hello = "hello" (Hello),
        /// To `health`.
        Health = "health" (Health),
        /// To `events`.
        Subscribed = "subscribed" (Subscribed),
        /// To `events` with `past_only`, behind the last event.
        EventsEnded = "events-ended",
        /// To `metrics`.
        Metrics = "metrics" {
            /// Prometheus' text format.
            text: String,
        },
        /// To `log-filter`.
        LogFilter = "log-filter" (LogFilter),
        /// To `clients`.
        Clients = "clients" (Clients),
        /// To `revoked-identities`.
        RevokedIdentities = "revoked-identities" {
            /// The newest list that the process has verified: PEM text (RFC 5280, section 5). None where it has no list, or no identity
            /// to verify one with.
            list: Option<String>,
        },
        /// To `sm-status`.
        SmStatus = "sm-status" (Box<SmStatus>),
        /// To `sm-instruct`.
        SmInstruct = "sm-instruct" {
            /// What became of it.
            outcome: Instructed,
        },
        /// To `read-partitions`, of a subnet manager.
        ReadPartitions = "read-partitions" (PartitionsTaken),
        /// To `plan-partitions`.
        PlanPartitions = "plan-partitions" {
            /// The blocks, in the order in which they are written.
            writes: Vec<KeyBlock>,
            /// What the routing would change; none where no engine reads partitions.
            #[serde(default)]
            routes: Option<PlannedRoutes>,
        },
        /// To `routing-options`.
        RoutingOptions = "routing-options" {
            /// Options of the engines, and the partitions as they are now: JSON text, as in a subnet manager's configuration.
            engine: String,
            /// Whether a data lane is management's alone where links have two.
            management_lane: bool,
        },
        /// To `pm-status`.
        PmStatus = "pm-status" (Box<PmStatus>),
        /// To `pm-ports`.
        PmPorts = "pm-ports" {
            /// The page.
            ports: Vec<PmPort>,
            /// Whether more follow.
            more: bool,
        },
        /// To `agent-status`.
        AgentStatus = "agent-status" (AgentStatus),
        /// To `devices`.
        Devices = "devices" {
            /// The page.
            devices: Vec<DeviceStatus>,
            /// Whether more follow.
            more: bool,
        },
        /// To `ports`.
        Ports = "ports" {
            /// The page.
            ports: Vec<PortStatus>,
            /// Whether more follow.
            more: bool,
        },
        /// To `lane-counts`.
        LaneCounts = "lane-counts" (PortCounts),
        /// To `faults`.
        Faults = "faults" {
            /// All of them, in order of their names.
            faults: Vec<LastingFault>,
            /// What the agent's wall clock shows, by which faults end.
            now: Utc,
        },
        /// To `flows`.
        Flows = "flows" {
            /// The page.
            hosts: Vec<HostFlows>,
            /// Whether more follow.
            more: bool,
        },
        /// To `account`.
        Account = "account" {
            /// The page.
            devices: Vec<DeviceAccount>,
            /// Whether more follow.
            more: bool,
        },
        /// To `slots`.
        Slots = "slots" {
            /// The highest generation of a manager of virtual machines that the agent has heard of; 0 before the first.
            generation: u64,
            /// The same of other managers than the first, by name.
            #[serde(skip_serializing_if = "BTreeMap::is_empty")]
            others: BTreeMap<String, u64> = default,
            /// The page, in order of the slots' names.
            slots: Vec<Slot>,
            /// Whether more follow.
            more: bool,
        },
        /// To `vm`.
        Vm = "vm" {
            /// The slot after the step.
            slot: Box<Slot>,
            /// What `export` gives.
            image: Option<ImagePart>,
        },
        /// To `vmm-status`.
        VmmStatus = "vmm-status" (Box<VmmStatus>),
        /// To `vms`.
        Vms = "vms" {
            /// The page, in order of the machines' names.
            vports: Vec<VPort>,
            /// Whether more follow.
            more: bool,
        },
        /// To `vm-create`: they run.
        VmCreate = "vm-create" {
            /// All of them.
            vms: Vec<VmPlace>,
        },
        /// To `vm-migrate`: it runs at its destination.
        VmMigrate = "vm-migrate" (Box<VmMigration>),
        /// To `vm-plan`.
        VmPlan = "vm-plan" {
            /// What it would cost.
            counts: VmMoveCounts,
            /// Its writes, in order of sending.
            writes: Vec<VmPlanWrite>,
            /// The switches with hosts that hear nothing of the machine for a time after the move.
            silent: Vec<VmSilent> = default,
        },
        /// To `lab-status`.
        LabStatus = "lab-status" (Box<LabStatus>),
        /// To `flow-start`.
        FlowStart = "flow-start" {
            /// The names of those that have begun.
            begun: Vec<String>,
            /// Those that have not.
            refused: Vec<FlowRefused>,
        },
        /// To `flow-stop`.
        FlowStop = "flow-stop" {
            /// How many have ended.
            stopped: u64,
            /// Those of which an agent did not answer: it forgets them when it answers again, or ends.
            unheard: Vec<FlowRefused>,
        },
        /// To `lab-flows`.
        LabFlows = "lab-flows" {
            /// The page, in order of the flows' names.
            flows: Vec<FlowLine>,
            /// Whether more follow.
            more: bool,
            /// Wall-clock nanoseconds in one nanosecond of fabric time, where packets take time; else rates are the machine's.
            #[serde(default)]
            dilation: Option<u32>,
        },
        /// To `past`.
        Past = "past" {
            /// Where the text begins.
            from: PastPlace,
            /// Lines of JSON as the live page's server sends them, with their ends; the first and the last may be in parts.
            text: String,
            /// Where the next piece begins, if there is one.
            next: Option<PastPlace>,
        },
        /// To `cancel` of a capture.
        CaptureEnded = "capture-ended" (CaptureTotals),
    }
}
