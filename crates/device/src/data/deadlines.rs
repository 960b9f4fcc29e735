//! When each port next wants attention: a tournament tree, whose root is the earliest time.

use weft_machine::Time;

use super::NEVER;

/// One moment for each of a fixed number of places.
#[derive(Debug)]
pub(crate) struct Deadlines {
    /// The root is at 1, the children of `n` are at `2n` and `2n + 1`, and the leaves are the second half. Each has the
    /// earliest moment below it, and whose it is.
    nodes: Vec<(Time, u16)>,
}

impl Deadlines {
    pub(crate) fn new(places: usize) -> Self {
        let leaves = places.next_power_of_two().max(1);
        let mut nodes = vec![(NEVER, 0); 2 * leaves];
        nodes[leaves..].iter_mut().zip(0..).for_each(|(leaf, place)| leaf.1 = place);
        Self { nodes }
    }

    /// The earliest moment of all.
    #[inline]
    pub(crate) fn earliest(&self) -> Time {
        self.nodes[1].0
    }

    /// The place whose moment has come by `now`, and that moment; of several the earliest, of equal ones the first.
    #[inline]
    pub(crate) fn due(&self, now: Time) -> Option<(usize, Time)> {
        let (earliest, place) = self.nodes[1];
        (earliest <= now && earliest != NEVER).then_some((usize::from(place), earliest))
    }

    #[inline]
    pub(crate) fn set(&mut self, place: usize, time: Time) {
        let mut at = self.nodes.len() / 2 + place;
        self.nodes[at].0 = time;
        while at > 1 {
            let (left, right) = (self.nodes[at & !1], self.nodes[at | 1]);
            at /= 2;
            self.nodes[at] = if right.0 < left.0 { right } else { left };
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
