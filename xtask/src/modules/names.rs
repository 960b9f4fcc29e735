//! Resolution of paths to the modules that define what they name, through imports and re-exports.

use std::collections::{BTreeMap, BTreeSet};

use super::paths::{Module, Scope};
use super::sources::Sources;

/// The longest chain of re-exports that is followed.
const DEPTH_MAX: usize = 16;

/// The names of all modules of a crate.
pub(super) struct Names<'a> {
    scopes: BTreeMap<&'a Module, Vec<&'a Scope>>,
}

/// The place that a path leads to.
enum Place {
    Module(Module),
    /// An item, by the module that defines it.
    Item(Module),
}

impl<'a> Names<'a> {
    /// The names in a crate's sources.
    pub(super) fn of(sources: &'a Sources) -> Self {
        let mut scopes: BTreeMap<&Module, Vec<&Scope>> = BTreeMap::new();
        for scan in sources.files.values().flatten() {
            for (module, scope) in &scan.scopes {
                scopes.entry(module).or_default().push(scope);
            }
        }
        Self { scopes }
    }

    /// The modules that a path names: those on its way, and the one that defines its end.
    pub(super) fn named(&self, from: &Module, path: &[String]) -> BTreeSet<Module> {
        let mut on_way = BTreeSet::new();
        let end = self.walk(from, path, &mut on_way, 0);
        on_way.extend(end.map(|(Place::Module(module) | Place::Item(module))| module));
        on_way
    }

    /// The module that defines a type; none for a type from another crate.
    pub(super) fn defines(&self, from: &Module, path: &[String]) -> Option<Module> {
        match self.walk(from, path, &mut BTreeSet::new(), 0)? {
            Place::Item(module) => Some(module),
            Place::Module(_) => None,
        }
    }

    fn walk(
        &self,
        from: &Module,
        path: &[String],
        on_way: &mut BTreeSet<Module>,
        depth: usize,
    ) -> Option<Place> {
        let first = path.first()?;
        let is_anchored = ["crate", "self", "super"].contains(&first.as_str());
        let (mut at, rest) = match first.as_str() {
            "crate" => (Module::new(), &path[1..]),
            _ => (from.clone(), path),
        };
        for (i, name) in rest.iter().enumerate() {
            match self.step(&at, name, depth) {
                Some(Place::Module(next)) => at = next,
                Some(item) => return Some(item),
                // A name from another crate, or one that a macro makes.
                None if i == 0 && !is_anchored => return None,
                None => return Some(Place::Item(at)),
            }
            on_way.insert(at.clone());
        }
        Some(Place::Module(at))
    }

    /// The place of a name in a module.
    fn step(&self, at: &Module, name: &str, depth: usize) -> Option<Place> {
        if depth > DEPTH_MAX {
            return None;
        }
        match name {
            "self" => return Some(Place::Module(at.clone())),
            "super" => return Some(Place::Module(at[..at.len().saturating_sub(1)].to_vec())),
            _ => {}
        }
        let child = [at.as_slice(), &[name.to_owned()]].concat();
        if self.scopes.contains_key(&child) {
            return Some(Place::Module(child));
        }
        let scopes = self.scopes.get(at).into_iter().flatten();
        if scopes.clone().any(|scope| scope.items.contains(name)) {
            return Some(Place::Item(at.clone()));
        }
        let elsewhere = |path: &Vec<String>| self.walk(at, path, &mut BTreeSet::new(), depth + 1);
        if let Some(path) = scopes.clone().find_map(|scope| scope.imports.get(name)) {
            // `use name;` of another crate looks itself up.
            let is_own = path.first().is_some_and(|first| first != name);
            return Some(is_own.then(|| elsewhere(path)).flatten().unwrap_or(Place::Item(at.clone())));
        }
        scopes.flat_map(|scope| &scope.globs).find_map(|path| match elsewhere(path)? {
            Place::Module(module) if module != *at => self.step(&module, name, depth + 1),
            _ => None,
        })
    }
}
