//! Slots for handshakes that peers have begun. Every neighbour has its own, so that strangers who knock without end
//! keep no cable from coming up. Half of all slots are kept for peers that have proved their address (QUIC's Retry):
//! a stranger that sends packets in a neighbour's name cannot take them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;

use quinn::{Incoming, RetryError};

use crate::cable::Cable;

/// A cable may be dialled twice at once: its dialler may have died and begun again.
const PER_CABLE: usize = 2;

/// What strangers get beyond that: neighbours may be seen under other addresses than the cabling has.
const STRANGERS: usize = 16;

/// What becomes of a peer for whose handshake there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnedAway {
    /// It is asked to prove its address first.
    Retried,
    /// It is not answered, and QUIC dials again.
    Ignored,
}

/// Has a peer prove that it is where it says (RFC 9000, 8.1.2), which takes no place here; one that has is ignored.
pub(crate) fn turn_away(incoming: Incoming) -> TurnedAway {
    let incoming = match incoming.may_retry() && !incoming.remote_address_validated() {
        true => incoming.retry().map_err(RetryError::into_incoming),
        false => Err(incoming),
    };
    match incoming {
        Ok(()) => TurnedAway::Retried,
        Err(incoming) => {
            incoming.ignore();
            TurnedAway::Ignored
        }
    }
}

/// A number of places, of which half are for peers that have proved their address.
#[derive(Debug, Default)]
pub(crate) struct Room {
    taken: Cell<usize>,
    max: Cell<usize>,
}

/// The places of one agent.
#[derive(Debug)]
pub(crate) struct HandshakeSlots {
    neighbours: RefCell<BTreeMap<SocketAddr, Room>>,
    shared: Room,
}

/// A place that is taken, to be given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandshakeSlot {
    Neighbour(SocketAddr),
    Shared,
}

impl Room {
    pub(crate) fn of(max: usize) -> Self {
        Self { max: Cell::new(max), ..Self::default() }
    }

    pub(crate) fn take(&self, validated: bool) -> bool {
        let max = if validated { self.max.get() } else { self.max.get() / 2 };
        let free = self.taken.get() < max;
        self.taken.set(self.taken.get() + usize::from(free));
        free
    }

    pub(crate) fn give_back(&self) {
        self.taken.set(self.taken.get().saturating_sub(1));
    }
}

impl HandshakeSlots {
    pub(crate) fn new(cables: &[Cable]) -> Self {
        let slots = Self { neighbours: RefCell::default(), shared: Room::of(STRANGERS) };
        cables.iter().for_each(|cable| slots.add(cable));
        slots
    }

    /// Makes room for another cable.
    pub(crate) fn add(&self, cable: &Cable) {
        self.shared.max.set(self.shared.max.get() + PER_CABLE);
        if let Some(address) = dials_us_from(cable) {
            let mut neighbours = self.neighbours.borrow_mut();
            let room = neighbours.entry(address).or_default();
            room.max.set(room.max.get() + PER_CABLE);
        }
    }

    /// Takes back the room of a cable. Handshakes that are under way keep their places.
    pub(crate) fn remove(&self, cable: &Cable) {
        let less = |room: &Room| room.max.set(room.max.get().saturating_sub(PER_CABLE));
        less(&self.shared);
        let address = dials_us_from(cable);
        let mut neighbours = self.neighbours.borrow_mut();
        if let Some((address, room)) = address.and_then(|address| Some((address, neighbours.get(&address)?)))
        {
            less(room);
            if room.max.get() == 0 && room.taken.get() == 0 {
                neighbours.remove(&address);
            }
        }
    }

    /// A place for a peer at this address, which it may have proved: its own, or else one of those for everybody.
    pub(crate) fn take(&self, address: SocketAddr, validated: bool) -> Option<HandshakeSlot> {
        let address = canonical(address);
        if self.neighbours.borrow().get(&address).is_some_and(|room| room.take(validated)) {
            return Some(HandshakeSlot::Neighbour(address));
        }
        self.shared.take(validated).then_some(HandshakeSlot::Shared)
    }

    pub(crate) fn give_back(&self, place: HandshakeSlot) {
        match place {
            HandshakeSlot::Neighbour(address) => {
                let mut neighbours = self.neighbours.borrow_mut();
                neighbours.get(&address).into_iter().for_each(Room::give_back);
                let is_over = |room: &Room| room.max.get() == 0 && room.taken.get() == 0;
                if neighbours.get(&address).is_some_and(is_over) {
                    neighbours.remove(&address);
                }
            }
            HandshakeSlot::Shared => self.shared.give_back(),
        }
    }
}

/// Where the peer of a cable dials from, if it dials. A neighbour known by name may come from any address, and takes one of
/// the shared places.
fn dials_us_from(cable: &Cable) -> Option<SocketAddr> {
    cable.remote_addr.literal().filter(|_| !cable.dials()).map(canonical)
}

/// One form of an address that a socket of either family may show.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CableEnd;
    use weft_wire::{Guid, LinkParameters, PortNum};

    fn cable(port: u8, remote: u64, at: &str) -> Cable {
        let end = |guid| CableEnd { guid: Guid(guid), port: PortNum(port) };
        let parameters = LinkParameters { width: 3, speed: 7, speed_ext: 0 };
        Cable { local: end(5), remote: end(remote), remote_addr: at.parse().unwrap(), parameters }
    }

    #[test]
    fn strangers_leave_neighbours_their_places() {
        let (near, dialled, stranger) = ("127.0.0.1:1000", "127.0.0.1:2000", "127.0.0.1:3000");
        let cables = [cable(1, 3, near), cable(2, 3, near), cable(3, 9, dialled)];
        let places = HandshakeSlots::new(&cables);
        let claims = |at: &str| places.take(at.parse().unwrap(), false);
        let take = |at: &str| places.take(at.parse().unwrap(), true);
        let shared = 2 * 3 + 16;
        assert!((0..shared / 2).all(|_| claims(stranger) == Some(HandshakeSlot::Shared)));
        assert_eq!(claims(stranger), None, "the other half is for those who prove their address");
        (0..shared / 2).for_each(|_| places.give_back(HandshakeSlot::Shared));
        assert!((0..shared).all(|_| take(stranger) == Some(HandshakeSlot::Shared)));
        assert_eq!((take(stranger), take(dialled)), (None, None), "whom we dial does not knock");
        let place = HandshakeSlot::Neighbour(near.parse().unwrap());
        let own = Some(place);
        assert!((0..2).all(|_| claims(near) == own) && claims(near).is_none());
        assert!((0..2).all(|_| take("[::ffff:127.0.0.1]:1000") == own));
        assert_eq!(take(near), None);
        places.give_back(HandshakeSlot::Shared);
        assert_eq!((take(near), take(near)), (Some(HandshakeSlot::Shared), None), "as everybody else");
        places.give_back(place);
        assert_eq!((take(stranger), take(near), take(near)), (None, own, None));
        // Another cable brings places of its own, and takes as many with it.
        places.add(&cable(4, 3, near));
        assert_eq!((take(near), take(near), take(near)), (own, own, Some(HandshakeSlot::Shared)));
        places.give_back(HandshakeSlot::Shared);
        places.remove(&cable(4, 3, near));
        places.give_back(place);
        assert_eq!(take(near), None, "five are taken of four");
        // Without a cable nothing is kept of a neighbour, once its last handshake is over.
        places.remove(&cable(1, 3, near));
        places.remove(&cable(2, 3, near));
        (0..5).for_each(|_| places.give_back(place));
        assert_eq!(places.neighbours.borrow().len(), 0);
    }
}
