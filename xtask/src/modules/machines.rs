//! Files that only extend a machine: they have `impl` blocks of one type that implements `Machine` and is defined in another file, and no
//! item that can be named. Such a file counts as a part of the one that defines the type.

use std::collections::{BTreeMap, BTreeSet};

use super::names::Names;
use super::paths::{Module, Scan};
use super::sources::Sources;

/// A type: the module that defines it, and its name.
type Type = (Module, String);

/// The extending files, each with the file that it belongs to.
pub(super) fn extensions(sources: &Sources, names: &Names<'_>) -> BTreeMap<Module, Module> {
    let of = |module: &Module, types: &BTreeSet<Vec<String>>| -> BTreeSet<Type> {
        let of = |path: &Vec<String>| Some((names.defines(module, path)?, path.last()?.clone()));
        types.iter().filter_map(of).collect()
    };
    let all =
        || sources.files.iter().flat_map(|(module, scans)| scans.iter().map(move |scan| (module, scan)));
    let machines: BTreeSet<Type> = all().flat_map(|(module, scan)| of(module, &scan.machines)).collect();
    let owner = |(module, scan): (&Module, &Scan)| {
        let mut owners = of(module, &scan.extended).into_iter().filter(|(owner, _)| owner != module);
        let only = (owners.next(), owners.next());
        match only {
            (Some(machine), None) if !scan.is_nameable && machines.contains(&machine) => {
                Some((module.clone(), sources.file(&machine.0)))
            }
            _ => None,
        }
    };
    all().filter_map(owner).collect()
}
