//! Events of the subnet manager. One declaration gives an event its type, its name, its schema and its sentence; the machine
//! outputs it, the log has the sentence, metrics count it by name, and the control protocol carries it.

use weft_wire::{
    AttributeId, Guid, Lid, PortNum, Printable, ServiceLevel, TrapNumber, VirtualLane, count_of,
};

use super::reason::{Reason, RepathUse};
use super::{EngineReport, Instructed, Instruction, PhaseTime, SmState, Summary, SweepKind, SweepPhase};
use crate::words::{
    balance, busiest, count, instead_of, kept_rows, lane_of_management, lower, name, or_any, route,
};
use crate::{HexGuid, NodeKind, PortState, told};

told! {
    /// What happened to the subnet, as a subnet manager sees it.
    #[derive(Eq)]
    #[cfg_attr(feature = "schema", schemars(rename = "SmEvent"))]
    Event by "event" {
        /// A sweep began.
        SweepStarted = "sweep-started" {
            /// Heavy or light.
            kind: SweepKind,
            /// Why.
            reason: Reason,
        } => ("{} sweep: {}", lower(kind), lower(reason)),
        /// A phase of a heavy sweep began.
        PhaseStarted = "phase-started" {
            /// The phase.
            phase: SweepPhase,
        } => ("phase {phase} begins"),
        /// A phase of a heavy sweep ended.
        PhaseDone = "phase-done"(time: PhaseTime)
            => ("phase {} took {:.3} s, {}", time.phase, time.took.as_nanos() as f64 / 1e9, count_of(time.smps as usize, "SMP")),
        /// A light sweep found nothing.
        Quiet = "quiet" => ("light sweep: nothing changed"),
        /// A node that was not there before.
        NodeFound = "node-found" {
            /// Its GUID.
            guid: HexGuid,
            /// What it is.
            kind: NodeKind,
            /// Its NodeDescription.
            description: String,
        } => ("found {} {} ({guid})", lower(kind), name(description)),
        /// A node that was there before is not found any more.
        NodeLost = "node-lost" {
            /// Its GUID.
            guid: HexGuid,
            /// What it is.
            kind: NodeKind,
            /// Its NodeDescription.
            description: String,
        } => ("lost {} {} ({guid})", lower(kind), name(description)),
        /// An HCA that was there before cannot be reached any more.
        HostCutOff = "host-cut-off" {
            /// Its GUID.
            guid: HexGuid,
            /// Its NodeDescription.
            description: String,
        } => ("host {} ({guid}) is cut off", name(description)),
        /// A port is given a LID that it did not have.
        LidAssigned = "lid-assigned" {
            /// The port's GUID.
            port_guid: HexGuid,
            /// Its base LID.
            lid: Lid,
            /// What it had before; 0 is none.
            before: Lid,
        } => ("port {port_guid} gets LID {lid}{}", instead_of(*before)),
        /// There are more ports than LIDs; this one gets none.
        LidsExhausted = "lids-exhausted" {
            /// The port's GUID.
            port_guid: HexGuid,
        } => ("no LID is left for port {port_guid}"),
        /// A virtual function gets no LID, because all that virtual functions may have are in use or in quarantine.
        VmLidRefused = "vm-lid-refused" {
            /// The GUID of the function's port.
            port_guid: HexGuid,
            /// LIDs of virtual functions that are in use.
            in_use: u32,
            /// Those in quarantine.
            quarantined: u32,
        } => ("no LID is left for the virtual function with port {port_guid}: {in_use} are in use, {quarantined} in quarantine"),
        /// Ports of virtual functions wait for their LIDs: there are LIDs with rows and without a port, and the VM manager has not said yet whose they are.
        VmLidsWait = "vm-lids-wait" {
            /// How many ports.
            ports: u32,
        } => ("LIDs of virtual functions wait until the VM manager says whose those without a port are: {}", count(*ports, "port")),
        /// A trap came, and was repressed.
        TrapReceived = "trap-received" {
            /// Its number.
            number: TrapNumber,
            /// The sender's LID.
            lid: Lid,
            /// Whether it is taken as news; repeated traps, and those that call for nothing, are not.
            news: bool,
        } => ("trap {number} from LID {lid}{}", if *news { "" } else { ", which is no news" }),
        /// Hosts were asked to subscribe again to what they want to know of.
        Reregister = "reregister" {
            /// How many ports that is.
            ports: u32,
        } => ("subscribe again: {}", count(*ports, "port")),
        /// A port is in more partitions than its table has places for; the last ones are left out.
        PartitionsLeftOut = "partitions-left-out" {
            /// The port's GUID.
            port_guid: HexGuid,
            /// How many.
            partitions: u32,
        } => ("port {port_guid} has no room for {partitions} of its partitions"),
        /// Keys of partitions have no place in a port's table until one has rested that another key has left.
        PartitionsWait = "partitions-wait" {
            /// The port's GUID.
            port_guid: HexGuid,
            /// How many.
            partitions: u32,
        } => ("{} of port {port_guid} wait until places that other keys have left are free", count(*partitions, "partition")),
        /// A port has not acknowledged that it has left partitions, or not answered which it is in.
        PartitionsKept = "partitions-kept" {
            /// The port's GUID.
            port_guid: HexGuid,
            /// How many it is to leave; 0 where it has not answered.
            partitions: u32,
            /// Whether its switch drops its packets of them.
            is_cut_off: bool,
        } => ("port {port_guid} has not {}: {}", acknowledged(*partitions), cut_off(*is_cut_off)),
        /// Other partitions were taken: ports have their keys, as far as they answer.
        PartitionsTaken = "partitions-taken" {
            /// Whether this manager writes them, or would when it takes over.
            in_charge: bool,
            /// Blocks of P_Key tables that were written.
            smps: u64,
            /// Keys that wait until a place has rested.
            waiting: u32,
            /// Ports that have not acknowledged that they have left.
            kept: u32,
            /// Keys that ports have no room for.
            left_out: u32,
        } => ("{}", taken(*in_charge, *smps, [*waiting, *kept, *left_out])),
        /// The partitions file is invalid; the partitions stay as they are.
        PartitionsRefused = "partitions-refused" {
            /// What is wrong with it.
            message: String,
        } => ("the partitions stay as they are: {}", Printable(message)),
        /// Congestion control is off here, but nodes go on with settings that somebody wrote before.
        CongestionLeft = "congestion-left" {
            /// Switches that mark packets.
            switches: u32,
            /// Ports of hosts that slow down.
            hosts: u32,
        } => ("settings of congestion control, which is off here, are kept by {} and {}", count(*switches, "switch"), count(*hosts, "host")),
        /// Which lane is management's alone.
        ManagementLane = "management-lane" {
            /// The lane; none where management shares the data's.
            lane: Option<VirtualLane>,
        } => ("{}", lane_of_management(*lane)),
        /// Subscribers are notified to use paths differently.
        Repath = "repath" {
            /// 69, or 68 where that has come to an end.
            number: TrapNumber,
            /// The LID of whoever wants it: the manager itself after another routing, or the one that asked.
            from: Lid,
            /// What it is for.
            kind: RepathUse,
            /// The service level to use, or to leave.
            service_level: ServiceLevel,
            /// The source, or the old LID.
            slid: Lid,
            /// The destination, or the new LID.
            dlid: Lid,
            /// The port that is notified, 0 for all that have subscribed.
            target: Lid,
            /// How many ports that is.
            told: u32,
        } => ("repath ({}), sent to {}: LID {} to {}, service level {service_level}", lower(kind), count(*told, "port"), or_any(*slid), or_any(*dlid)),
        /// A heavy sweep has configured the subnet: all of it is in service.
        SubnetUp = "subnet-up"(summary: Summary)
            => ("{}", summary.sentence("SUBNET UP")),
        /// A heavy sweep has ended, and not all of the subnet is in service.
        SweepIncomplete = "sweep-incomplete"(summary: Summary)
            => ("{}", summary.sentence("sweep not complete")),
        /// A port did not take on the state that was set.
        PortRefused = "port-refused" {
            /// The node.
            guid: HexGuid,
            /// The port.
            port: PortNum,
            /// The state that was set.
            wanted: PortState,
            /// What it answered.
            state: PortState,
            /// The answer's status.
            status: u16,
        } => ("{guid} port {port} is {} instead of {} (status {status:#06x})", lower(state), lower(wanted)),
        /// A device answered a request with an error.
        Refused = "refused" {
            /// The node.
            guid: HexGuid,
            /// The attribute, by name.
            attribute: String,
            /// The attribute modifier.
            modifier: u32,
            /// The answer's status.
            status: u16,
        } => ("{guid} refused {attribute} {modifier} with status {status:#06x}"),
        /// A port keeps an M_Key that this manager does not know, so nothing is written into it.
        KeyUnknown = "key-unknown" {
            /// The node.
            guid: HexGuid,
            /// The port; 0 is a whole switch.
            port: PortNum,
            /// The node's NodeDescription.
            description: String,
        } => ("{} ({guid}) port {port} keeps another M_Key", name(description)),
        /// The manager's own port answers nothing. It may keep an M_Key that is not known here, at level 2 or 3.
        OwnPortSilent = "own-port-silent" => ("the manager's own port does not answer"),
        /// A request was not answered.
        Unanswered = "unanswered" {
            /// The node that was asked, or through which it was asked.
            guid: HexGuid,
            /// The attribute, by name.
            attribute: String,
            /// The attribute modifier.
            modifier: u32,
        } => ("no answer to {attribute} {modifier} from {guid}, or through it"),
        /// A port has a link without an answer behind it.
        PortSilent = "port-silent" {
            /// The node.
            guid: HexGuid,
            /// The port.
            port: PortNum,
        } => ("no answer behind {guid} port {port}"),
        /// A second node, or a second port, has the GUID of another; it is left out.
        DuplicateGuid = "duplicate-guid" {
            /// The GUID.
            guid: HexGuid,
            /// The directed route to the first, as a list of ports.
            #[cfg_attr(feature = "schema", schemars(with = "Vec<u8>"))]
            first: Vec<PortNum>,
            /// The directed route to the second.
            #[cfg_attr(feature = "schema", schemars(with = "Vec<u8>"))]
            second: Vec<PortNum>,
        } => ("two nodes or ports have the GUID {guid}, at the directed routes {} and {}", route(first), route(second)),
        /// A switch's port leads back into the same port.
        PortToItself = "port-to-itself" {
            /// The node.
            guid: HexGuid,
            /// The port.
            port: PortNum,
        } => ("{guid} port {port} leads to itself"),
        /// A device says what cannot be, and is left out or not followed further.
        Nonsense = "nonsense" {
            /// The node that says it, or through which it was reached; 0 where not even that is known.
            guid: HexGuid,
            /// The attribute, by name.
            attribute: String,
        } => ("{guid} says what cannot be in {attribute}"),
        /// The fabric is larger than the manager allows; the rest is left out.
        TooLarge = "too-large" {
            /// The most nodes.
            nodes_max: u32,
        } => ("the fabric has more than {nodes_max} nodes; the rest is left out"),
        /// This manager's state among others has changed.
        SmState = "sm-state" {
            /// What it is now.
            state: SmState,
            /// The port of the manager that is in charge, or is taken for it; 0 is not known.
            master: HexGuid,
        } => ("this manager is {}; the master is at {master}", state.name()),
        /// A manager was asked to take over and refused.
        HandoverRefused = "handover-refused" {
            /// The port that it is behind.
            guid: HexGuid,
        } => ("the manager at {guid} refused to take over"),
        /// Another manager commands, but does not show this one's SM_Key; nothing comes of it.
        SmKeyMismatch = "sm-key-mismatch" {
            /// The port that it is behind.
            guid: HexGuid,
        } => ("the manager at {guid} commands with another SM_Key; it is ignored"),
        /// Another subnet manager is on this subnet, or has changed its state.
        OtherSm = "other-sm" {
            /// The port that it is behind.
            guid: HexGuid,
            /// Its priority.
            priority: u8,
            /// Its state.
            state: SmState,
            /// Whether it shows this manager's SM_Key.
            is_trusted: bool,
        } => ("the manager at {guid}, priority {priority}, is {}{}", state.name(), if *is_trusted { "" } else { ", with another SM_Key" }),
        /// Another manager was instructed as the operator wants.
        Instructed = "instructed" {
            /// The port that it is behind.
            guid: HexGuid,
            /// The instruction.
            instruction: Instruction,
            /// What became of it.
            outcome: Instructed,
        } => ("the manager at {guid} was told {}: {}", instruction.name(), lower(outcome)),
        /// The manager's own port has no link; it waits.
        OwnPortDown = "own-port-down" => ("the manager's own port has no link"),
        /// The manager's own port has a link again.
        OwnPortUp = "own-port-up" => ("the manager's own port has a link again"),
        /// Routes were computed.
        Routed = "routed"(report: EngineReport)
            => ("routed by {}", report.with_lanes()),
        /// No routes could be computed; the tables stay as they are.
        RouteFailed = "route-failed" {
            /// Why.
            message: String,
        } => ("routing failed: {}", Printable(message)),
        /// A move of a LID has begun: its plan is proved.
        MoveStarted = "move-started" {
            /// The port GUID that has the LID.
            guid: HexGuid,
            /// The LID.
            lid: Lid,
            /// What is done with it: Copy, Swap, Boot or Clear.
            kind: String,
            /// Rounds of the plan.
            rounds: u32,
            /// Blocks of forwarding tables that it writes.
            smps: u32,
        } => ("{} of LID {lid} ({guid}) begins: {} in {}", lower(kind), count(*smps, "SMP"), count(*rounds, "round")),
        /// A LID has moved: all switches have acknowledged.
        MoveDone = "move-done" {
            /// The port GUID that has the LID.
            guid: HexGuid,
            /// The LID.
            lid: Lid,
            /// Physical switches written, by the plan that did it with others or alone.
            physical: u32,
            /// vSwitches written.
            vswitches: u32,
            /// Blocks written.
            smps: u32,
            /// From the request to the last acknowledgement, in nanoseconds.
            took_ns: u64,
        } => ("LID {lid} ({guid}) has moved in {:.3} ms: {} to {} and {}", *took_ns as f64 / 1e6, count(*smps, "SMP"), count(*physical, "switch"), count(*vswitches, "vSwitch")),
        /// A LID has moved, but for switches around its old place: they drop packets for it and get their rows late, once packets of the old way are gone.
        MoveLate = "move-late" {
            /// The port GUID that has the LID.
            guid: HexGuid,
            /// The LID.
            lid: Lid,
            /// How many switches.
            switches: u32,
            /// How long packets may be under way, in nanoseconds.
            wait_ns: u64,
        } => ("late rows of LID {lid} ({guid}): {} in {:.3} s, when packets to its old place are gone", count(*switches, "switch"), *wait_ns as f64 / 1e9),
        /// The last switches have the rows of LIDs that have moved.
        MoveFinished = "move-finished" {
            /// How many LIDs.
            lids: u32,
            /// Blocks written.
            smps: u32,
        } => ("the last rows of {} are written, with {}", count(*lids, "moved LID"), count(*smps, "SMP")),
        /// Queue pairs to a LID that moves, and its own, are held while rows are written: levels of both places would close a circle.
        MoveHeld = "move-held" {
            /// The port GUID that has the LID.
            guid: HexGuid,
            /// The LID.
            lid: Lid,
            /// How many ports are notified.
            told: u32,
            /// How many hosts have a port that is not notified: the proof does not cover what they send meanwhile.
            untold: u32,
            /// How long packets may be under way once they have confirmed, in nanoseconds.
            wait_ns: u64,
            /// The circle.
            circle: String,
        } => ("queue pairs to LID {lid} ({guid}) are held, by {}, not by {} that {} not subscribed, and for {:.3} s before rows are written: {}", count(*told, "port"), count(*untold, "host"), if *untold == 1 { "has" } else { "have" }, *wait_ns as f64 / 1e9, Printable(circle)),
        /// A request to move a LID was refused; nothing was written.
        MoveRefused = "move-refused" {
            /// The port GUID that has the LID, as the request has it.
            guid: HexGuid,
            /// The LID, as the request has it.
            lid: Lid,
            /// Why.
            reason: String,
        } => ("LID {lid} ({guid}) does not move: {}", Printable(reason)),
        /// A move of a LID ended before all switches had acknowledged. A heavy sweep follows.
        MoveBroken = "move-broken" {
            /// The port GUID that has the LID.
            guid: HexGuid,
            /// The LID.
            lid: Lid,
            /// Why.
            reason: String,
        } => ("the move of LID {lid} ({guid}) is broken off: {}", Printable(reason)),
        /// Rows of machines' LIDs are those of a fresh routing again. Balance: tables in force beside fresh ones, in thousandths.
        Rebalanced = "rebalanced" {
            /// LIDs whose rows were written.
            lids: u32,
            /// Blocks written.
            smps: u32,
            /// LIDs that were chosen and keep their rows: no plan for them could be proved that drops no packets.
            kept: u32,
            /// The balance before.
            before: u32,
            /// The balance now; none where a move or a sweep came between, after which tables are weighed again.
            after: Option<u32>,
        } => ("rebalanced: {} by {}, {}{}", count(*lids, "LID"), count(*smps, "SMP"), balance(*before, *after), kept_rows(*kept)),
        /// Tables by what hosts receive were weighed against those in force. Shares are of all that hosts received, in billionths.
        ReceivedWeighed = "received-weighed" {
            /// Hosts of which there are counts.
            hosts: u32,
            /// What the busiest link between switches carries by the tables in force.
            before: u32,
            /// The same by the new tables; none where no engine serves with what was learned.
            after: Option<u32>,
            /// Whether the new tables are taken: the busiest link then carries a tenth less at least. A heavy sweep follows.
            is_taken: bool,
        } => ("weighed what {} received: {}", count(*hosts, "host"), busiest(*before, *after, *is_taken)),
        /// The fabric kept changing; the manager stops sweeping at once and looks again later.
        Unsettled = "unsettled" {
            /// How many sweeps followed each other.
            sweeps: u32,
        } => ("the fabric kept changing over {}; the next one waits", count(*sweeps, "sweep")),
        /// How far a sweep is, every few milliseconds. Totals are what is known so far and may still grow.
        Progress = "progress" {
            /// Nodes discovered.
            nodes: u32,
            /// End ports that hold their LID.
            lids: u32,
            /// Requests done of those that write tables.
            tables_done: u32,
            /// Requests that write tables.
            tables: u32,
            /// Ports that are Active.
            ports_active: u32,
            /// Ports with a cable.
            ports: u32,
        } => ("{nodes} nodes, {lids} LIDs, {tables_done} of {tables} tables, {ports_active} of {ports} ports active"),
    }
}

