//! One cable, and its two ways.

use weft_machine::Time;
use weft_topology::{Fabric, PortRef};
use weft_wire::LinkParameters;

use super::flight::{Flock, NOWHERE};

/// One cable. Its link is up when both devices are on, both ends allow it and the cable is whole.
#[derive(Clone, Debug)]
pub(crate) struct Cable {
    pub(crate) ends: [PortRef; 2],
    pub(crate) whole: bool,
    /// Whether the operator has pulled it out.
    pub(crate) pulled: bool,
    /// How many partitions keep it out.
    pub(crate) parted: u32,
    /// Whether both ends are in one node, which then has the cable.
    pub(crate) inside: bool,
    /// How many cables had this number before.
    pub(crate) life: u32,
    pub(crate) link: Link,
    /// Counts every change, so that what is under way from before it does not arrive after it.
    pub(crate) incarnation: u64,
    /// Whether each device lets its link come up.
    pub(crate) enabled: [bool; 2],
    /// What each device says in its hello.
    pub(crate) parameters: [LinkParameters; 2],
    /// When each end lost the link, until it notices.
    pub(crate) lost: [Option<Time>; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    Down,
    Training,
    Up,
}

impl Cable {
    pub(crate) fn new(ends: [PortRef; 2], parameters: [LinkParameters; 2]) -> Self {
        Self {
            ends,
            whole: true,
            pulled: false,
            parted: 0,
            inside: false,
            life: 0,
            link: Link::Down,
            incarnation: 0,
            enabled: [true; 2],
            parameters,
            lost: [None; 2],
        }
    }
}

/// One direction of a cable, as its data lanes see it: they keep their order, all of them as one.
///
/// Half a line of the processor's cache, since every packet's way leads past it, and of thousands few are there.
#[derive(Debug)]
#[repr(align(32))]
pub(crate) struct Way {
    /// Where it leads to.
    pub(crate) to: PortRef,
    /// Whether the link is up.
    pub(crate) up: bool,
    /// When the last thing that is under way arrives.
    pub(crate) last_arrival: Time,
    /// Packets under way, in the order of arrival.
    pub(crate) flying: Flock,
    /// Of the next arrivals in the queue, those of things that a link has taken with it.
    pub(crate) stale: u32,
}

const _: () = assert!(size_of::<Way>() == 32);

impl Way {
    pub(super) fn new(to: PortRef) -> Self {
        let flying = Flock { first: NOWHERE, last: NOWHERE };
        Self { to, up: false, last_arrival: Time::ZERO, flying, stale: 0 }
    }
}

/// What a port that has just been switched on says in its hello.
pub(crate) fn initial_parameters(fabric: &Fabric, end: PortRef) -> LinkParameters {
    fabric.port(end).map(|port| port.enabled).unwrap_or_default().into()
}
