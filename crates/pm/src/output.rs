use serde::{Deserialize, Serialize};
use weft_machine::Time;
use weft_vocabulary::pm::Question;
use weft_wire::{AddressedMad, Guid, Lid};

/// What the manager wants done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(clippy::large_enum_variant)] // Most outputs are sends; boxing them would cost more than it saves.
pub enum Output {
    /// Send a MAD.
    Send(AddressedMad),
    /// Something worth logging or showing.
    Event(Event),
}

/// What the manager says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Event {
    /// The fabric is known now, or known anew.
    Learned {
        /// Nodes; an HCA counts once, however many ports it has.
        nodes: usize,
        /// Ports whose counters are swept.
        ports: usize,
    },
    /// Subnet administration did not tell what was asked; it is asked again after a pause.
    NotLearned {
        /// What was asked for.
        question: Question,
        /// The status that it answered with; none when it did not answer.
        status: Option<u16>,
    },
    /// A sweep has ended. Rates are new until the next one begins.
    Swept {
        /// Which one.
        number: u64,
        /// How long it took.
        took: Time,
        /// Whether that was longer than the interval.
        late: bool,
        /// Ports of which something was not answered.
        unanswered: u32,
    },
    /// A device does not answer, and is left out until it does.
    Silent {
        /// The device.
        node: Guid,
    },
    /// A device answers again.
    Answers {
        /// The device.
        node: Guid,
    },
    /// A port has become a hot spot.
    HotSpot {
        /// The host's LID.
        lid: Lid,
        /// The host's port.
        port: Guid,
        /// What the switch's port towards it shows, in ticks per second of fabric time.
        congestion: u64,
    },
    /// It is none any more.
    HotSpotEnded {
        /// The host's LID.
        lid: Lid,
        /// The host's port.
        port: Guid,
    },
    /// A host takes part in a hot spot, or suffers from it.
    Contributor {
        /// The hot spot.
        hot_spot: Lid,
        /// The host.
        lid: Lid,
        /// Its port.
        port: Guid,
        /// What its port shows, in ticks per second of fabric time.
        congestion: u64,
        /// Its port's utilisation in millionths of the link's rate.
        utilisation_ppm: u32,
    },
    /// The subnet manager has taken the repath of a host towards a hot spot.
    Repathed {
        /// The hot spot.
        hot_spot: Lid,
        /// Its port.
        hot_spot_guid: Guid,
        /// The host.
        lid: Lid,
        /// Its port.
        port: Guid,
    },
    /// The subnet manager has taken the unpath of a host.
    Unpathed {
        /// What was a hot spot.
        hot_spot: Lid,
        /// Its port.
        hot_spot_guid: Guid,
        /// The host.
        lid: Lid,
        /// Its port.
        port: Guid,
    },
    /// The subnet manager did not take a repath or unpath; it is asked again, unless it has refused too often.
    NotMoved {
        /// The hot spot; 0 when all hosts were to leave all of them.
        hot_spot: Lid,
        /// The host; 0 likewise.
        lid: Lid,
        /// The status that it answered with; none when it did not answer.
        status: Option<u16>,
    },
    /// Hosts were asked to leave all slow lanes, because an earlier manager may have told them to use some.
    AskedAgain,
    /// The subnet manager has restarted, or another has taken over: hosts are told anew what they were told before.
    Forgotten,
}
