//! Directions of a switch's cables, found by squares of cables alone.

use std::collections::VecDeque;

use weft_wire::PortNum;

use crate::sorted;
use crate::switches::SwitchGraph;

/// A step by one place: along which dimension, and whether forwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) dimension: usize,
    pub(super) forward: bool,
}

impl Step {
    /// The step back.
    pub(super) fn back(self) -> Self {
        Self { forward: !self.forward, ..self }
    }
}

/// The neighbours of every switch.
#[derive(Debug)]
pub(super) struct Neighbours {
    /// Each neighbour once, ascending, with the lowest port that leads there.
    lists: Vec<Vec<(u32, PortNum)>>,
}

impl Neighbours {
    pub(super) fn new(graph: &SwitchGraph) -> Self {
        let list = |switch| {
            let mut list: Vec<_> = graph.ways(switch).iter().map(|way| (way.to, way.port)).collect();
            list.sort_unstable();
            list.dedup_by_key(|(to, _)| *to);
            list
        };
        Self { lists: graph.numbers().map(list).collect() }
    }

    pub(super) fn len(&self) -> u32 {
        self.lists.len() as u32
    }

    pub(super) fn of(&self, switch: u32) -> impl ExactSizeIterator<Item = u32> + Clone {
        self.lists[switch as usize].iter().map(|(to, _)| *to)
    }

    pub(super) fn are_joined(&self, a: u32, b: u32) -> bool {
        self.lists[a as usize].binary_search_by_key(&b, |(to, _)| *to).is_ok()
    }

    /// The fourth corner of the square that the cables from `corner` to `a` and to `b` span: none if they run along
    /// one dimension, which is when no other switch is next to both or they are next to each other.
    fn opposite(&self, corner: u32, a: u32, b: u32) -> Option<u32> {
        if self.are_joined(a, b) {
            return None;
        }
        let mut both = self.of(a).filter(|to| *to != corner && self.are_joined(*to, b));
        both.next().filter(|_| both.next().is_none())
    }
}

/// The steps that all cables are, as far as they follow from those at one switch.
#[derive(Debug)]
pub(super) struct Steps {
    pub(super) dimensions: usize,
    /// By switch, then by step: where it leads.
    targets: Vec<Vec<Option<u32>>>,
    /// Steps that became known, and whose squares are still to be looked at.
    news: VecDeque<(u32, Step)>,
    /// Switches that were stepped to along a line that may go on.
    line_ends: VecDeque<(u32, Step)>,
}

/// A switch whose cables do not agree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conflict(pub(super) u32);

impl Steps {
    /// Names the steps at `start`, and all others that follow: opposite sides of a square are the same step; and what
    /// is no side of a square with the cable that came before goes straight on.
    pub(super) fn from(neighbours: &Neighbours, start: u32) -> Result<Self, Conflict> {
        let lines = lines_at(neighbours, start)?;
        let targets = vec![vec![None; 2 * lines.len()]; neighbours.len() as usize];
        let (news, line_ends) = (VecDeque::new(), VecDeque::new());
        let mut steps = Self { dimensions: lines.len(), targets, news, line_ends };
        for (dimension, (forward, backward)) in lines.into_iter().enumerate() {
            steps.set(start, Step { dimension, forward: true }, forward)?;
            if let Some(backward) = backward {
                steps.set(start, Step { dimension, forward: false }, backward)?;
            }
        }
        loop {
            while let Some((switch, step)) = steps.news.pop_front() {
                steps.square(neighbours, switch, step)?;
            }
            // Only when squares tell no more: what else a switch has is a line that goes on.
            let Some((switch, step)) = steps.line_ends.pop_front() else { return Ok(steps) };
            steps.go_on(neighbours, switch, step)?;
        }
    }

    pub(super) fn target(&self, switch: u32, step: Step) -> Option<u32> {
        self.targets[switch as usize][2 * step.dimension + usize::from(step.forward)]
    }

    /// All steps that are known at a switch, with where they lead.
    pub(super) fn at(&self, switch: u32) -> impl Iterator<Item = (Step, u32)> {
        let step = |place| Step { dimension: place / 2, forward: place % 2 == 1 };
        let targets = self.targets[switch as usize].iter().enumerate();
        targets.filter_map(move |(place, target)| Some((step(place), (*target)?)))
    }

    /// Enters a step, and the step back at the other end.
    fn set(&mut self, switch: u32, step: Step, target: u32) -> Result<(), Conflict> {
        for (switch, step, target) in [(switch, step, target), (target, step.back(), switch)] {
            match self.target(switch, step) {
                Some(known) if known == target => continue,
                Some(_) => return Err(Conflict(switch)),
                None => {}
            }
            if self.at(switch).any(|(_, known)| known == target) {
                return Err(Conflict(switch));
            }
            self.targets[switch as usize][2 * step.dimension + usize::from(step.forward)] = Some(target);
            self.news.push_back((switch, step));
            self.line_ends.push_back((target, step));
        }
        Ok(())
    }

    /// What follows from the squares of a step with all others that are known there.
    fn square(&mut self, neighbours: &Neighbours, switch: u32, step: Step) -> Result<(), Conflict> {
        let Some(target) = self.target(switch, step) else { return Ok(()) };
        let others: Vec<(Step, u32)> =
            self.at(switch).filter(|(other, _)| other.dimension != step.dimension).collect();
        for (other, side) in others {
            if let Some(corner) = neighbours.opposite(switch, target, side) {
                self.set(target, other, corner)?;
                self.set(side, step, corner)?;
            }
        }
        Ok(())
    }

    /// What goes straight on at a switch that was stepped to.
    fn go_on(&mut self, neighbours: &Neighbours, switch: u32, step: Step) -> Result<(), Conflict> {
        let Some(before) = self.target(switch, step.back()) else { return Ok(()) };
        if self.target(switch, step).is_some() {
            return Ok(());
        }
        let is_known = |to: &u32| self.at(switch).any(|(_, known)| known == *to);
        let mut rest = (neighbours.of(switch))
            .filter(|to| !is_known(to) && neighbours.opposite(switch, before, *to).is_none());
        match (rest.next(), rest.next()) {
            (Some(only), None) => self.set(switch, step, only),
            _ => Ok(()),
        }
    }
}

/// The lines through a switch: a neighbour, and the one on the other side. Lines are in the order of their lowest
/// ports, and forwards is the way of the lower port.
fn lines_at(neighbours: &Neighbours, start: u32) -> Result<Vec<(u32, Option<u32>)>, Conflict> {
    let mut by_port = neighbours.lists[start as usize].clone();
    sorted::by_key(&mut by_port, |(_, port)| *port);
    let mut lines = Vec::new();
    let mut taken = Vec::new();
    for (forward, _) in &by_port {
        let mut straight = (by_port.iter().map(|(to, _)| *to))
            .filter(|to| to != forward && neighbours.opposite(start, *forward, *to).is_none());
        let backward = straight.next();
        if straight.next().is_some() {
            return Err(Conflict(start));
        }
        if !taken.contains(forward) {
            taken.extend(backward);
            lines.push((*forward, backward));
        }
    }
    Ok(lines)
}