impl Event {
    /// A device answered a request with an error.
    pub fn refused(guid: Guid, attribute: AttributeId, modifier: u32, status: u16) -> Self {
        Self::Refused { guid: guid.into(), attribute: attribute.to_string(), modifier, status }
    }

    /// A request was not answered.
    pub fn unanswered(guid: Guid, attribute: AttributeId, modifier: u32) -> Self {
        Self::Unanswered { guid: guid.into(), attribute: attribute.to_string(), modifier }
    }

    /// A device says what cannot be.
    pub fn nonsense(guid: Guid, attribute: AttributeId) -> Self {
        Self::Nonsense { guid: guid.into(), attribute: attribute.to_string() }
    }

    /// A GUID was found at two directed routes.
    pub fn duplicate_guid(guid: Guid, first: &[PortNum], second: &[PortNum]) -> Self {
        Self::DuplicateGuid { guid: guid.into(), first: first.to_vec(), second: second.to_vec() }
    }

    /// Whether it is routine: the log has it at DEBUG, and clients do not get it.
    pub fn is_routine(&self) -> bool {
        match self {
            Self::Quiet | Self::PhaseStarted { .. } => true,
            Self::SweepStarted { kind, reason } => (*kind, *reason) == (SweepKind::Light, Reason::Interval),
            _ => false,
        }
    }
}

/// What a port has not said of its partitions.
fn acknowledged(left: u32) -> String {
    match left {
        0 => "answered which partitions it is in".to_owned(),
        left => format!("acknowledged that it has left {}", count(left, "partition")),
    }
}

/// Whether a port that has not acknowledged is in a partition still.
fn cut_off(is_cut_off: bool) -> &'static str {
    if is_cut_off { "its switch drops its packets" } else { "it may be in them still" }
}

/// What a change of the partitions came to.
fn taken(in_charge: bool, smps: u64, [waiting, kept, left_out]: [u32; 3]) -> String {
    if !in_charge {
        return "partitions are taken for the time when this manager is master".to_owned();
    }
    let blocks = format!("partitions are taken: {} of P_Keys", count_of(smps as usize, "block"));
    let waiting = (waiting > 0).then(|| format!("{} without a place yet", count(waiting, "key")));
    let kept = (kept > 0).then(|| format!("{} to acknowledge that they have left", count(kept, "port")));
    let left_out = (left_out > 0).then(|| format!("{} left out for want of room", count(left_out, "key")));
    [Some(blocks), waiting, kept, left_out].into_iter().flatten().collect::<Vec<_>>().join(", ")
}
