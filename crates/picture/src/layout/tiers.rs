//! Tiers: marks in rows by rank, in an order with few crossings (the barycentre heuristic of Sugiyama, Tagawa and Toda, 1981).

use super::{Place, ids};
use crate::view::{MarkId, View};

/// Sweeps up and down over the rows.
const SWEEPS: usize = 4;
/// From row to row, in a mark's width: more where rows are wide, so that lines do not lie on each other.
const ROW: f64 = 2.4;
const ROW_SHARE: f64 = 0.25;
const ROW_MAX: f64 = 14.0;

pub(super) fn places(view: &View) -> Vec<Place> {
    let top = view.top();
    let mut rows: Vec<Vec<MarkId>> = vec![Vec::new(); top as usize + 1];
    ids(view).for_each(|id| rows[view.marks[id.index()].rank as usize].push(id));
    let mut position = vec![0.0; view.marks.len()];
    rows.iter().for_each(|row| number(row, &mut position));
    for sweep in 0..SWEEPS {
        let upward: Vec<usize> = (1..rows.len()).collect();
        let order = if sweep % 2 == 0 { upward } else { (0..top as usize).rev().collect() };
        for row in order {
            arrange(view, &mut rows[row], row as u32, sweep % 2 == 0, &mut position);
        }
    }
    let widest = rows.iter().map(Vec::len).max().unwrap_or(0) as f64;
    let height = (widest * ROW_SHARE).clamp(ROW, ROW_MAX);
    let mut places = vec![Place::default(); view.marks.len()];
    for (rank, row) in rows.iter().enumerate() {
        for (nth, id) in row.iter().enumerate() {
            let share = (nth as f64 + 0.5) / row.len() as f64;
            places[id.index()] = Place { x: share * widest, y: (top as usize - rank) as f64 * height };
        }
    }
    places
}

/// The place of each mark within its row, from 0 to 1.
fn number(row: &[MarkId], position: &mut [f64]) {
    for (nth, id) in row.iter().enumerate() {
        position[id.index()] = (nth as f64 + 0.5) / row.len() as f64;
    }
}

/// Puts each mark of a row over, or under, the middle of its neighbours.
fn arrange(view: &View, row: &mut [MarkId], rank: u32, upward: bool, position: &mut [f64]) {
    let middle = |id: &MarkId| {
        let is_beside = |to: &&MarkId| {
            let other = view.marks[to.index()].rank;
            if upward { other < rank } else { other > rank }
        };
        let beside = view.neighbours(*id).iter().filter(is_beside);
        let (sum, count) = beside.fold((0.0, 0), |(sum, count), to| (sum + position[to.index()], count + 1));
        if count == 0 { position[id.index()] } else { sum / f64::from(count) }
    };
    let mut keyed: Vec<(f64, MarkId)> = row.iter().map(|id| (middle(id), *id)).collect();
    keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
    row.iter_mut().zip(keyed).for_each(|(place, (_, id))| *place = id);
    number(row, position);
}
