//! Loads of the ways of a switch.

use crate::bfs::BATCH;
use crate::bits::ones;
use crate::switches::{SwitchGraph, Way};

use super::candidates::{Candidates, LID, PAIR};
use super::destination::Destination;

/// Up to how many ways of a switch are looked at one by one.
const FEW: usize = 8;

/// Where the ways of a switch lead in a batch.
#[derive(Clone, Copy)]
pub(super) struct Leading<'a> {
    /// By way: to which destinations it leads.
    pub(super) row: &'a [u64],
    /// By 64 ways, then by destination: which of them lead there. Empty where they are few.
    pub(super) sets: &'a [[u64; BATCH]],
}

impl Leading<'_> {
    /// Whether a switch has so few ways that it needs no sets.
    pub(super) fn are_few(ways: &[Way]) -> bool {
        ways.len() <= FEW
    }

    /// Which of 64 ways lead to the destination at `place`.
    fn set(&self, chunk: usize, place: usize) -> u64 {
        match self.sets.get(chunk) {
            Some(sets) => sets[place],
            None => self.row.iter().rev().fold(0, |set, bits| set << 1 | (bits >> place & 1)),
        }
    }
}

/// What each way of a switch carries.
pub(super) struct Loads {
    /// In pairs and LIDs. Of those that [`Candidates`] hold, these have it.
    loads: Vec<u64>,
    /// For every way its place in the order: neighbours in turn, then the parallel cables of each. Empty where no
    /// cables are parallel, as ports are in that order then.
    places: Vec<u32>,
}

impl Loads {
    pub(super) fn new(graph: &SwitchGraph, switch: u32) -> Self {
        let ways = graph.ways(switch);
        let mut by_neighbour: Vec<(u32, u32)> = (0..).zip(ways).map(|(way, w)| (w.to, way)).collect();
        by_neighbour.sort_unstable();
        let mut first_way = vec![0; ways.len()];
        let mut turns = vec![0; ways.len()];
        for same in by_neighbour.chunk_by(|a, b| a.0 == b.0) {
            for (turn, (_, way)) in (0..).zip(same) {
                first_way[*way as usize] = same[0].1;
                turns[*way as usize] = turn;
            }
        }
        let mut places = Vec::new();
        if turns.iter().any(|turn| *turn > 0) {
            let mut order: Vec<usize> = (0..ways.len()).collect();
            order.sort_by_key(|way| (turns[*way], first_way[*way]));
            places = vec![0; ways.len()];
            for (place, way) in (0..).zip(order) {
                places[way] = place;
            }
        }
        Self { loads: vec![0; ways.len()], places }
    }

    /// Adds beforehand what has one way alone, out of the destinations that each way leads to. Such destinations are near
    /// and come late, and those with more ways can make up for them.
    pub(super) fn expect(&mut self, leading: &[u64], destinations: &[Destination], hosts: u16) {
        let (mut once, mut twice) = (0, 0);
        for bits in leading {
            twice |= once & bits;
            once |= bits;
        }
        for (load, bits) in self.loads.iter_mut().zip(leading) {
            for only in ones(bits & once & !twice) {
                *load += destinations[only].lids.len() as u64 * (u64::from(hosts) * PAIR + LID);
            }
        }
    }

    /// Has the candidates hold those of the switch's ways that lead to the destination at `place` of the batch.
    pub(super) fn hold(
        &mut self,
        candidates: &mut Candidates,
        ways: &[Way],
        leading: Leading<'_>,
        place: usize,
    ) {
        let chunks = ways.len().div_ceil(BATCH);
        let mut sets = candidates.held.iter().enumerate();
        if candidates.held.len() == chunks && sets.all(|(chunk, held)| *held == leading.set(chunk, place)) {
            return;
        }
        self.settle(candidates);
        let numbers = &mut candidates.numbers;
        for chunk in 0..chunks {
            let bits = leading.set(chunk, place);
            candidates.held.push(bits);
            numbers.extend(ones(bits).map(|bit| (chunk * BATCH + bit) as u32));
        }
        if !self.places.is_empty() {
            numbers.sort_unstable_by_key(|way| self.places[*way as usize]);
        }
        candidates.ways.extend(numbers.iter().map(|way| ways[*way as usize]));
        candidates.loads.extend(numbers.iter().map(|way| self.loads[*way as usize]));
        candidates.renew();
    }

    /// Takes the loads of what is held, which is not held from then on.
    pub(super) fn settle(&mut self, candidates: &mut Candidates) {
        for (load, way) in candidates.loads.iter().zip(&candidates.numbers) {
            self.loads[*way as usize] = *load;
        }
        candidates.held.clear();
        candidates.numbers.clear();
        candidates.ways.clear();
        candidates.loads.clear();
    }
}
