//! Packets and credits under way on data lanes. All of them lie in one list whose places are used again at once, so that it stays in
//! the processor's cache: what is under way is little compared with what waits in devices.

use weft_node::Frame;

/// Nothing is there.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// The first and the last of what is under way in one direction, by their places in [`Flights`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flock {
    pub(crate) first: u32,
    pub(crate) last: u32,
}

/// All that is under way.
#[derive(Debug)]
pub(crate) struct Flights {
    places: Vec<Flight>,
    free: u32,
}

#[derive(Debug)]
struct Flight {
    what: Option<Frame>,
    next: u32,
}

impl Flights {
    pub(crate) fn new() -> Self {
        Self { places: Vec::new(), free: NOWHERE }
    }

    /// Puts something behind what is under way already.
    #[inline]
    pub(crate) fn put_last(&mut self, flock: &mut Flock, what: Frame) {
        let flight = Flight { what: Some(what), next: NOWHERE };
        let at = self.free;
        let at = if let Some(place) = self.places.get_mut(at as usize) {
            self.free = place.next;
            *place = flight;
            at
        } else {
            self.places.push(flight);
            (self.places.len() - 1) as u32
        };
        match self.places.get_mut(flock.last as usize) {
            Some(last) => last.next = at,
            None => flock.first = at,
        }
        flock.last = at;
    }

    /// Takes what arrives next.
    #[inline]
    pub(crate) fn take_first(&mut self, flock: &mut Flock) -> Option<Frame> {
        let at = flock.first;
        let place = self.places.get_mut(at as usize)?;
        let what = place.what.take();
        flock.first = std::mem::replace(&mut place.next, self.free);
        if flock.first == NOWHERE {
            flock.last = NOWHERE;
        }
        self.free = at;
        what
    }

    /// Packets under way there, in the order of arrival.
    pub(crate) fn iter(&self, flock: Flock) -> impl Iterator<Item = &Frame> {
        let mut at = flock.first;
        std::iter::from_fn(move || {
            let place = self.places.get(at as usize)?;
            at = place.next;
            place.what.as_ref()
        })
    }
}

#[cfg(test)]
mod tests {
    use weft_wire::FlowControl;

    use super::*;

    fn credit(fccl: u16) -> Frame {
        Frame::Credit(FlowControl { fccl, ..FlowControl::default() })
    }

    fn number(flying: &Frame) -> u16 {
        match flying {
            Frame::Credit(flow_control) => flow_control.fccl,
            _ => u16::MAX,
        }
    }

    /// Two ways in one list: each keeps its order, and places are used again.
    #[test]
    fn each_way_keeps_its_order() {
        let mut flights = Flights::new();
        let empty = Flock { first: NOWHERE, last: NOWHERE };
        let mut ways = [empty; 2];
        for round in 0..5 {
            for what in 0..4 {
                flights.put_last(&mut ways[usize::from(what % 2)], credit(10 * round + what));
            }
            let found: Vec<u16> = flights.iter(ways[1]).map(number).collect();
            assert_eq!(found, [10 * round + 1, 10 * round + 3]);
            for way in 0..2u16 {
                let flock = &mut ways[usize::from(way)];
                let taken: Vec<u16> =
                    std::iter::from_fn(|| flights.take_first(flock)).map(|flying| number(&flying)).collect();
                assert_eq!(taken, [10 * round + way, 10 * round + way + 2]);
            }
        }
        assert_eq!(flights.places.len(), 4);
    }
}
