//! Ways of all switches to a target, kept by its main path.

use std::collections::BTreeMap;

use crate::lids::Lids;
use crate::tree::reach::{Link, NO_LINK, Shape};

/// Ways that are kept for each LID at most.
const KEPT_PER_LID: usize = 2;

/// A switch that sends for itself alone: its link depends on the LID.
const TURNS: u16 = u16::MAX - 1;
/// No link.
const NONE: u16 = u16::MAX;

/// The ways of all switches to a target for one main path: by switch, its link.
#[derive(Debug)]
struct Ways(Box<[u16]>);

/// Ways by target and links of the main path.
#[derive(Debug, Default)]
pub(super) struct Kept {
    ways: BTreeMap<Vec<u32>, Ways>,
    /// By switch: whether switches are connected with it but do not reach it by going up and then down.
    pub(super) strays: BTreeMap<u32, bool>,
    most: usize,
}

impl Kept {
    pub(super) fn new(lids: &Lids, shape: &Shape) -> Self {
        let fits = 2 * shape.ends.len() < usize::from(TURNS);
        let most = if fits { KEPT_PER_LID * usize::from(lids.top().0) } else { 0 };
        Self { most, ..Self::default() }
    }

    /// How many ways are kept.
    pub(super) fn len(&self) -> usize {
        self.ways.len()
    }

    /// Writes the ways for a main path into `next`: those of switches that send for themselves by `turned`. Every link up that the
    /// destination loads goes to `add`. False where the ways are not kept.
    pub(super) fn restore(
        &self,
        main: &[u32],
        next: &mut [Link],
        turned: impl Fn(u32) -> Link,
        mut add: impl FnMut(Link),
    ) -> bool {
        let Some(Ways(ways)) = self.ways.get(main) else { return false };
        for ((at, next), way) in (0..).zip(next).zip(ways) {
            *next = match *way {
                NONE => NO_LINK,
                TURNS => turned(at),
                link => {
                    if !link.is_multiple_of(2) {
                        add(link.into());
                    }
                    link.into()
                }
            };
        }
        true
    }

    /// Keeps the ways for a main path, where there is room. `turned` are the switches that send for themselves, in any order.
    pub(super) fn keep(&mut self, main: &[u32], next: &[Link], turned: &[u32]) {
        if self.ways.len() >= self.most {
            return;
        }
        let mut ways: Box<[u16]> = next.iter().map(|link| u16::try_from(*link).unwrap_or(NONE)).collect();
        turned.iter().for_each(|at| ways[*at as usize] = TURNS);
        self.ways.insert(main.to_vec(), Ways(ways));
    }
}
