//! Everything that the subnet manager can say.

use serde::{Deserialize, Serialize};
use weft_machine::Time;
use weft_mgmt::DirectedPath;
use weft_routing::EngineReport;
use weft_wire::{
    AttributeId, Guid, Lid, NodeType, PortNum, PortState, ServiceLevel, SmState, TrapNumber, VirtualLane,
    VmMoveKind,
};

use crate::phase::SweepPhase;
use crate::{Instructed, Instruction, PhaseTime, Summary, SweepKind};

/// Why a sweep began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reason {
    /// The manager was attached.
    Start,
    /// The operator wanted it.
    Command,
    /// It was time.
    Interval,
    /// A trap came.
    Trap {
        /// Which.
        number: TrapNumber,
        /// From whom.
        lid: Lid,
    },
    /// A switch says that a port changed.
    StateChange {
        /// Which switch.
        guid: Guid,
    },
    /// A switch did not answer.
    NoAnswer {
        /// Which switch.
        guid: Guid,
    },
    /// A node answers that did not answer before.
    Answer {
        /// Behind which node.
        guid: Guid,
        /// Behind which port.
        port: PortNum,
    },
    /// The manager's own port changed.
    OwnPort,
    /// Another manager came, went, or handed over.
    Managers,
    /// The sweep before was not complete: something did not answer or refused.
    Incomplete,
    /// What repairs have left burdens cables more than it has to, or does not hold.
    Unbalanced,
}

