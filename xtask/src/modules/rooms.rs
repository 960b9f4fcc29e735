//! Rooms of a crate, and the knots of those that name each other.
//!
//! The rooms of a folder are its files and its folders, each folder with all that is below it. A folder's own file (`mod.rs`, or the
//! crate's root) is none of them: it may name what is in the folder, and be named by it.

use std::collections::{BTreeMap, BTreeSet};

use super::machines;
use super::names::Names;
use super::paths::Module;
use super::sources::Sources;

/// Which room names which, and where.
pub(super) struct Rooms {
    edges: BTreeMap<Module, BTreeMap<Module, BTreeSet<String>>>,
}

/// Rooms of which each is named by the others, if only through others.
#[derive(Debug)]
pub(super) struct Knot {
    pub(super) members: BTreeSet<Module>,
    /// Who names whom at which sites.
    pub(super) edges: Vec<(Module, Module, Vec<String>)>,
}

impl Rooms {
    /// The rooms of a crate.
    pub(super) fn of(sources: &Sources) -> Self {
        let names = Names::of(sources);
        let extensions = machines::extensions(sources, &names);
        let place = |module: &Module| {
            let file = sources.file(module);
            extensions.get(&file).cloned().unwrap_or(file)
        };
        let mut edges: BTreeMap<Module, BTreeMap<Module, BTreeSet<String>>> = BTreeMap::new();
        for named in sources.files.values().flatten().flat_map(|scan| &scan.named) {
            let from = place(&named.from);
            let targets: BTreeSet<Module> =
                names.named(&named.from, &named.path).iter().map(&place).collect();
            for (a, b) in targets.iter().filter_map(|to| rooms(&from, to)) {
                edges.entry(a).or_default().entry(b).or_default().insert(named.site.clone());
            }
        }
        Self { edges }
    }

    /// All knots.
    pub(super) fn knots(&self) -> Vec<Knot> {
        let reached: BTreeMap<&Module, BTreeSet<&Module>> =
            self.edges.keys().map(|room| (room, self.reached(room))).collect();
        let mut seen = BTreeSet::new();
        let mut knots = Vec::new();
        for (room, others) in reached.iter().filter(|(room, others)| others.contains(*room)) {
            let is_mutual = |other: &&&Module| reached.get(**other).is_some_and(|back| back.contains(room));
            let members: BTreeSet<Module> =
                others.iter().filter(is_mutual).map(|room| (*room).clone()).collect();
            if seen.insert(members.clone()) {
                knots.push(self.knot(members));
            }
        }
        knots
    }

    fn reached<'a>(&'a self, room: &'a Module) -> BTreeSet<&'a Module> {
        let (mut todo, mut reached) = (vec![room], BTreeSet::new());
        while let Some(room) = todo.pop() {
            let next = self.edges.get(room).into_iter().flat_map(BTreeMap::keys);
            todo.extend(next.filter(|next| reached.insert(*next)));
        }
        reached
    }

    fn knot(&self, members: BTreeSet<Module>) -> Knot {
        let edges =
            self.edges.iter().flat_map(|(a, named)| named.iter().map(move |(b, sites)| (a, b, sites)));
        let inner = edges.filter(|(a, b, _)| members.contains(*a) && members.contains(*b));
        let edges =
            inner.map(|(a, b, sites)| (a.clone(), b.clone(), sites.iter().cloned().collect())).collect();
        Knot { members, edges }
    }
}

/// The two rooms of a folder that two files are in; none if one file is the other's ancestor.
fn rooms(from: &Module, to: &Module) -> Option<(Module, Module)> {
    let common = from.iter().zip(to).take_while(|(a, b)| a == b).count();
    let is_apart = common < from.len() && common < to.len();
    is_apart.then(|| (from[..=common].to_vec(), to[..=common].to_vec()))
}
