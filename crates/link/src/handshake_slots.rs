//! Slots for handshakes that peers have begun. Every neighbour has its own, so that strangers who knock without end
//! keep no cable from coming up. Half of all slots are kept for peers that have proved their address (QUIC's Retry):
//! a stranger that sends packets in a neighbour's name cannot take them.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::net::SocketAddr;

use crate::cable::Cable;

/// A cable may be dialled twice at once: its dialler may have died and begun again.
const PER_CABLE: usize = 2;

/// What strangers get beyond that: neighbours may be seen under other addresses than the cabling has.
const STRANGERS: usize = 16;

/// A number of places.
#[derive(Debug, Default)]
struct Room {
    taken: Cell<usize>,
    max: usize,
}

/// The places of one agent.
#[derive(Debug)]
pub(crate) struct HandshakeSlots {
    neighbours: BTreeMap<SocketAddr, Room>,
    shared: Room,
}

/// A place that is taken, to be given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandshakeSlot {
    Neighbour(SocketAddr),
    Shared,
}

impl Room {
    fn take(&self, validated: bool) -> bool {
        let max = if validated { self.max } else { self.max / 2 };
        let free = self.taken.get() < max;
        self.taken.set(self.taken.get() + usize::from(free));
        free
    }
}

impl HandshakeSlots {
    pub(crate) fn new(cables: &[Cable]) -> Self {
        let mut neighbours: BTreeMap<SocketAddr, Room> = BTreeMap::new();
        // A neighbour known by name may come from any address, and takes one of the shared places.
        let dialling_us = cables.iter().filter(|cable| !cable.dials());
        for address in dialling_us.filter_map(|cable| cable.remote_addr.literal()) {
            neighbours.entry(canonical(address)).or_default().max += PER_CABLE;
        }
        let shared = Room { max: PER_CABLE * cables.len() + STRANGERS, ..Room::default() };
        Self { neighbours, shared }
    }

    /// A place for a peer at this address, which it may have proved: its own, or else one of those for everybody.
    pub(crate) fn take(&self, address: SocketAddr, validated: bool) -> Option<HandshakeSlot> {
        let address = canonical(address);
        if self.neighbours.get(&address).is_some_and(|room| room.take(validated)) {
            return Some(HandshakeSlot::Neighbour(address));
        }
        self.shared.take(validated).then_some(HandshakeSlot::Shared)
    }

    pub(crate) fn give_back(&self, place: HandshakeSlot) {
        let room = match place {
            HandshakeSlot::Neighbour(address) => self.neighbours.get(&address),
            HandshakeSlot::Shared => Some(&self.shared),
        };
        if let Some(room) = room {
            room.taken.set(room.taken.get().saturating_sub(1));
        }
    }
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
    }
}
