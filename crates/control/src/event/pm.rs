//! Events of a performance manager.

use weft_vocabulary::pm::Question;
use weft_wire::Lid;

use crate::HexGuid;
use crate::tagged::tagged;

tagged! {
    /// What happened to the fabric's traffic, as a performance manager sees it.
    PmEvent by "event" {
        /// The fabric is known now, or known again.
        Learned = "learned" {
            /// Nodes; an HCA counts once, however many ports it has.
            nodes: u64,
            /// Ports whose counters are swept.
            ports: u64,
        },
        /// Subnet administration did not tell what was asked; it is asked again after a pause.
        NotLearned = "not-learned" {
            /// What was asked for.
            question: Question,
            /// The status that it answered with; none when it did not answer.
            status: Option<u16>,
        },
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
        },
        /// A device does not answer, and is left out until it does.
        Silent = "silent" {
            /// The device.
            node_guid: HexGuid,
        },
        /// A device answers again.
        Answers = "answers" {
            /// The device.
            node_guid: HexGuid,
        },
        /// A port has become a hot spot.
        HotSpot = "hot-spot" {
            /// The host's LID.
            #[cfg_attr(feature = "schema", schemars(with = "u16"))]
            lid: Lid,
            /// The host's port.
            port_guid: HexGuid,
            /// What the switch's port towards it shows, in ticks per second of fabric time.
            congestion: u64,
        },
        /// It is none any more.
        HotSpotEnded = "hot-spot-ended" {
            /// The host's LID.
            #[cfg_attr(feature = "schema", schemars(with = "u16"))]
            lid: Lid,
            /// The host's port.
            port_guid: HexGuid,
        },
        /// A host takes part in a hot spot, or suffers from it.
        Contributor = "contributor" {
            /// The hot spot.
            #[cfg_attr(feature = "schema", schemars(with = "u16"))]
            hot_spot: Lid,
            /// The host.
            #[cfg_attr(feature = "schema", schemars(with = "u16"))]
            lid: Lid,
            /// Its port.
            port_guid: HexGuid,
            /// What its port shows, in ticks per second of fabric time.
            congestion: u64,
            /// Its port's utilisation in millionths of the link's rate.
            utilisation_ppm: u32,
        },
        /// The subnet manager has taken the repath of a host towards a hot spot.
        Repathed = "repathed" {
            /// The hot spot.
            #[cfg_attr(feature = "schema", schemars(with = "u16"))]
            hot_spot: Lid,
            /// Its port.
            hot_spot_guid: HexGuid,
            /// The host.
            #[cfg_attr(feature = "schema", schemars(with = "u16"))]
            lid: Lid,
            /// Its port.
            port_guid: HexGuid,
        },
        /// The subnet manager has taken the unpath of a host.
        Unpathed = "unpathed" {
            /// What was a hot spot.
            #[cfg_attr(feature = "schema", schemars(with = "u16"))]
            hot_spot: Lid,
            /// Its port.
            hot_spot_guid: HexGuid,
            /// The host.
            #[cfg_attr(feature = "schema", schemars(with = "u16"))]
            lid: Lid,
            /// Its port.
            port_guid: HexGuid,
        },
        /// The subnet manager did not take a repath or unpath; it is asked again, unless it has refused too often.
        NotMoved = "not-moved" {
            /// The hot spot; 0 when all hosts were to leave all of them.
            #[cfg_attr(feature = "schema", schemars(with = "u16"))]
            hot_spot: Lid,
            /// The host; 0 likewise.
            #[cfg_attr(feature = "schema", schemars(with = "u16"))]
            lid: Lid,
            /// The status that it answered with; none when it did not answer.
            status: Option<u16>,
        },
        /// Hosts were asked to leave all slow lanes, because an earlier manager may have told them to use some.
        AskedAgain = "asked-again",
        /// The subnet manager has restarted, or another has taken over: hosts are told again what they were told.
        Forgotten = "forgotten",
    }
}
