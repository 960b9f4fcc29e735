//! Moves of virtual machines: their steps, what they cost, and what a plan writes.

use serde::{Deserialize, Serialize};
use weft_machine::Time;
use weft_wire::Guid;

#[cfg(feature = "schema")]
use crate::HexGuid;
use crate::hex;

weft_wire::named! {
    /// A step of a move, written down before it is taken.
    ///
    /// ```text
    ///                  ┌▶ reroute ┐ ahead, while the rest of the memory is copied
    ///  (reserve) ─▶ freeze ─▶ import ─▶ reroute ─▶ commit ─▶ done
    ///      │          │         │         │ ▲
    ///      └──────────┴─────────┴────┬────┘ │ the source died, and the image has arrived
    ///                              undo ────┤
    ///                                ├▶ back (if the subnet manager was asked)
    ///                                ├▶ resume (if the source was ordered to freeze)
    ///                                └▶ undone
    /// ```
    #[derive(PartialOrd, Ord)]
    pub enum Step {
        /// Reserve the destination.
        Reserve = "reserve",
        /// Suspend the source.
        Freeze = "freeze",
        /// Send the image to the destination.
        Import = "import",
        /// Ask the subnet manager to move the address.
        Reroute = "reroute",
        /// The destination may run, and the source never again.
        Commit = "commit",
        /// The destination runs.
        Done = "done",
        /// The source is to run again.
        Undo = "undo",
        /// Ask the subnet manager to move the address back.
        Back = "back",
        /// Resume the source.
        Resume = "resume",
        /// The source runs.
        Undone = "undone",
    }
}

impl Step {
    /// Whether this step may follow `earlier` ones of a move.
    pub fn may_follow(self, earlier: Self) -> bool {
        use Step::{Back, Commit, Done, Freeze, Import, Reroute, Reserve, Resume, Undo, Undone};
        let before: &[Self] = match self {
            Reserve => &[],
            Freeze => &[Reserve],
            Import => &[Freeze, Reroute],
            Reroute => &[Freeze, Import, Reroute, Undo, Back],
            Commit => &[Reroute],
            Done => &[Commit],
            Undo => &[Reserve, Freeze, Import, Reroute],
            Back => &[Undo, Back],
            Resume => &[Undo, Back, Resume],
            Undone => &[Undo, Resume],
        };
        before.contains(&earlier)
    }

    /// Whether the source may yet run again.
    pub fn is_before_commit(self) -> bool {
        !matches!(self, Self::Commit | Self::Done)
    }
}

/// What a move costs, or would cost, as the subnet manager counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "VmMoveCounts"))]
pub struct MoveCounts {
    /// The method that made the plan.
    pub method: String,
    /// The order of its writes.
    #[serde(default)]
    pub update: String,
    /// Why methods before it did not.
    pub fallbacks: Vec<String>,
    /// Switches that drop packets at first and get their rows late, once packets of the old way are gone.
    #[serde(default)]
    pub late: u32,
    /// Rows that are detours until then.
    #[serde(default)]
    pub detours: u32,
    /// LFT SMPs to physical switches that are sent late.
    #[serde(default)]
    pub late_physical_smps: u32,
    /// The same to vSwitches.
    #[serde(default)]
    pub late_vswitch_smps: u32,
    /// The number of switches with hosts that hear nothing of the machine until then.
    #[serde(default)]
    pub silent: u32,
    /// For how long after the move, at most, in nanoseconds.
    #[serde(default, rename = "silence_ns")]
    pub silence: Time,
    /// How long after the move the last of the late rows may be written, in nanoseconds.
    #[serde(default, rename = "late_after_ns")]
    pub late_after: Time,
    /// The lanes on which nothing is proved: by the tables in force, channels wait for each other in a circle there already.
    #[serde(default, with = "lanes")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<u8>"))]
    pub unproved_lanes: u16,
    /// How long queue pairs to and of the machine are held before the first write, at least, in nanoseconds: else packets on levels of the
    /// old place could wait in a circle, which is in `fallbacks`. 0 where they are not held.
    #[serde(default, rename = "held_ns")]
    pub held: Time,
    /// Physical switches written.
    pub switches: u32,
    /// Rounds of writes.
    pub rounds: u32,
    /// LFT SMPs to physical switches.
    pub physical_smps: u32,
    /// LFT SMPs to vSwitches.
    pub vswitch_smps: u32,
    /// SMPs that hypervisors receive, as the papers count them: LIDs taken away and set, and virtual GUIDs.
    pub hypervisor_smps: u32,
}

impl MoveCounts {
    /// The lanes on which nothing is proved, in order.
    pub fn lanes_unproved(&self) -> impl Iterator<Item = u8> + use<> {
        lanes::of(self.unproved_lanes)
    }
}

/// Lanes by bit, in JSON and in recordings a list.
mod lanes {
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn of(bits: u16) -> impl Iterator<Item = u8> {
        (0..16).filter(move |lane| bits & 1 << lane != 0)
    }

    pub(super) fn serialize<S: Serializer>(bits: &u16, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(of(*bits))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u16, D::Error> {
        let lanes = Vec::<u8>::deserialize(from)?;
        Ok(lanes.iter().fold(0, |bits, lane| bits | 1_u16.checked_shl((*lane).into()).unwrap_or(0)))
    }
}

/// One write of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "VmPlanWrite"))]
pub struct PlanWrite {
    /// The round, from 1.
    pub round: u16,
    /// The switch's NodeGUID.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "HexGuid"))]
    pub switch: Guid,
    /// What people call it.
    pub name: String,
    /// The block of its forwarding table.
    pub block: u16,
    /// Whether it is a vSwitch.
    pub vswitch: bool,
    /// Whether packets between the old place and the new one pass it, so that it comes first in its round.
    pub active: bool,
    /// Whether packets of earlier rounds must have arrived before its round begins.
    pub after_drain: bool,
    /// Whether it is written late, after the machine runs.
    #[serde(default)]
    pub late: bool,
    /// Whether its row for the machine is a detour, or replaces one.
    #[serde(default)]
    pub detour: bool,
}

/// A switch with hosts that hear nothing of a machine for a time after its move.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "VmSilent"))]
pub struct Silent {
    /// Its NodeGUID.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "HexGuid"))]
    pub switch: Guid,
    /// What people call it.
    pub name: String,
    /// For how long, at most, in nanoseconds.
    #[serde(rename = "silence_ns")]
    pub silence: Time,
}
