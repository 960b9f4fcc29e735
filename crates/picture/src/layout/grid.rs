//! Rings and grids of switches, found by their cabling alone.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::Place;
use crate::view::{MarkId, View};

fn switches_at(view: &View, id: MarkId) -> impl Iterator<Item = MarkId> {
    view.neighbours(id).iter().copied().filter(|to| view.marks[to.index()].is_switch)
}

/// The switches on a circle, where each has two others beside it and all are one ring.
pub(super) fn ring(view: &View, switches: &[MarkId]) -> Option<Vec<Place>> {
    if switches.iter().any(|id| switches_at(view, *id).count() != 2) {
        return None;
    }
    let first = *switches.first()?;
    let (mut order, mut before, mut at) = (vec![first], first, switches_at(view, first).next()?);
    while at != first {
        order.push(at);
        let next = switches_at(view, at).find(|to| *to != before)?;
        (before, at) = (at, next);
    }
    if order.len() != switches.len() {
        return None;
    }
    let radius = order.len() as f64 / std::f64::consts::TAU;
    let turn = |nth: usize| std::f64::consts::TAU * nth as f64 / order.len() as f64;
    let places: BTreeMap<MarkId, Place> = order
        .iter()
        .enumerate()
        .map(|(nth, id)| (*id, Place { x: radius * turn(nth).cos(), y: radius * turn(nth).sin() }))
        .collect();
    Some(switches.iter().map(|id| places[id]).collect())
}

/// The switches in rows and columns, where they are a mesh or a torus of two dimensions: walks through the cabling, in which straight on
/// is the way to the one switch behind that shares no further neighbour with the switch before.
pub(super) fn grid(view: &View, switches: &[MarkId]) -> Option<Vec<Place>> {
    if switches.iter().any(|id| !(2..=4).contains(&switches_at(view, *id).count())) {
        return None;
    }
    let corner = *switches.iter().min_by_key(|id| switches_at(view, **id).count())?;
    let across = switches_at(view, corner).next()?;
    let down = switches_at(view, corner).find(|to| *to != across && opposite(view, across, corner, *to))?;
    let (columns, rows) = (line(view, corner, across)?, line(view, corner, down)?);
    if columns.len() * rows.len() != switches.len() {
        return None;
    }
    let places = fill(view, &columns, &rows)?;
    switches.iter().map(|id| places.get(id).copied()).collect()
}

/// Whether two neighbours of a switch are round a corner: then another switch joins them too.
fn opposite(view: &View, a: MarkId, middle: MarkId, b: MarkId) -> bool {
    let beside: BTreeSet<MarkId> = switches_at(view, a).collect();
    switches_at(view, b).any(|to| to != middle && beside.contains(&to))
}

/// The switches straight on from a first and a second one, to the edge or once around.
fn line(view: &View, first: MarkId, second: MarkId) -> Option<Vec<MarkId>> {
    let mut line = vec![first, second];
    loop {
        let [.., before, at] = line.as_slice() else { return None };
        let (before, at) = (*before, *at);
        let mut on = switches_at(view, at).filter(|to| *to != before && !opposite(view, before, at, *to));
        match on.next() {
            None => return Some(line),
            Some(next) if next == first => return Some(line),
            Some(next) if line.contains(&next) => return None,
            Some(next) => line.push(next),
        }
    }
}

/// Each row begins at its switch of the first column; the switch below and to the right is the common neighbour of its two.
fn fill(view: &View, columns: &[MarkId], rows: &[MarkId]) -> Option<BTreeMap<MarkId, Place>> {
    let mut at: BTreeMap<(usize, usize), MarkId> = BTreeMap::new();
    columns.iter().enumerate().for_each(|(x, id)| {
        at.insert((x, 0), *id);
    });
    rows.iter().enumerate().for_each(|(y, id)| {
        at.insert((0, y), *id);
    });
    let mut used: BTreeSet<MarkId> = at.values().copied().collect();
    let mut due: VecDeque<(usize, usize)> =
        (1..rows.len()).flat_map(|y| (1..columns.len()).map(move |x| (x, y))).collect();
    while let Some((x, y)) = due.pop_front() {
        let (above, left) = (*at.get(&(x, y - 1))?, *at.get(&(x - 1, y))?);
        let beside: BTreeSet<MarkId> = switches_at(view, above).collect();
        let found = switches_at(view, left).find(|to| beside.contains(to) && !used.contains(to))?;
        used.insert(found);
        at.insert((x, y), found);
    }
    Some(at.into_iter().map(|((x, y), id)| (id, Place { x: x as f64, y: y as f64 })).collect())
}
