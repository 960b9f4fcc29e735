//! The places of a server's connections: those of clients without proof never take a place of one that has proved itself.

use std::collections::BTreeMap;

/// Connections that have not shown a request that the guard lets in. The oldest makes room for the next one.
pub const UNPROVED_MAX: usize = 128;
/// Connections with such a request whose answer has an end. The oldest makes room for the next one.
pub const PROVED_MAX: usize = 64;
/// Connections with an answer without an end. Further ones are refused, as a stream that breaks off is worse than one that does not begin.
pub const STREAMS_MAX: usize = 32;

/// The connections by class, each with a handle to end it. Numbers rise, so the first of a class is its oldest.
#[derive(Debug)]
pub(crate) struct Places<H> {
    next: u64,
    unproved: BTreeMap<u64, H>,
    proved: BTreeMap<u64, H>,
    streams: BTreeMap<u64, H>,
}

impl<H> Places<H> {
    pub(crate) fn new() -> Self {
        Self { next: 0, unproved: BTreeMap::new(), proved: BTreeMap::new(), streams: BTreeMap::new() }
    }

    /// A connection comes in. Returns the one that makes room for it, to be ended.
    pub(crate) fn enter(&mut self, connection: impl FnOnce(u64) -> H) -> Option<H> {
        let dropped = if self.unproved.len() >= UNPROVED_MAX { self.drop_oldest() } else { None };
        self.unproved.insert(self.next, connection(self.next));
        self.next += 1;
        dropped
    }

    /// Gives up the oldest connection without proof.
    pub(crate) fn drop_oldest(&mut self) -> Option<H> {
        self.unproved.pop_first().map(|(_, connection)| connection)
    }

    /// A connection has proved itself. Returns the one that makes room for it, to be ended.
    pub(crate) fn prove(&mut self, number: u64) -> Option<H> {
        let connection = self.unproved.remove(&number)?;
        let dropped = if self.proved.len() >= PROVED_MAX { self.proved.pop_first() } else { None };
        self.proved.insert(number, connection);
        dropped.map(|(_, connection)| connection)
    }

    /// The answer to a proved connection has no end. Returns whether there is a place for it.
    pub(crate) fn stream(&mut self, number: u64) -> bool {
        if self.streams.len() >= STREAMS_MAX {
            return false;
        }
        self.proved.remove(&number).map(|connection| self.streams.insert(number, connection)).is_some()
    }

    /// A connection has ended.
    pub(crate) fn leave(&mut self, number: u64) {
        for class in [&mut self.unproved, &mut self.proved, &mut self.streams] {
            class.remove(&number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets connections in; their handles are their numbers.
    fn enter(places: &mut Places<u64>, count: usize) -> Vec<u64> {
        (0..count).filter_map(|_| places.enter(|number| number)).collect()
    }

    #[test]
    fn the_oldest_without_proof_makes_room() {
        let mut places = Places::new();
        assert_eq!(enter(&mut places, UNPROVED_MAX), []);
        assert_eq!(places.prove(0), None, "it has a place of its own from here on");
        assert_eq!(enter(&mut places, 3), [1, 2]);
        places.leave(3);
        assert_eq!(enter(&mut places, 2), [4]);
        assert_eq!(places.prove(1), None, "one that was dropped proves nothing");
        assert_eq!((places.proved.len(), places.unproved.len()), (1, UNPROVED_MAX));
    }

    #[test]
    fn short_answers_make_room_and_streams_do_not() {
        let mut places = Places::new();
        for number in 0..STREAMS_MAX as u64 {
            enter(&mut places, 1);
            places.prove(number);
            assert!(places.stream(number));
        }
        enter(&mut places, 1);
        let next = STREAMS_MAX as u64;
        places.prove(next);
        assert!(!places.stream(next), "the bound of streams");
        places.leave(0);
        assert!(places.stream(next) && !places.stream(next), "a place once");
        let first = next + 1;
        for number in first..=first + PROVED_MAX as u64 {
            enter(&mut places, 1);
            let dropped = (number == first + PROVED_MAX as u64).then_some(first);
            assert_eq!(places.prove(number), dropped);
        }
        assert_eq!((places.streams.len(), places.proved.len()), (STREAMS_MAX, PROVED_MAX));
    }
}
