//! From a schedule that finds a bug to a small one that finds it too: delta debugging (Zeller and Hildebrandt, 2002) over faults,
//! then shorter times.

use weft_machine::Time;

use crate::Planned;

/// A fault that lasts less than this is short enough.
const SHORT: Time = Time::from_millis(2);

/// Shrinks a schedule that fails. `fails` is asked at most `tries` times whether a smaller one fails as well. Also says how often it
/// was asked.
pub fn shrink<Node: Clone, Port: Clone>(
    schedule: Vec<Planned<Node, Port>>,
    tries: u32,
    fails: impl FnMut(&[Planned<Node, Port>]) -> bool,
) -> (Vec<Planned<Node, Port>>, u32) {
    let mut search = Search { fails, left: tries };
    let schedule = search.fewer(schedule);
    let schedule = search.shorter(schedule);
    (schedule, tries - search.left)
}

struct Search<F> {
    fails: F,
    left: u32,
}

impl<F> Search<F> {
    fn try_it<Node, Port>(&mut self, schedule: &[Planned<Node, Port>]) -> bool
    where
        F: FnMut(&[Planned<Node, Port>]) -> bool,
    {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        (self.fails)(schedule)
    }

    /// Leaves faults out, in larger parts first, until none can be spared.
    fn fewer<Node: Clone, Port: Clone>(
        &mut self,
        mut schedule: Vec<Planned<Node, Port>>,
    ) -> Vec<Planned<Node, Port>>
    where
        F: FnMut(&[Planned<Node, Port>]) -> bool,
    {
        let mut parts = 2;
        while schedule.len() > 1 && self.left > 0 {
            let part = schedule.len().div_ceil(parts);
            let without = |start: usize| -> Vec<_> {
                let rest = (0..).zip(&schedule).filter(|(place, _)| !(start..start + part).contains(place));
                rest.map(|(_, planned)| planned.clone()).collect()
            };
            let smaller: Vec<_> = (0..schedule.len()).step_by(part).map(without).collect();
            match smaller.into_iter().find(|smaller| self.try_it(smaller)) {
                Some(smaller) => (schedule, parts) = (smaller, parts.saturating_sub(1).max(2)),
                None if part == 1 => break,
                None => parts = (2 * parts).min(schedule.len()),
            }
        }
        schedule
    }

    /// Halves the times of faults as long as that still fails.
    fn shorter<Node: Clone, Port: Clone>(
        &mut self,
        mut schedule: Vec<Planned<Node, Port>>,
    ) -> Vec<Planned<Node, Port>>
    where
        F: FnMut(&[Planned<Node, Port>]) -> bool,
    {
        for place in 0..schedule.len() {
            while let Some(lasts) = schedule[place].lasts.filter(|lasts| *lasts > SHORT) {
                let mut shorter = schedule.clone();
                // In whole milliseconds, as files have it.
                shorter[place].lasts = Some(Time::from_millis((lasts.as_nanos() / 2_000_000).max(1)));
                if !self.try_it(&shorter) {
                    break;
                }
                schedule = shorter;
            }
        }
        schedule
    }
}
