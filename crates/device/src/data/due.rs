//! Moments of the data lanes, by port and purpose.

use std::fmt;

use weft_machine::Time;
use weft_wire::PortNum;

use super::DataPath;
use super::bus::Direction;
use crate::Device;
use crate::moment::NEVER;

/// What happens at a moment that the data lanes wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// A port's packet has left, or the port may send again.
    Output(PortNum),
    /// A packet reaches the host behind a port.
    ToHost(PortNum),
    /// An input of a crossbar may send again.
    Input(PortNum),
    /// A packet that cuts through joins its queue, or is in.
    Coming(PortNum),
    /// A packet has crossed the bus of a vSwitch's host.
    Bus(Direction),
    /// The head of a queue may have waited for too long.
    Lifetime,
}

impl fmt::Display for Deadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Output(port) => write!(f, "packet end on port {port}"),
            Self::ToHost(port) => write!(f, "packet to the host of port {port}"),
            Self::Input(port) => write!(f, "crossbar input {port} free"),
            Self::Coming(port) => write!(f, "packet through port {port}"),
            Self::Bus(Direction::ToAdapter) => f.write_str("packet over the host's bus to the adapter"),
            Self::Bus(Direction::ToHost) => f.write_str("packet over the host's bus to a function"),
            Self::Lifetime => f.write_str("packet lifetime"),
        }
    }
}

impl DataPath {
    /// When something next happens by itself; at the end of time when nothing does.
    #[inline]
    pub(crate) fn due(&self) -> Time {
        self.deadlines.earliest().min(self.expiry)
    }

    /// What happens first of what is due by `at`.
    #[inline]
    pub(crate) fn deadline(&self, at: Time) -> Option<Deadline> {
        let Some((place, _)) = self.deadlines.due(at) else {
            return (self.expiry <= at && self.expiry != NEVER).then_some(Deadline::Lifetime);
        };
        let ports = self.outs.len();
        Some(if let Some(direction) = self.bus_at(place) {
            Deadline::Bus(direction)
        } else if let Some(port) = self.coming_at(place) {
            Deadline::Coming(port)
        } else if let Some(place) = place.checked_sub(ports) {
            let port = PortNum(place as u8);
            if self.host { Deadline::ToHost(port) } else { Deadline::Input(port) }
        } else {
            Deadline::Output(PortNum(place as u8))
        })
    }
}

impl Device {
    /// Does what the data lanes waited for until `at`.
    #[inline]
    pub(crate) fn lanes_due(&mut self, at: Time, deadline: Deadline) {
        match deadline {
            Deadline::Output(port) => self.output_due(at, port),
            Deadline::ToHost(port) => self.drained(at, port),
            Deadline::Input(port) => self.data.input_due(port),
            Deadline::Coming(port) => self.has_come(at, port),
            Deadline::Bus(direction) => self.bus_crossed(at, direction),
            Deadline::Lifetime => self.expire(at),
        }
    }
}
