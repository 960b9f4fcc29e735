//! Flows that share the links of a level.

use serde::Serialize;
use weft_topology::PortRef;
use weft_wire::Lid;

use super::paths::{CONVOY, Endpoint, Paths};
use super::{UNREACHED_MAX, UnknownLid, Unreached};

/// How many links of paths are kept between the two passes over a level; the paths beyond are followed twice.
const REMEMBERED_MAX: usize = 1 << 20;

/// With how many times fewer links in its paths than there are links a level is sparse; below [`REMEMBERED_MAX`] in
/// any fabric, so that all paths of a sparse level are remembered.
const SPARSE: usize = 8;

/// A path that does not lead to its end, in the place of its links.
const FAILED: u32 = u32::MAX;

/// Flows that run at the same time, and what they meet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Congestion {
    /// For each flow, how many flows use the link on its path that the most use, itself included: 1 for a flow that
    /// shares nothing, 0 where no link is on the path; `None` for one that does not arrive.
    pub flows: Vec<Option<u32>>,
    /// How many flows use each link; a link is named by the port that it leaves, and is not here when nothing uses it.
    pub links: Vec<(PortRef, u32)>,
    /// The first few flows that do not arrive, and why; they load no link.
    pub unreached: Vec<Unreached>,
}

/// Lets flows run at the same time and counts them on every link, each direction of a cable by itself. Links from and
/// to hosts count as those between switches do. Lanes make no difference: two flows on one link share its bandwidth
/// whatever lanes they are on.
pub fn congestion(paths: &Paths<'_>, flows: &[(Lid, Lid)]) -> Result<Congestion, UnknownLid> {
    let endpoint = |lid: Lid| paths.endpoint(lid).ok_or(UnknownLid(lid));
    let ends = |(from, to): &(Lid, Lid)| Ok((endpoint(*from)?, endpoint(*to)?));
    let known: Vec<_> = flows.iter().map(ends).collect::<Result<_, UnknownLid>>()?;
    let mut counter = Counter::new(paths);
    let mut found = Congestion::default();
    counter.run(known.iter().copied(), |_, meets| found.flows.push(meets));
    let used = (0..).zip(counter.flows()).filter(|(_, flows)| **flows > 0);
    found.links = used.map(|(link, flows)| (paths.port_of(link), *flows)).collect();
    let failed = known.iter().zip(&found.flows).filter(|(_, meets)| meets.is_none()).take(UNREACHED_MAX);
    found.unreached = failed.filter_map(|((from, to), _)| Unreached::new(paths, *from, *to)).collect();
    Ok(found)
}

/// Counts flows on links, level after level.
#[derive(Debug)]
pub(crate) struct Counter<'p, 'a> {
    paths: &'p Paths<'a>,
    flows: Vec<u32>,
    /// The links of the paths of a level, one path after the other.
    remembered: Vec<u32>,
    /// Where each of those paths ends.
    ends: Vec<u32>,
    /// The flows that are followed side by side, and their links.
    convoy: Vec<(Endpoint, Endpoint)>,
    trails: [Vec<u32>; CONVOY],
}

impl<'p, 'a> Counter<'p, 'a> {
    pub(crate) fn new(paths: &'p Paths<'a>) -> Self {
        Self {
            paths,
            flows: vec![0; paths.link_count()],
            remembered: Vec::new(),
            ends: Vec::new(),
            convoy: Vec::with_capacity(CONVOY),
            trails: Default::default(),
        }
    }

    /// How many flows of the last level use each link.
    pub(crate) fn flows(&self) -> &[u32] {
        &self.flows
    }

    /// Adds the flows of the last level to totals, by link.
    pub(crate) fn add_to(&self, totals: &mut [u64]) {
        if self.is_sparse() {
            for link in self.remembered.iter().filter(|link| **link != FAILED) {
                totals[*link as usize] += 1;
            }
        } else {
            for (total, flows) in totals.iter_mut().zip(&self.flows) {
                *total += u64::from(*flows);
            }
        }
    }

    /// Whether the last level used so few links that it is quicker to go through its paths than through all links.
    fn is_sparse(&self) -> bool {
        self.remembered.len() < self.flows.len() / SPARSE
    }

    /// Forgets the last level.
    fn clear(&mut self) {
        if self.is_sparse() {
            for link in self.remembered.iter().filter(|link| **link != FAILED) {
                self.flows[*link as usize] = 0;
            }
        } else {
            self.flows.fill(0);
        }
        self.remembered.clear();
        self.ends.clear();
    }

    /// Runs the flows of a level, and tells for each, by its place in the order, what it meets, as in
    /// [`Congestion::flows`].
    pub(crate) fn run(
        &mut self,
        pairs: impl Iterator<Item = (Endpoint, Endpoint)> + Clone,
        mut tell: impl FnMut(usize, Option<u32>),
    ) {
        self.clear();
        let mut all = pairs.clone();
        while self.take(&mut all) {
            let arrived = self.paths.walk(&self.convoy, &mut self.trails);
            let remember = self.remembered.len() < REMEMBERED_MAX;
            for (number, trail) in self.trails[..self.convoy.len()].iter().enumerate() {
                let trail: &[u32] = if arrived & (1 << number) == 0 { &[FAILED] } else { trail };
                for link in trail.iter().filter(|link| **link != FAILED) {
                    self.flows[*link as usize] += 1;
                }
                if remember {
                    self.remembered.extend_from_slice(trail);
                    self.ends.push(self.remembered.len() as u32);
                }
            }
        }
        let mut begin = 0;
        for (place, end) in self.ends.iter().enumerate() {
            let end = *end as usize;
            tell(place, meets(&self.flows, &self.remembered[begin..end]));
            begin = end;
        }
        let mut place = self.ends.len();
        let mut rest = pairs.skip(place);
        while self.take(&mut rest) {
            let arrived = self.paths.walk(&self.convoy, &mut self.trails);
            for (number, trail) in self.trails[..self.convoy.len()].iter().enumerate() {
                let arrives = arrived & (1 << number) != 0;
                tell(place, if arrives { meets(&self.flows, trail) } else { None });
                place += 1;
            }
        }
    }

    /// Takes the next flows into the convoy. False when there are none.
    fn take(&mut self, pairs: &mut impl Iterator<Item = (Endpoint, Endpoint)>) -> bool {
        self.convoy.clear();
        self.convoy.extend(pairs.take(CONVOY));
        !self.convoy.is_empty()
    }
}

/// The most flows on any of these links.
fn meets(flows: &[u32], path: &[u32]) -> Option<u32> {
    if path == [FAILED] {
        return None;
    }
    Some(path.iter().map(|link| flows[*link as usize]).max().unwrap_or(0))
}
