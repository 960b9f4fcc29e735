//! When each port next wants attention: a tournament tree, whose root is the earliest time.

use weft_machine::Time;

use super::NEVER;

/// One moment for each of a fixed number of places.
#[derive(Debug)]
pub(crate) struct Deadlines {
    /// Node 1 is the root, the children of node `n` are `2n` and `2n + 1`, which lie side by side at `n`, and the last
    /// ones are the places. Each has the earliest moment below it; whose it is can be found by going down.
    pairs: Box<[[Time; 2]]>,
}

impl Deadlines {
    pub(crate) fn new(places: usize) -> Self {
        Self { pairs: vec![[NEVER; 2]; places.next_power_of_two().max(1)].into() }
    }

    /// The earliest moment of all.
    #[inline]
    pub(crate) fn earliest(&self) -> Time {
        self.pairs[0][1]
    }

    /// The place whose moment has come by `now`, and that moment; of several the earliest, of equal ones the first.
    #[inline]
    pub(crate) fn due(&self, now: Time) -> Option<(usize, Time)> {
        let earliest = self.earliest();
        if earliest > now || earliest == NEVER {
            return None;
        }
        let mut node = 1;
        while let Some(pair) = self.pairs.get(node) {
            node = 2 * node + usize::from(pair[0] != earliest);
        }
        Some((node - self.pairs.len(), earliest))
    }

    #[inline]
    pub(crate) fn set(&mut self, place: usize, time: Time) {
        let (mut node, mut earliest) = (self.pairs.len() + place, time);
        while node > 0 {
            let pair = &mut self.pairs[node / 2];
            if std::mem::replace(&mut pair[node % 2], earliest) == earliest {
                // Nothing changes further up either.
                return;
            }
            earliest = pair[0].min(pair[1]);
            node /= 2;
        }
    }

    #[inline]
    pub(crate) fn clear(&mut self, place: usize) {
        self.set(place, NEVER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_comes_first_and_the_lower_place_among_equals() {
        let mut deadlines = Deadlines::new(5);
        assert_eq!((deadlines.earliest(), deadlines.due(NEVER)), (NEVER, None));
        for (place, nanos) in [(3, 7), (4, 5), (1, 7), (0, 9)] {
            deadlines.set(place, Time::from_nanos(nanos));
        }
        assert_eq!(deadlines.due(Time::from_nanos(4)), None);
        let mut order = Vec::new();
        while let Some((place, time)) = deadlines.due(Time::from_nanos(8)) {
            order.push((place, time.as_nanos()));
            deadlines.clear(place);
        }
        assert_eq!(order, [(4, 5), (1, 7), (3, 7)]);
        assert_eq!(deadlines.earliest(), Time::from_nanos(9));
        deadlines.set(0, Time::from_nanos(3));
        assert_eq!(deadlines.earliest(), Time::from_nanos(3));
    }
}
