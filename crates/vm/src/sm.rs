//! The manager's requests to the subnet manager, and its answers.

use serde::{Deserialize, Serialize};
use weft_machine::Time;
use weft_vocabulary::vm::{LatePolicy, Method, MoveCounts, PlanWrite, Silent, UpdateOrder};
use weft_wire::{Guid, Lid};

use crate::names::Slot;

/// Writes of a plan at most.
pub const PLAN_WRITES_MAX: usize = 65_536;

/// A question to the subnet manager.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SmRequest {
    /// The answer names it.
    pub number: u64,
    /// The epoch of the move. A request of an epoch that the subnet manager has carried out is answered again, and changes nothing.
    pub epoch: u64,
    /// What it is to do.
    pub wish: SmWish,
    /// How it chooses the switches that it writes, and their order.
    pub route: Route,
    /// The addresses that move: one, or two that change places.
    pub moves: Vec<AddressMove>,
}

/// What the subnet manager is to do with addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SmWish {
    /// Say what a move would change.
    Plan,
    /// Keep their rows and hold traps back while they are away.
    Hold,
    /// They stay where they are: the end of a hold.
    Release,
    /// Note whose LID it is. A subnet manager that has taken over cannot find that out where the port is away.
    Address,
    /// Move them.
    Move,
    /// Say at which switches hosts hear nothing for a time, now that a move of this epoch is carried out.
    Silent,
}

/// How the subnet manager chooses the switches that it writes, and their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Route {
    /// Which switches.
    pub method: Method,
    /// In which order.
    pub order: UpdateOrder,
    /// What it does where that order alone is not safe.
    pub late: LatePolicy,
}

/// An address that moves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressMove {
    /// The GUID of its port.
    pub port_guid: Guid,
    /// The LID.
    pub lid: Lid,
    /// Whether a virtual machine uses it: the other one of a swap carries nothing.
    pub is_live: bool,
    /// From where.
    pub from: End,
    /// To where.
    pub to: End,
}

/// An end of a move.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// The slot.
    pub slot: Slot,
    /// The GUID of the adapter's physical port.
    pub physical: Guid,
}

/// What the subnet manager answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SmAnswer {
    /// The tables are written, and the last SMP is acknowledged.
    Done(MoveCounts),
    /// The plan, and nothing was sent.
    Plan(Box<MovePlan>),
    /// It will not, in words: a wrong SM_Key, a foreign LID, no safe order.
    Refused(String),
    /// It has carried out a later epoch of this address.
    OldEpoch(u64),
    /// To a hold: not yet, because packets of other moves are under way. It may be asked again after this time.
    Later(Time),
    /// It does not know the attribute, like OpenSM: the virtual function is unplugged and plugged in, and a sweep finds it.
    Unknown,
    /// No answer came.
    Timeout,
    /// No subnet manager could be asked for a while, in words: the one that the port names is dead, or not up yet.
    Unready(String),
}

/// What a move would cost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovePlan {
    /// Its counts.
    pub counts: MoveCounts,
    /// Each write, in order of sending; [`PLAN_WRITES_MAX`] at most.
    pub writes: Vec<PlanWrite>,
    /// The switches with hosts that hear nothing of the machine for a time after the move.
    pub silent: Vec<Silent>,
}

/// How long each stage of a migration took; `None` if there was none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stages {
    /// The destination was reserved.
    pub reserve: Option<Time>,
    /// Memory was copied while the machine ran (emulated).
    pub pre_copy: Option<Time>,
    /// The subnet manager holds the address.
    pub hold: Option<Time>,
    /// The source was frozen.
    pub freeze: Option<Time>,
    /// The image was taken, and what is left of the memory copied (emulated).
    pub export: Option<Time>,
    /// The destination took it.
    pub import: Option<Time>,
    /// The subnet manager wrote tables.
    pub reroute: Option<Time>,
    /// COMMIT was written to disk.
    pub commit: Option<Time>,
    /// The destination resumed.
    pub activate: Option<Time>,
    /// The port had its LID; only where the subnet manager did not move it.
    pub wait_for_lid: Option<Time>,
    /// The source was cleared.
    pub release: Option<Time>,
    /// From the command to freeze until the last peer is served, and until the machine has its LID where the subnet manager did not move
    /// it; `None` while it has none. An upper bound: it has the way of messages in it, and the longest that the subnet manager says that
    /// hosts are silent.
    pub downtime: Option<Time>,
    /// From the command to freeze to the answer that the destination runs, when all are served but those hosts.
    pub runs_again: Option<Time>,
    /// For how long hosts are silent after that answer, at most; `None` where none are. The rest of the time that their switches wait
    /// for packets of the old way fell within the time for which the machine was stopped.
    pub silent_after: Option<Time>,
    /// From the first stage's beginning to the last one's end, without waiting in the queue.
    pub total: Time,
}

impl Stages {
    /// The stages that there were, by name and in order, with how long each took.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, Time)> {
        let all = [
            ("reserve", self.reserve),
            ("pre-copy", self.pre_copy),
            ("hold", self.hold),
            ("freeze", self.freeze),
            ("export", self.export),
            ("import", self.import),
            ("reroute", self.reroute),
            ("commit", self.commit),
            ("activate", self.activate),
            ("wait-for-lid", self.wait_for_lid),
            ("release", self.release),
        ];
        all.into_iter().filter_map(|(stage, took)| Some((stage, took?)))
    }
}
