//! Deadlines of ports: a tournament tree, whose root is the earliest time.

use weft_machine::Time;

use crate::moment::NEVER;

/// Moments side by side, in one line of the cache.
const WIDTH: usize = 8;

/// One moment for each of a fixed number of places.
///
/// A tree of lines: the children of line `n` are `8n + 1` to `8n + 8`, and the last level has the places' own moments. Each
/// moment above it is the earliest of a line; whose it is can be found by going down.
#[derive(Debug)]
pub(crate) struct Deadlines {
    lines: Box<[Line]>,
    earliest: Time,
    /// Where the last level begins.
    last_level: u32,
}

#[derive(Clone, Debug)]
#[repr(align(64))]
struct Line([Time; WIDTH]);

impl Line {
    #[inline]
    fn earliest(&self) -> Time {
        self.0.iter().fold(NEVER, |earliest, time| earliest.min(*time))
    }
}

impl Deadlines {
    pub(crate) fn new(places: usize) -> Self {
        let (mut above, mut level) = (0, 1);
        while level * WIDTH < places {
            above += level;
            level *= WIDTH;
        }
        // Of the last level only as much as there are places.
        let lines = vec![Line([NEVER; WIDTH]); above + places.div_ceil(WIDTH).max(1)].into();
        Self { lines, earliest: NEVER, last_level: above as u32 }
    }

    /// The earliest moment of all.
    #[inline]
    pub(crate) fn earliest(&self) -> Time {
        self.earliest
    }

    /// A place's moment.
    pub(crate) fn of(&self, place: usize) -> Time {
        self.lines[self.last_level as usize + place / WIDTH].0[place % WIDTH]
    }

    /// The place whose moment has come by `now`, and that moment; of several the earliest, of equal ones the first.
    #[inline]
    pub(crate) fn due(&self, now: Time) -> Option<(usize, Time)> {
        let (earliest, last_level) = (self.earliest, self.last_level as usize);
        if earliest > now || earliest == NEVER {
            return None;
        }
        let mut line = 0;
        loop {
            let at = self.lines.get(line)?.0.iter().position(|time| *time == earliest)?;
            if line >= last_level {
                return Some(((line - last_level) * WIDTH + at, earliest));
            }
            line = WIDTH * line + at + 1;
        }
    }

    #[inline]
    pub(crate) fn set(&mut self, place: usize, time: Time) {
        let (mut line, mut at, mut time) = (self.last_level as usize + place / WIDTH, place % WIDTH, time);
        loop {
            let times = &mut self.lines[line];
            let before = std::mem::replace(&mut times.0[at], time);
            if before == time {
                // Nothing changes further up either.
                return;
            }
            let above = line.checked_sub(1).map(|line| (line / WIDTH, line % WIDTH));
            let earliest = above.map_or(self.earliest, |(line, at)| self.lines[line].0[at]);
            if time > earliest {
                if before > earliest {
                    return;
                }
                time = self.lines[line].earliest();
            }
            let Some(above) = above else {
                self.earliest = time;
                return;
            };
            (line, at) = above;
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

    /// One, two and three levels, beside a plain list.
    #[test]
    fn as_a_list_would_have_it() {
        let mut random = weft_machine::Random::new(3);
        for places in [1, 8, 9, 64, 65, 72, 512] {
            let (mut deadlines, mut list) = (Deadlines::new(places), vec![NEVER; places]);
            for _ in 0..2000 {
                let place = random.below(places as u32) as usize;
                let time =
                    if random.below(3) == 0 { NEVER } else { Time::from_nanos(random.below(50).into()) };
                deadlines.set(place, time);
                list[place] = time;
                let earliest = *list.iter().min().expect("there are places");
                let first = list.iter().position(|time| *time == earliest && earliest != NEVER);
                assert_eq!(deadlines.earliest(), earliest, "{places} places");
                assert_eq!(deadlines.due(NEVER), first.map(|place| (place, earliest)), "{places} places");
            }
        }
    }
}
