//! The port that the manager is behind: who it is, whether it has a link, and which LID it has.

use weft_machine::Time;
use weft_wire::{Guid, Lid, PortNum};

use super::SubnetManager;
use super::task::Task;
use crate::election::State;
use crate::{Event, Reason};

/// Where a manager is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attachment {
    pub(super) guid: Guid,
    pub(super) port: PortNum,
}

/// The own port, as far as it is known.
#[derive(Debug, Default)]
pub(super) struct OwnPort {
    pub(super) at: Option<Attachment>,
    /// It had no link when it was looked at last, which has been said.
    pub(super) down: bool,
    /// It did not answer the last sweep, which has been said.
    silent: bool,
    /// As it was read last.
    pub(super) lid: Lid,
    /// The manager's LID as it is written to devices.
    pub(super) sm_lid: Lid,
}

impl OwnPort {
    /// LIDs are kept: they are likely to be the same again.
    pub(super) fn detach(&mut self) {
        *self = Self { lid: self.lid, sm_lid: self.sm_lid, ..Self::default() };
    }

    /// Its GUID; 0 where there is no port.
    pub(super) fn guid(&self) -> Guid {
        self.at.map_or(Guid(0), |at| at.guid)
    }

    /// It is given this LID.
    pub(super) fn give_lid(&mut self, lid: Lid) {
        (self.lid, self.sm_lid) = (lid, lid);
    }

    /// It has a link; says what is new.
    pub(super) fn found_up(&mut self) -> Option<Event> {
        self.silent = false;
        std::mem::take(&mut self.down).then_some(Event::OwnPortUp)
    }

    /// It has no link; says what is new.
    pub(super) fn found_down(&mut self) -> Option<Event> {
        self.silent = false;
        (!std::mem::replace(&mut self.down, true)).then_some(Event::OwnPortDown)
    }

    /// It did not answer; says what is new.
    pub(super) fn found_silent(&mut self) -> Option<Event> {
        (!std::mem::replace(&mut self.silent, true)).then_some(Event::OwnPortSilent)
    }
}

impl SubnetManager {
    /// The own port's link came up or went down.
    pub(super) fn port_changed(&mut self, now: Time, up: bool) {
        // One that polls finds out by itself.
        if self.task.is_detached() || matches!(self.election.state, State::Standby | State::NotActive) {
            return;
        }
        if !up {
            // Whatever is under way leads nowhere any more.
            self.give_up(now);
            self.agenda.clear();
        }
        // A sweep that has yet to look at the own port will see it.
        if !matches!(&self.task, Task::Discover(discover) if discover.own_port_info().is_none()) {
            self.agenda.heavy(now, Reason::OwnPort);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_is_said_once() {
        let mut port = OwnPort::default();
        assert_eq!(port.found_up(), None);
        assert_eq!(port.found_silent(), Some(Event::OwnPortSilent));
        assert_eq!(port.found_silent(), None);
        assert_eq!((port.found_down(), port.down), (Some(Event::OwnPortDown), true));
        assert_eq!(port.found_down(), None);
        assert_eq!(port.found_silent(), Some(Event::OwnPortSilent), "it had answered meanwhile");
        assert_eq!((port.found_up(), port.down), (Some(Event::OwnPortUp), false));
    }

    #[test]
    fn a_detached_port_keeps_only_its_lid() {
        let mut port = OwnPort::default();
        let at = Attachment { guid: Guid(7), port: PortNum(1) };
        port.at = Some(at);
        port.give_lid(Lid(4));
        port.lid = Lid(5);
        assert_eq!((port.at, port.guid(), port.lid, port.sm_lid), (Some(at), Guid(7), Lid(5), Lid(4)));
        port.found_down();
        port.detach();
        assert_eq!((port.at, port.guid(), port.down), (None, Guid(0), false));
        assert_eq!((port.lid, port.sm_lid), (Lid(5), Lid(4)));
    }
}