/// Something that people or tests may want to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A sweep began.
    SweepStarted {
        /// Which kind.
        kind: SweepKind,
        /// Why.
        reason: Reason,
    },
    /// A light sweep found nothing.
    Quiet,
    /// A phase of a heavy sweep began.
    PhaseStarted {
        /// Which.
        phase: SweepPhase,
    },
    /// A phase of a heavy sweep ended.
    PhaseDone(PhaseTime),
    /// A node that was not there before.
    NodeFound {
        /// Its GUID.
        guid: Guid,
        /// What it is.
        kind: NodeType,
        /// Its NodeDescription.
        description: String,
    },
    /// A node that was there before is not found any more.
    NodeLost {
        /// Its GUID.
        guid: Guid,
        /// What it is.
        kind: NodeType,
        /// Its NodeDescription.
        description: String,
    },
    /// An HCA that was there before cannot be reached any more.
    HostCutOff {
        /// Its GUID.
        guid: Guid,
        /// Its NodeDescription.
        description: String,
    },
    /// A port is given a LID that it did not have.
    LidAssigned {
        /// The port's GUID.
        port_guid: Guid,
        /// Its base LID.
        lid: Lid,
        /// What it had before; 0 is none.
        before: Lid,
    },
    /// There are more ports than LIDs; this one gets none.
    LidsExhausted {
        /// The port's GUID.
        port_guid: Guid,
    },
    /// A virtual function gets no LID, because all that virtual functions may have are in use or in quarantine.
    VmLidRefused {
        /// The GUID of the function's port.
        port_guid: Guid,
        /// LIDs of virtual functions that are in use.
        in_use: u32,
        /// Those in quarantine.
        quarantined: u32,
    },
    /// Ports of virtual functions wait for their LIDs: there are LIDs with rows and without a port, and the VM manager has not said yet
    /// whose they are.
    VmLidsWait {
        /// How many ports.
        ports: u32,
    },
    /// A trap came, and was repressed.
    TrapReceived {
        /// Which.
        number: TrapNumber,
        /// From whom.
        lid: Lid,
        /// Whether it is taken as news; repeated traps, and those that call for nothing, are not.
        news: bool,
    },
    /// Hosts were told to subscribe again to what they want to know of, because this manager knows of nothing.
    Reregister {
        /// How many ports that is.
        ports: u32,
    },
    /// A port is in more partitions than its table has places for; the last ones are left out.
    PartitionsLeftOut {
        /// The port's GUID.
        port_guid: Guid,
        /// How many.
        partitions: u32,
    },
    /// Congestion control is off here, but nodes go on with settings that somebody wrote before. They are left alone.
    CongestionLeft {
        /// Switches that mark packets.
        switches: u32,
        /// Ports of hosts that slow down.
        hosts: u32,
    },
    /// Which lane is management's alone.
    ManagementLane {
        /// The lane; `None`: a link has no second one, or maps no service levels, so management shares the data's.
        lane: Option<VirtualLane>,
    },
    /// Subscribers are told to use paths differently.
    Repath {
        /// 69, or 68 where that has come to an end.
        number: TrapNumber,
        /// Who wants it: the manager itself after another routing, or whoever asked.
        from: Lid,
        /// The code of what it is for (`RepathKind`).
        kind: u8,
        /// The service level to use, or to leave.
        service_level: ServiceLevel,
        /// The source, or the old LID.
        slid: Lid,
        /// The destination, or the new LID.
        dlid: Lid,
        /// The port that is told, 0 for all that have subscribed.
        target: Lid,
        /// How many ports that is.
        told: u32,
    },
    /// A heavy sweep has configured the subnet: all of it is in service.
    SubnetUp(Summary),
    /// A heavy sweep has ended, and not all of the subnet is in service.
    SweepIncomplete(Summary),
    /// A port did not take on the state that it was told to.
    PortRefused {
        /// The node.
        guid: Guid,
        /// The port.
        port: PortNum,
        /// What it was told.
        wanted: PortState,
        /// What it answered.
        state: PortState,
        /// The answer's status.
        status: u16,
    },
    /// A device answered a request with an error.
    Refused {
        /// The node.
        guid: Guid,
        /// Of which attribute.
        attribute: AttributeId,
        /// Which part.
        modifier: u32,
        /// The answer's status.
        status: u16,
    },
    /// A port keeps an M_Key that this manager does not know, so nothing is written into it.
    KeyUnknown {
        /// The node.
        guid: Guid,
        /// The port; 0 is a whole switch.
        port: PortNum,
        /// The node's NodeDescription.
        description: String,
    },
    /// The manager's own port answers nothing. It may keep an M_Key that is not known here, at level 2 or 3.
    OwnPortSilent,
    /// Nobody answered.
    Unanswered {
        /// The node that was asked, or through which it was asked.
        guid: Guid,
        /// For which attribute.
        attribute: AttributeId,
        /// Which part.
        modifier: u32,
    },
    /// A port has a link, but nobody behind it answers.
    PortSilent {
        /// The node.
        guid: Guid,
        /// The port.
        port: PortNum,
    },
    /// A second node, or a second port, has the GUID of another; it is left out.
    DuplicateGuid {
        /// The GUID.
        guid: Guid,
        /// Where the first is.
        first: DirectedPath,
        /// Where the second is.
        second: DirectedPath,
    },
    /// A switch's port leads back into the same port.
    PortToItself {
        /// The node.
        guid: Guid,
        /// The port.
        port: PortNum,
    },
    /// A device says what cannot be, and is left out or not followed further.
    Nonsense {
        /// The node that says it, or through which it was reached; 0 where not even that is known.
        guid: Guid,
        /// In which attribute.
        attribute: AttributeId,
    },
    /// The fabric is larger than the manager allows; the rest is left out.
    TooLarge {
        /// The most nodes.
        nodes_max: u32,
    },
    /// This manager's state among others has changed.
    SmState {
        /// What it is now.
        state: SmState,
        /// The port GUID of the manager that is in charge, or is taken for it; 0 is not known.
        master: Guid,
    },
    /// A manager was asked to take over and refused.
    HandoverRefused {
        /// The port that it is behind.
        guid: Guid,
    },
    /// Another manager commands, but does not show this one's SM_Key; nothing comes of it.
    SmKeyMismatch {
        /// The port that it is behind.
        guid: Guid,
    },
    /// Another subnet manager is on this subnet, or has changed its state.
    OtherSm {
        /// The port that it is behind.
        guid: Guid,
        /// Its priority.
        priority: u8,
        /// Its state.
        state: SmState,
        /// Whether it shows this manager's SM_Key.
        is_trusted: bool,
    },
    /// Another manager was told what the operator wants of it.
    Instructed {
        /// The port that it is behind.
        guid: Guid,
        /// What it was told.
        instruction: Instruction,
        /// What became of it.
        outcome: Instructed,
    },
    /// The manager's own port has no link; it waits.
    OwnPortDown,
    /// The manager's own port has a link again.
    OwnPortUp,
    /// Routes were computed: by which engine, why not by those before it, and what that is like.
    Routed(EngineReport),
    /// No routes could be computed; the tables stay as they are.
    RouteFailed {
        /// Why.
        message: String,
    },
    /// A move of a LID has begun: its plan is proved.
    MoveStarted {
        /// The port GUID that has the LID.
        guid: Guid,
        /// The LID.
        lid: Lid,
        /// What is done with it.
        kind: VmMoveKind,
        /// Rounds of the plan.
        rounds: u32,
        /// Blocks that it writes.
        smps: u32,
    },
    /// A LID has moved: all switches have acknowledged.
    MoveDone {
        /// The port GUID that has the LID.
        guid: Guid,
        /// The LID.
        lid: Lid,
        /// Physical switches written, by the plan that did it with others or alone.
        physical: u32,
        /// vSwitches written.
        vswitches: u32,
        /// Blocks written.
        smps: u32,
        /// From the request to the last acknowledgement.
        took: Time,
    },
    /// A LID has moved, but for switches around its old place: they drop packets for it and get their rows late, once packets
    /// of the old way are gone.
    MoveLate {
        /// The port GUID that has the LID.
        guid: Guid,
        /// The LID.
        lid: Lid,
        /// How many switches.
        switches: u32,
        /// How long packets may be under way.
        wait: Time,
    },
    /// The last switches have the rows of LIDs that have moved.
    MoveFinished {
        /// How many LIDs.
        lids: u32,
        /// Blocks written.
        smps: u32,
    },
    /// A request to move a LID was refused; nothing was written.
    MoveRefused {
        /// The port GUID that has the LID, as the request has it.
        guid: Guid,
        /// The LID, as the request has it.
        lid: Lid,
        /// Why.
        reason: String,
    },
    /// A move of a LID ended before all switches had acknowledged. A heavy sweep follows.
    MoveBroken {
        /// The port GUID that has the LID.
        guid: Guid,
        /// The LID.
        lid: Lid,
        /// Why.
        reason: String,
    },
    /// Rows of machines' LIDs have become those of a fresh routing again. Balance is that of the tables in force beside fresh ones, in
    /// thousandths.
    Rebalanced {
        /// LIDs whose rows were written.
        lids: u32,
        /// Blocks written.
        smps: u32,
        /// LIDs that were chosen and keep their rows: no plan for them could be proved that drops no packets.
        kept: u32,
        /// The balance before.
        before: u32,
        /// The balance now; `None` where a move or a sweep came between, after which tables are weighed again.
        after: Option<u32>,
    },
    /// The fabric kept changing; the manager stops sweeping at once and looks again later.
    Unsettled {
        /// How many sweeps followed each other.
        sweeps: u32,
    },
}
