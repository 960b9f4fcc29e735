//! Moves of virtual machines' LIDs: an attribute of weft's own. The architecture has none by which a subnet manager is asked
//! to move a LID, so the number is of those that are left to vendors (IBA 13.4.8).
//!
//! | request | what it does |
//! |---|---|
//! | `SubnAdmSet(VmMove)` | moves, and is answered after the last acknowledgement |
//! | `SubnAdmGet(VmMove)` | plans and proves, and sends nothing to switches |
//! | `SubnAdmGetTable(VmMoveWrite)` with a [`VmMove`] as the record | lists the writes of that plan |

use super::record;
use crate::{Guid, Lid, PortNum};

codes! {
    /// What a [`VmMove`] asks for.
    VmMoveKind(u8), 8 {
        /// The GUID is about to change its place: its rows stay while it is away, and traps about it wait.
        Hold = 1,
        /// It stays where it is after all: the end of `Hold`.
        Release = 2,
        /// A LID takes over the rows of the physical function at its new place (dynamic LIDs).
        Copy = 3,
        /// A LID changes places with the one that is at its new place (prepopulated LIDs).
        Swap = 4,
        /// A LID gets rows, those of the physical function at its place.
        Boot = 5,
        /// A LID loses its rows.
        Clear = 6,
        /// A GUID has this LID, wherever it is: a manager that has come into charge cannot find that out while the port is away.
        Address = 7,
        /// All addresses and holds were repeated to the mastership that the request names.
        Announced = 8,
    }

    /// How a [`VmMove`] chooses the switches that are written.
    VmMoveMethod(u8), 8 {
        /// The least switches of a fat-tree; falls back to the others.
        FtreeMinrc = 0,
        /// Every switch whose row does not lead nearer to the new place.
        Skyline = 1,
        /// Every switch whose row differs.
        Itrc = 2,
        /// Every block of every switch.
        Full = 3,
    }

    /// What waits for what while a [`VmMove`] is carried out.
    VmMoveOrder(u8), 8 {
        /// A switch is written when the next written switch on its new path has acknowledged.
        Ordered = 0,
        /// Packets are dropped first.
        DropFirst = 1,
        /// All at once.
        Unordered = 2,
        /// As `Ordered`, but some switches, most of them around the old place, drop packets at first or send them a detour, and get their
        /// rows once packets of the old way are gone, after the answer.
        OrderedLate = 3,
    }

    /// What a [`VmMove`] does where a new row could turn packets of the old way round and close a circle of channels.
    VmMoveLate(u8), 7 {
        /// The switch sends packets a detour until those of the old way are gone, or drops them where there is none.
        Detour = 0,
        /// The switch drops packets until then.
        Wait = 1,
        /// The move is refused.
        Refuse = 2,
    }

    /// What became of a [`VmMove`].
    VmMoveResult(u8), 8 {
        /// Nothing yet: it is a request.
        None = 0,
        /// Every switch has acknowledged.
        Done = 1,
        /// A plan was made and proved, and nothing was sent.
        Planned = 2,
        /// The request contradicts itself or the fabric.
        Invalid = 3,
        /// A newer epoch of this GUID is known.
        OldEpoch = 4,
        /// No plan can be made or proved.
        Unproved = 5,
        /// A switch has not acknowledged, or refused; a sweep heals.
        Broken = 6,
        /// The manager does not move LIDs for this requester.
        Denied = 7,
        /// `Hold`: packets of other moves are under way, for which this one would wait with its machine frozen. `took_us` says
        /// after how long it may be asked again.
        Later = 8,
        /// `Announced`: this manager has come into charge since, and has not heard all addresses. The answer names its mastership.
        Untold = 9,
    }
}

