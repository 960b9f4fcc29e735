//! Springs: marks push each other away and cables pull (Fruchterman and Reingold, 1991), from a circle in the cabling's order.

use super::Place;
use crate::view::{MarkId, View};

const ROUNDS: usize = 150;
/// Above this, all pairs would take too long: the circle stays.
const PAIRS_MAX: usize = 500 * 500;

pub(super) fn places(view: &View, switches: &[MarkId]) -> Vec<Place> {
    let count = switches.len();
    let radius = count as f64 / std::f64::consts::TAU;
    let turn = |nth: usize| std::f64::consts::TAU * nth as f64 / count.max(1) as f64;
    let mut places: Vec<Place> =
        (0..count).map(|nth| Place { x: radius * turn(nth).cos(), y: radius * turn(nth).sin() }).collect();
    if count * count > PAIRS_MAX {
        return places;
    }
    let at = |id: &MarkId| switches.binary_search(id).ok();
    let links: Vec<[usize; 2]> =
        view.bundles.iter().filter_map(|bundle| Some([at(&bundle.ends[0])?, at(&bundle.ends[1])?])).collect();
    for round in 0..ROUNDS {
        let heat = radius.max(1.0) * 0.1 * (1.0 - round as f64 / ROUNDS as f64);
        let pulls = pulls(&places, &links);
        for (place, pull) in places.iter_mut().zip(pulls) {
            let length = pull.x.hypot(pull.y).max(1e-9);
            let step = length.min(heat) / length;
            (place.x, place.y) = (place.x + pull.x * step, place.y + pull.y * step);
        }
    }
    places
}

/// What each mark is pulled and pushed by; the natural length of a cable is one mark's width.
fn pulls(places: &[Place], links: &[[usize; 2]]) -> Vec<Place> {
    let mut pulls = vec![Place::default(); places.len()];
    let mut add = |at: usize, x: f64, y: f64| {
        let pull = &mut pulls[at];
        (pull.x, pull.y) = (pull.x + x, pull.y + y);
    };
    for a in 0..places.len() {
        for b in a + 1..places.len() {
            let (x, y) = (places[a].x - places[b].x, places[a].y - places[b].y);
            let square = (x * x + y * y).max(1e-6);
            add(a, x / square, y / square);
            add(b, -x / square, -y / square);
        }
    }
    for &[a, b] in links {
        let (x, y) = (places[b].x - places[a].x, places[b].y - places[a].y);
        let length = x.hypot(y);
        add(a, x * length, y * length);
        add(b, -x * length, -y * length);
    }
    pulls
}
