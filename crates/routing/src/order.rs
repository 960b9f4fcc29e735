//! An order of links with which dependencies go, kept up as they are added.

/// A topological order that grows (D. J. Pearce and P. H. J. Kelly, "A dynamic topological sort algorithm for directed
/// acyclic graphs", 2006): a dependency that goes against it moves only links between its two ends. Who has the
/// dependencies says, for a link, which come after and before it.
#[derive(Clone, Debug)]
pub(crate) struct DynamicOrder {
    /// By link, its place.
    rank: Vec<u32>,
    seen: Vec<bool>,
    /// What was found after the later end and before the earlier end of a new dependency.
    forward: Vec<u32>,
    backward: Vec<u32>,
    stack: Vec<u32>,
    places: Vec<u32>,
    steps: u64,
}

impl DynamicOrder {
    /// Each link has its place in `rank`, all different.
    pub(crate) fn new(rank: Vec<u32>) -> Self {
        let (seen, none) = (vec![false; rank.len()], Vec::new());
        let (backward, stack, places) = (none.clone(), none.clone(), none.clone());
        Self { rank, seen, forward: none, backward, stack, places, steps: 0 }
    }

    /// By link, its place.
    pub(crate) fn into_ranks(self) -> Vec<u32> {
        self.rank
    }

    /// How many links have been searched so far.
    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    /// Whether a dependency goes with the order as it is.
    pub(crate) fn goes_with(&self, earlier: u32, later: u32) -> bool {
        self.rank[earlier as usize] < self.rank[later as usize]
    }

    /// Moves links so that `later` comes after `earlier`; false where it leads there, so that nothing can be moved.
    /// `after` gives the links after a link. `before` gives candidates for those before it, and `is_before` says of
    /// one, and of the link, whether it is.
    pub(crate) fn admit<A: Iterator<Item = u32>, B: Iterator<Item = u32>>(
        &mut self,
        earlier: u32,
        later: u32,
        after: impl Fn(u32) -> A,
        before: impl Fn(u32) -> B,
        is_before: impl Fn(u32, u32) -> bool,
    ) -> bool {
        if self.goes_with(earlier, later) {
            return true;
        }
        let (low, high) = (self.rank[later as usize], self.rank[earlier as usize]);
        let fits = self.search_forward(earlier, later, high, after);
        if fits {
            self.search_backward(earlier, low, before, is_before);
            self.merge();
        }
        self.steps += (self.forward.len() + self.backward.len()) as u64;
        for link in self.forward.drain(..).chain(self.backward.drain(..)) {
            self.seen[link as usize] = false;
        }
        fits
    }

    /// Everything after `from` up to a rank; false where that is `cycle`.
    fn search_forward<A: Iterator<Item = u32>>(
        &mut self,
        cycle: u32,
        from: u32,
        high: u32,
        after: impl Fn(u32) -> A,
    ) -> bool {
        self.stack.clear();
        self.stack.push(from);
        self.seen[from as usize] = true;
        while let Some(at) = self.stack.pop() {
            self.forward.push(at);
            for next in after(at) {
                if next == cycle {
                    self.forward.append(&mut self.stack);
                    return false;
                }
                if self.rank[next as usize] < high && !self.seen[next as usize] {
                    self.seen[next as usize] = true;
                    self.stack.push(next);
                }
            }
        }
        true
    }

    /// Everything before `from` down to a rank.
    fn search_backward<B: Iterator<Item = u32>>(
        &mut self,
        from: u32,
        low: u32,
        before: impl Fn(u32) -> B,
        is_before: impl Fn(u32, u32) -> bool,
    ) {
        self.stack.push(from);
        self.seen[from as usize] = true;
        while let Some(at) = self.stack.pop() {
            self.backward.push(at);
            for next in before(at) {
                if self.rank[next as usize] > low && !self.seen[next as usize] && is_before(next, at) {
                    self.seen[next as usize] = true;
                    self.stack.push(next);
                }
            }
        }
    }

    /// Gives the places of all links found to those before, then to those after.
    fn merge(&mut self) {
        let rank = &mut self.rank;
        self.forward.sort_unstable_by_key(|link| rank[*link as usize]);
        self.backward.sort_unstable_by_key(|link| rank[*link as usize]);
        let all = || self.backward.iter().chain(&self.forward);
        self.places.clear();
        self.places.extend(all().map(|link| rank[*link as usize]));
        self.places.sort_unstable();
        for (link, place) in all().zip(&self.places) {
            rank[*link as usize] = *place;
        }
    }
}
