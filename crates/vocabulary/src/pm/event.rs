//! Events of the performance manager.

use weft_wire::{Lid, count_of, sa_status};

use super::Question;
use crate::words::{count, lower};
use crate::{HexGuid, told};

told! {
    /// What happened to the fabric's traffic, as a performance manager sees it.
    #[derive(Eq)]
    #[cfg_attr(feature = "schema", schemars(rename = "PmEvent"))]
    Event by "event" {
        /// The fabric is known now, or known again.
        Learned = "learned" {
            /// Nodes; an HCA counts once, however many ports it has.
            nodes: u64,
            /// Ports whose counters are swept.
            ports: u64,
        } => ("learned the fabric: {}, {}", count_of(*nodes as usize, "node"), count_of(*ports as usize, "port")),
        /// Subnet administration did not tell what was asked; it is asked again after a pause.
        NotLearned = "not-learned" {
            /// What was asked for.
            question: Question,
            /// The status that it answered with; none when it did not answer.
            status: Option<u16>,
        } => ("cannot learn {}: {}", lower(question), answered(*status)),
        /// A sweep has ended.
        Swept = "swept" {
            /// Its number.
            number: u64,
            /// How long it took, in nanoseconds.
            took_ns: u64,
            /// Whether that was longer than the interval.
            late: bool,
            /// Ports of which something was not answered.
            unanswered: u32,
        } => ("sweep {number} took {:.3} s, {} unanswered", *took_ns as f64 / 1e9, count(*unanswered, "port")),
        /// A device does not answer, and is left out until it does.
        Silent = "silent" {
            /// The device.
            node_guid: HexGuid,
        } => ("{node_guid} does not answer"),
        /// A device answers again.
        Answers = "answers" {
            /// The device.
            node_guid: HexGuid,
        } => ("{node_guid} answers again"),
        /// A port has become a hot spot.
        HotSpot = "hot-spot" {
            /// The host's LID.
            lid: Lid,
            /// The host's port.
            port_guid: HexGuid,
            /// What the switch's port towards it shows, in ticks per second of fabric time.
            congestion: u64,
        } => ("hot spot: LID {lid} ({port_guid})"),
        /// It is none any more.
        HotSpotEnded = "hot-spot-ended" {
            /// The host's LID.
            lid: Lid,
            /// The host's port.
            port_guid: HexGuid,
        } => ("hot spot no more: LID {lid} ({port_guid})"),
        /// A host takes part in a hot spot, or suffers from it.
        Contributor = "contributor" {
            /// The hot spot.
            hot_spot: Lid,
            /// The host.
            lid: Lid,
            /// Its port.
            port_guid: HexGuid,
            /// What its port shows, in ticks per second of fabric time.
            congestion: u64,
            /// Its port's utilisation in millionths of the link's rate.
            utilisation_ppm: u32,
        } => ("LID {lid} contributes to LID {hot_spot}"),
        /// The subnet manager has taken the repath of a host towards a hot spot.
        Repathed = "repathed" {
            /// The hot spot.
            hot_spot: Lid,
            /// Its port.
            hot_spot_guid: HexGuid,
            /// The host.
            lid: Lid,
            /// Its port.
            port_guid: HexGuid,
        } => ("LID {lid} takes the slow lane to LID {hot_spot}"),
        /// The subnet manager has taken the unpath of a host.
        Unpathed = "unpathed" {
            /// What was a hot spot.
            hot_spot: Lid,
            /// Its port.
            hot_spot_guid: HexGuid,
            /// The host.
            lid: Lid,
            /// Its port.
            port_guid: HexGuid,
        } => ("LID {lid} leaves the slow lane to LID {hot_spot}"),
        /// The subnet manager did not take a repath or unpath; it is asked again, unless it has refused too often.
        NotMoved = "not-moved" {
            /// The hot spot; 0 when all hosts were to leave all of them.
            hot_spot: Lid,
            /// The host; 0 likewise.
            lid: Lid,
            /// The status that it answered with; none when it did not answer.
            status: Option<u16>,
        } => ("LID {lid} was not told of LID {hot_spot}: {}", answered(*status)),
        /// Hosts were asked to leave all slow lanes: an earlier manager may have sent some there.
        AskedAgain = "asked-again"
            => ("all hosts were asked to leave slow lanes"),
        /// The subnet manager has taken a report of what hosts receive, for routing to learn from.
        ReceivedReported = "received-reported"
            => ("reported to the subnet manager what hosts receive"),
        /// It did not take it; the next one is made when it is time.
        ReceivedNotReported = "received-not-reported" {
            /// The status that it answered with; none when it did not answer.
            status: Option<u16>,
        } => ("the subnet manager did not take what hosts receive: {}", answered(*status)),
        /// The subnet manager has restarted, or another has taken over: all notices go out again.
        Forgotten = "forgotten"
            => ("the subnet manager began again; hosts are told again what they were told"),
    }
}

fn answered(status: Option<u16>) -> String {
    match status {
        None => "no answer".to_owned(),
        Some(sa_status::REQ_DENIED) => {
            format!("status {:#06x}: it wants the key of its --sa-key", sa_status::REQ_DENIED)
        }
        Some(status) => format!("status {status:#06x}"),
    }
}