layout! {
    /// A move of a virtual machine's LID, as it is asked for and as it is answered. A request leaves the second half 0.
    ///
    /// A place is a port of a vSwitch: cables within an adapter stay, and identities change between them.
    pub struct VmMove: 200 {
        /// What is wanted.
        0, 8, kind: VmMoveKind;
        /// How switches are chosen.
        8, 8, method: VmMoveMethod;
        /// What waits for what.
        16, 8, order: VmMoveOrder;
        /// The port of `from_switch`.
        24, 8, from_port: PortNum;
        /// The port of `to_switch`.
        32, 8, to_port: PortNum;
        /// What is done where order alone is not safe.
        40, 7, policy: VmMoveLate;
        /// 1: no machine has the LID that comes back, so that no packets go there.
        47, 1, partner_is_idle: u8;
        /// How long the GUIDs may be away, in seconds; 0 is the manager's default.
        48, 16, hold_s: u16;
        /// The machine's LID; 0: the manager finds it by the GUID, or chooses one for `Boot`.
        64, 16, lid: Lid;
        /// `Swap`: the LID that comes back. Else the LID whose rows are copied. 0: the manager finds it.
        80, 16, partner_lid: Lid;
        /// `Announced`: the mastership that knows everything, as a manager names it; 0: none.
        96, 32, mastership: u32;
        /// The machine's port GUID.
        128, 64, guid: Guid;
        /// `Swap`: the port GUID that comes back.
        192, 64, partner: Guid;
        /// The NodeGUID of the vSwitch where the machine is.
        256, 64, from_switch: Guid;
        /// The NodeGUID of the vSwitch where it goes.
        320, 64, to_switch: Guid;
        /// Counted up by whoever moves the machine. An old one is refused, with the latest one in the answer; a repeated one gets
        /// the same answer.
        384, 64, epoch: u64;
        /// What became of it.
        448, 8, result: VmMoveResult;
        /// What made the plan.
        456, 8, made_by: VmMoveMethod;
        /// The order of the plan: packets may be dropped first as the last resort.
        464, 8, made_in: VmMoveOrder;
        /// Methods and orders that were tried before.
        472, 8, fallbacks: u8;
        /// Rounds of writes.
        480, 16, rounds: u16;
        /// Moves that the plan carries out together, this one among them.
        496, 16, together: u16;
        /// Physical switches written.
        512, 32, physical: u32;
        /// vSwitches written.
        544, 32, vswitches: u32;
        /// Blocks written to physical switches.
        576, 32, physical_smps: u32;
        /// Blocks written to vSwitches.
        608, 32, vswitch_smps: u32;
        /// SMPs that hypervisors receive: LIDs taken away and set, and virtual GUIDs (vSwitch paper of 2015, V-C).
        640, 32, hypervisor_smps: u32;
        /// From the request to the last acknowledgement, in microseconds; with `Later`, how long to wait.
        672, 32, took_us: u32;
        /// Switches of the plan that have no row until the late ones are written.
        704, 16, late: u16;
        /// By bit: the lanes on which nothing is proved, because channels wait for each other in a circle by the tables in force
        /// already.
        720, 16, unproved_lanes: u16;
        /// How long hosts at some switches hear nothing of the machine after the last acknowledgement, at most, in microseconds; the late
        /// rows are written then.
        736, 32, silent_us: u32;
        /// Blocks among `physical_smps` that are written late.
        768, 16, late_physical_smps: u16;
        /// Blocks among `vswitch_smps` that are written late.
        784, 16, late_vswitch_smps: u16;
        /// The number of switches with those hosts.
        800, 16, silent: u16;
        /// Rows that are detours until the late ones are written.
        816, 16, detours: u16;
        /// How long after the last acknowledgement all late rows are written at the earliest, detours' too, in microseconds.
        832, 32, late_us: u32;
        /// How long queue pairs to and of the machine are held before the first write, in microseconds; 0 where they are not.
        864, 32, held_us: u32;
        /// Why not, in words: UTF-8, filled up with zeros.
        896, 704, reason: [u8; 88];
    }

    /// One write of a plan.
    pub struct VmMoveWrite: 16 {
        /// The switch's NodeGUID.
        0, 64, switch: Guid;
        /// The round, from 1.
        64, 16, round: u16;
        /// The block of its forwarding table.
        80, 16, block: u16;
        /// 1: packets between the old place and the new one pass it, so it comes first in its round.
        96, 1, is_active: u8;
        /// 1: a vSwitch.
        97, 1, is_vswitch: u8;
        /// 1: packets of earlier rounds must have arrived before its round begins.
        98, 1, after_drain: u8;
        /// 1: it is written late, after the answer to the move.
        99, 1, is_late: u8;
        /// 1: its row for the machine is a detour, or replaces one.
        100, 1, is_detour: u8;
        /// 1: no write, but a switch with hosts that hear nothing of the machine for `silent_ms` after the move.
        101, 1, is_silent: u8;
        /// Reserved.
        102, 2, reserved_102: u8;
        /// How long, rounded up.
        104, 24, silent_ms: u32;
    }
}

record!(VmMove: VM_MOVE, 38);
record!(VmMoveWrite: VM_MOVE_WRITE, 11);

impl VmMove {
    /// The reason as text, as far as it is UTF-8.
    pub fn reason_text(&self) -> String {
        let end = self.reason.iter().position(|byte| *byte == 0).unwrap_or(self.reason.len());
        String::from_utf8_lossy(&self.reason[..end]).into_owned()
    }

    /// The same with a reason. What is too long is cut between two characters.
    pub fn with_reason(mut self, text: &str) -> Self {
        let end = text.floor_char_boundary(self.reason.len());
        self.reason = [0; 88];
        self.reason[..end].copy_from_slice(&text.as_bytes()[..end]);
        self
    }

    /// The request alone: what is answered is 0.
    pub fn request(&self) -> Self {
        let mut bytes = self.encode();
        bytes[ANSWER_AT..].fill(0);
        Self::decode(&bytes)
    }

    /// Whether two are the same request: what is answered does not count.
    pub fn asks_as(&self, other: &Self) -> bool {
        self.request() == other.request()
    }
}

/// Where the answer begins.
const ANSWER_AT: usize = 56;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SA_DATA_SIZE, SaRecord};

    #[test]
    fn it_fills_a_mad_and_the_answer_follows_the_request() {
        assert_eq!(VmMove::SIZE, SA_DATA_SIZE);
        let result = VmMove::TABLE.iter().position(|row| row.name == "result").expect("a row");
        assert_eq!(VmMove::TABLE[result].first / 8, ANSWER_AT);
        assert_eq!(VmMoveWrite::OFFSET, 2);
    }

    #[test]
    fn a_reason_is_cut_between_characters() {
        let short = VmMove::default().with_reason("no tree");
        assert_eq!(short.reason_text(), "no tree");
        let long = VmMove::default().with_reason(&format!("x{}", "ß".repeat(60)));
        assert_eq!(long.reason_text(), format!("x{}", "ß".repeat(43)));
        assert_eq!(long.with_reason("").reason_text(), "");
        assert_eq!(VmMove { reason: [0xff; 88], ..VmMove::default() }.reason_text().chars().count(), 88);
    }

    #[test]
    fn an_answer_asks_as_its_request() {
        let asked = VmMove { kind: VmMoveKind::Swap, epoch: 7, ..VmMove::default() };
        let answer = VmMove { result: VmMoveResult::Done, rounds: 5, ..asked }.with_reason("so");
        assert!(answer.asks_as(&asked));
        assert!(!VmMove { epoch: 8, ..asked }.asks_as(&asked));
        assert!(!VmMove { to_port: PortNum(3), ..asked }.asks_as(&asked));
    }
}
