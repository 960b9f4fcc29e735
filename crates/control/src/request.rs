//! Requests of a client.

use serde::{Deserialize, Serialize};
use weft_vocabulary::tagged;

use crate::agent::{CountsPage, PlacedCable, PortEnd, Tap};
use crate::fault::{Damage, FaultId, Word};
use crate::flow::{FlowChoice, FlowOrder};
use crate::page::{NamePage, Page, PastPlace};
use crate::sm::Instruction;
use crate::traffic::Command;
use crate::vm::VmOrder;
use crate::vmm::{VmCreate, VmMigrate, VmWay};
use crate::{HexGuid, Incarnation};

tagged! {
    /// A request. `type` names it in JSON, and its fields stand beside.
    #[derive(Eq)]
    Request by "type" {
        /// Every process: who are you?
        Hello = "hello",
        /// Every process: are you well?
        Health = "health",
        /// Every process: tell what happens. Events follow the answer until `cancel` or the connection's end, or as the filter
        /// says.
        Events = "events" (EventFilter),
        /// Every process: end the events or the capture that a request of this connection began.
        Cancel = "cancel" {
            /// The id of that request.
            request: u64,
        },
        /// Every process: what you count, in Prometheus' text format.
        Metrics = "metrics",
        /// Every process: what do you log?
        LogFilter = "log-filter",
        /// Every process: log this from now on.
        SetLogFilter = "set-log-filter" {
            /// A level, or directives as in `WEFT_LOG`: `warn,weft_link=debug`.
            filter: String,
        },
        /// Every process: what have the clients of this API done?
        Clients = "clients",
        /// Every process: put it into your events that somebody breaks or repairs something on purpose.
        NoteFault = "note-fault" {
            /// What is done.
            fault: Word,
            /// To what, as the user names it.
            target: String,
        },
        /// Every process: read your identity's file again, and use what it holds from now on. Connections that stand go on.
        RenewIdentity = "renew-identity",
        /// Every process: revoke these identities, and close their connections.
        Revoke = "revoke" {
            /// The list that the laboratory's authority has signed: PEM text (RFC 5280, section 5).
            list: String,
        },
        /// Every process: which identities do you not believe any more?
        RevokedIdentities = "revoked-identities",
        /// Every process: stop in order.
        Shutdown = "shutdown",
        /// Every process: end at once and put nothing in order, as SIGKILL would have it. No answer comes: the connection ends.
        Kill = "kill",
        /// Subnet manager: how are you?
        SmStatus = "sm-status",
        /// Subnet manager: make a heavy sweep now.
        SmSweep = "sm-sweep",
        /// Subnet manager that is master: command another manager.
        SmInstruct = "sm-instruct" {
            /// The port of the manager to command.
            guid: HexGuid,
            /// What it is to do.
            instruction: Instruction,
        },
        /// Subnet manager, manager of virtual machines: read the partitions file again. A subnet manager answers when ports have their
        /// keys.
        ReadPartitions = "read-partitions",
        /// Subnet manager that is master: which P_Keys would you write with these partitions?
        PlanPartitions = "plan-partitions" {
            /// The text of a partitions file.
            text: String,
        },
        /// Subnet manager: with which options and partitions do you route?
        RoutingOptions = "routing-options",
        /// Performance manager: how are you?
        PmStatus = "pm-status",
        /// Performance manager: what does each port do?
        PmPorts = "pm-ports" (Page),
        /// Performance manager: learn the fabric again now.
        PmRefresh = "pm-refresh",
        /// Agent: how are you?
        AgentStatus = "agent-status",
        /// Agent: which devices do you run?
        Devices = "devices" (Page),
        /// Agent: the state and counters of every port.
        Ports = "ports" (Page),
        /// Agent: what have ports counted on data lanes?
        LaneCounts = "lane-counts" (CountsPage),
        /// Agent: break something, and keep it broken until the fault is cleared, also over restarts.
        SetFault = "set-fault" {
            /// The fault's name. A fault may break several things; one that is broken by it already gets a new end.
            id: FaultId,
            /// What to break.
            damage: Damage,
            /// End it by yourself after this many milliseconds.
            for_ms: Option<u64>,
        },
        /// Agent: end a fault.
        ClearFault = "clear-fault" {
            /// The fault's name.
            id: FaultId,
        },
        /// Agent: which faults last?
        Faults = "faults",
        /// Agent: put a cable into one of your ports. It stays there until it is taken out or the process ends. Nothing changes
        /// where the same cable is in the port already.
        ConnectCable = "connect-cable" {
            /// The port.
            end: PortEnd,
            /// The port at the other end.
            peer: PortEnd,
            /// Where the other end's agent listens, as HOST:PORT; none where both ends are yours.
            peer_address: Option<String>,
            /// How long its data lanes take beside what QUIC takes, in nanoseconds.
            delay_ns: u64,
        },
        /// Agent: take this cable out of one of your ports, and of both where both are yours. Faults of the cable end.
        DisconnectCable = "disconnect-cable" {
            /// The port.
            end: PortEnd,
            /// The port at the other end.
            peer: PortEnd,
        },
        /// Agent: tell of the packets that cross cables here, until `cancel` or the connection's end.
        Capture = "capture" {
            /// Where to listen.
            tap: Tap,
        },
        /// Agent: have the host behind an adapter's port do something.
        Host = "host" {
            /// The adapter's port.
            end: PortEnd,
            /// What to do.
            command: Command,
        },
        /// Agent: what became of the flows of every host?
        Flows = "flows" (Page),
        /// Agent: what became of the packets on data lanes, device by device?
        Account = "account" (Page),
        /// Agent: which slots of virtual machines do you have, and what sits in them?
        Slots = "slots" (Page),
        /// Agent: take a virtual machine in one of your slots a step on.
        Vm = "vm" (Box<VmOrder>),
        /// Agent: a manager of virtual machines begins; refuse orders of earlier ones.
        VmGeneration = "vm-generation" {
            /// The life of the manager.
            generation: u64,
            /// The manager's name, if it is not the first: those of other pieces of the fabric have lives of their own.
            #[serde(skip_serializing_if = "String::is_empty")]
            manager: String = default,
        },
        /// Manager of virtual machines: how are you?
        VmmStatus = "vmm-status",
        /// Manager of virtual machines: which are there?
        Vms = "vms" (NamePage),
        /// Manager of virtual machines: start some.
        VmCreate = "vm-create" (VmCreate),
        /// Manager of virtual machines: end one, or take a lost one off the list.
        VmDestroy = "vm-destroy" {
            /// The virtual machine.
            vm: String,
        },
        /// Manager of virtual machines: move one.
        VmMigrate = "vm-migrate" (VmMigrate),
        /// Manager of virtual machines: what would a move write? Nothing is sent to switches.
        VmPlan = "vm-plan" (VmWay),
        /// Manager of virtual machines: give up one that is lost, or whose host cannot be reached.
        VmForget = "vm-forget" {
            /// The virtual machine.
            vm: String,
            /// Also when it may still run. Its host is asked to end it when the host returns.
            force: bool,
        },
        /// Agent: begin again to measure how late you are.
        ResetLateness = "reset-lateness",
        /// Agent, manager: begin, if you wait for the word. An agent dials its peers, a manager attaches; one that has begun goes on.
        Begin = "begin",
        /// Hub: how are the laboratory and its processes?
        LabStatus = "lab-status" (NamePage),
        /// Hub: the laboratory consists of other processes now; read again of which.
        ReadPlan = "read-plan",
        /// Hub: agents were ordered to take cables out and to put others in; write that down.
        WriteCables = "write-cables" {
            /// The two ends of each cable that was taken out.
            taken_out: Vec<[PortEnd; 2]>,
            /// Each cable that was put in.
            put_in: Vec<PlacedCable>,
        },
        /// Hub: begin these flows.
        FlowStart = "flow-start" {
            /// At most 1024 at once.
            flows: Vec<FlowOrder>,
        },
        /// Hub: end these flows, and forget them.
        FlowStop = "flow-stop" (FlowChoice),
        /// Hub: which flows are there, and how are they?
        LabFlows = "lab-flows" (NamePage),
        /// Hub: how was the laboratory in the last minutes? The answer is a piece of what the live page would have shown.
        Past = "past" (PastPlace),
        /// Hub: start a process of the laboratory that does not run, where the hub starts processes.
        StartProcess = "start-process" {
            /// The process's name.
            process: String,
        },
        /// Hub: pass a request on to a process; its answer comes back. `events`, `cancel`, `capture` and `relay` are not passed
        /// on. The client needs the role that the inner request needs.
        Relay = "relay" {
            /// The process's name.
            process: String,
            /// What to ask it.
            request: Box<Request>,
        },
    }
}

/// Which events a client wants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct EventFilter {
    /// From when on.
    pub from: Since,
    /// Only these kinds, by the name in `event`; empty wants all.
    pub kinds: Vec<String>,
    /// Only these sources, by name; empty wants all. A hub tells of many, other processes of themselves.
    pub sources: Vec<String>,
    /// Only what the process remembers now: after the last event comes the answer `events-ended`, and nothing follows.
    pub past_only: bool,
}

/// The first event that a client wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Since {
    /// What happens from now on.
    #[default]
    Now,
    /// All that the process remembers.
    Start,
    /// What came after this event, if the process is still the same; else all that it remembers.
    After {
        /// The incarnation that the event is of.
        incarnation: Incarnation,
        /// The event's sequence number; for a hub its `place`, with the hub's own incarnation.
        sequence: u64,
    },
}

impl Since {
    /// From this number on in this incarnation.
    pub fn behind(incarnation: Incarnation, next: u64) -> Self {
        next.checked_sub(1).map_or(Self::Start, |sequence| Self::After { incarnation, sequence })
    }
}
