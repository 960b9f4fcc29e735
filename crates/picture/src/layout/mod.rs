//! Places of marks: tiers for trees, a ring or a grid where the switches form one, springs for everything else.

mod grid;
mod springs;
mod tiers;

use crate::view::{MarkId, View};

/// Where a mark is, in units of a mark's width, from the upper left corner.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Place {
    /// To the right.
    pub x: f64,
    /// Down.
    pub y: f64,
}

/// How marks are arranged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrangement {
    /// By rank, adapters at the bottom.
    Tiers,
    /// On a circle.
    Ring,
    /// In rows and columns, as in meshes and tori of two dimensions.
    Grid,
    /// As springs along the cables pull.
    Springs,
}

/// A layout.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// How it is arranged.
    pub arrangement: Arrangement,
    /// The places, by mark.
    pub places: Vec<Place>,
    /// What the picture measures.
    pub size: Place,
}

/// Room around the outermost marks.
const MARGIN: f64 = 1.0;

/// Lays a view out.
pub fn layout(view: &View) -> Layout {
    let switches: Vec<MarkId> = ids(view).filter(|id| view.marks[id.index()].is_switch).collect();
    let is_flat = switches.iter().all(|id| view.marks[id.index()].rank <= 1) && switches.len() > 2;
    let cores = if is_flat { core(view, &switches) } else { None };
    let (arrangement, places) = match cores {
        None => (Arrangement::Tiers, tiers::places(view)),
        Some((arrangement, cores)) => (arrangement, with_hosts(view, &switches, &cores)),
    };
    framed(arrangement, places)
}

fn ids(view: &View) -> impl Iterator<Item = MarkId> + use<> {
    (0..view.marks.len() as u32).map(MarkId)
}

/// Places of switches alone, where all of them have adapters.
fn core(view: &View, switches: &[MarkId]) -> Option<(Arrangement, Vec<Place>)> {
    let links =
        |id: &MarkId| view.neighbours(*id).iter().filter(|to| view.marks[to.index()].is_switch).count();
    // A single switch in the middle of others is a tree with adapters at its top.
    if switches.iter().any(|id| links(id) == switches.len() - 1) && switches.iter().any(|id| links(id) == 1) {
        return None;
    }
    Some(if let Some(places) = grid::ring(view, switches) {
        (Arrangement::Ring, places)
    } else if let Some(places) = grid::grid(view, switches) {
        (Arrangement::Grid, places)
    } else {
        (Arrangement::Springs, springs::places(view, switches))
    })
}

/// Adapters around their switches.
fn with_hosts(view: &View, switches: &[MarkId], cores: &[Place]) -> Vec<Place> {
    const SPREAD: f64 = 3.0;
    let mut places = vec![Place::default(); view.marks.len()];
    for (id, core) in switches.iter().zip(cores) {
        places[id.index()] = Place { x: core.x * SPREAD, y: core.y * SPREAD };
    }
    let mut seen = vec![0_u32; view.marks.len()];
    for id in ids(view).filter(|id| !view.marks[id.index()].is_switch) {
        let Some(at) = view.neighbours(id).first() else { continue };
        let hosts = view.neighbours(*at).iter().filter(|to| !view.marks[to.index()].is_switch).count();
        let nth = seen[at.index()];
        seen[at.index()] += 1;
        let angle =
            std::f64::consts::TAU * f64::from(nth) / hosts.max(1) as f64 + std::f64::consts::FRAC_PI_4;
        let (centre, reach) = (places[at.index()], 0.9 + 0.08 * hosts as f64);
        places[id.index()] = Place { x: centre.x + reach * angle.cos(), y: centre.y + reach * angle.sin() };
    }
    places
}

/// Moves everything into the picture.
fn framed(arrangement: Arrangement, mut places: Vec<Place>) -> Layout {
    let least = |pick: fn(&Place) -> f64| places.iter().map(pick).fold(f64::INFINITY, f64::min);
    let (left, top) = (least(|place| place.x), least(|place| place.y));
    let mut size = Place { x: 2.0 * MARGIN, y: 2.0 * MARGIN };
    for place in &mut places {
        (place.x, place.y) = (place.x - left + MARGIN, place.y - top + MARGIN);
        (size.x, size.y) = (size.x.max(place.x + MARGIN), size.y.max(place.y + MARGIN));
    }
    Layout { arrangement, places, size }
}
