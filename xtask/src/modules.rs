//! Circles of modules within a crate: a module that names another in its paths needs it, and nothing may need itself.
//!
//! What names a module: `use crate::a::b::X`, `super::b::X`, and paths in code and macros. A path that ends at an ancestor (a child's
//! `super::X`, and `crate::X` that the root gives on from somewhere) does not count, and neither do tests.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use proc_macro2::{TokenStream, TokenTree};
use syn::visit::Visit;

/// A module's path within its crate; the root's is empty.
type Module = Vec<String>;

/// The files of each module: a crate may have two roots.
type Sources = BTreeMap<Module, Vec<String>>;

/// Which module names which.
type Graph = BTreeMap<Module, BTreeSet<Module>>;

/// Fails with a shortest circle of each knot.
pub(crate) fn check(root: &Path) -> Result<()> {
    let mut wrong = Vec::new();
    for room in crate::layers::rooms() {
        let folder = root.join("crates").join(room).join("src");
        let graph = graph(&sources(&folder)?)?;
        wrong.extend(circles(&graph).iter().map(|circle| {
            let circle: Vec<String> = circle.iter().map(|module| shown(module)).collect();
            format!("{room}: {}", circle.join(" -> "))
        }));
    }
    if wrong.is_empty() { Ok(()) } else { bail!("modules in circles:\n  {}", wrong.join("\n  ")) }
}

fn shown(module: &[String]) -> String {
    if module.is_empty() { "crate".to_owned() } else { module.join("::") }
}

/// The files of a crate by their modules; tests and other programs are left out.
fn sources(folder: &Path) -> Result<Sources> {
    let mut files = BTreeMap::new();
    for file in crate::tidy::rust_files(folder)? {
        let name = file.strip_prefix(folder).unwrap_or(&file).with_extension("");
        let mut path: Module = name.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        if path.first().is_some_and(|first| first == "bin") || path.iter().any(|part| part == "tests") {
            continue;
        }
        if path.last().is_some_and(|last| ["lib", "main", "mod"].contains(&last.as_str())) {
            path.pop();
        }
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        files.entry(path).or_insert_with(Vec::new).push(text);
    }
    Ok(files)
}

fn graph(files: &Sources) -> Result<Graph> {
    let mut graph = Graph::new();
    for (module, texts) in files {
        let mut paths = Paths::default();
        for text in texts {
            let file = syn::parse_file(text).with_context(|| format!("invalid Rust in {}", shown(module)))?;
            paths.visit_file(&file);
        }
        let named = paths.found.iter().filter_map(|path| target(files, module, path));
        let uses = named.filter(|target| !module.starts_with(target)).collect();
        graph.insert(module.clone(), uses);
    }
    Ok(graph)
}

/// The module that a path names, seen from another: its longest beginning that is a file.
fn target(files: &Sources, from: &Module, path: &[String]) -> Option<Module> {
    let (mut whole, rest) = match path.first()?.as_str() {
        "crate" => (Module::new(), &path[1..]),
        "self" | "super" => (from.clone(), path),
        child => {
            let child = [from.as_slice(), &[child.to_owned()]].concat();
            files.get(&child)?;
            (from.clone(), path)
        }
    };
    for part in rest {
        match part.as_str() {
            "self" => {}
            "super" => drop(whole.pop()),
            part => whole.push(part.to_owned()),
        }
    }
    while !files.contains_key(&whole) {
        whole.pop()?;
    }
    Some(whole)
}

/// All paths of a file.
#[derive(Default)]
struct Paths {
    found: Vec<Vec<String>>,
}

impl Paths {
    fn flatten(&mut self, before: &[String], tree: &syn::UseTree) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            syn::UseTree::Path(path) => self.flatten(&with(&path.ident), &path.tree),
            syn::UseTree::Name(name) => self.found.push(with(&name.ident)),
            syn::UseTree::Rename(renamed) => self.found.push(with(&renamed.ident)),
            syn::UseTree::Glob(_) => self.found.push(before.to_vec()),
            syn::UseTree::Group(group) => group.items.iter().for_each(|item| self.flatten(before, item)),
        }
    }

    /// What stands in a macro is no syntax yet: names joined by `::`.
    fn scan(&mut self, tokens: TokenStream) {
        let (mut path, mut colons) = (Vec::new(), 0);
        for token in tokens {
            match token {
                TokenTree::Ident(name) if path.is_empty() || colons == 2 => {
                    path.push(name.to_string());
                    colons = 0;
                    continue;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' && !path.is_empty() => {
                    colons += 1;
                    continue;
                }
                TokenTree::Group(group) => self.scan(group.stream()),
                _ => {}
            }
            self.take(&mut path);
            colons = 0;
        }
        self.take(&mut path);
    }

    fn take(&mut self, path: &mut Vec<String>) {
        let path = std::mem::take(path);
        if path.len() > 1 {
            self.found.push(path);
        }
    }
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let attributes = match item {
            syn::Item::Mod(item) => &item.attrs,
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            syn::Item::Use(item) => &item.attrs,
            _ => &Vec::new(),
        };
        if !attributes.iter().any(is_for_tests) {
            syn::visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        // A parent that gives on what its children have only says where things are.
        if matches!(item.vis, syn::Visibility::Inherited) {
            self.flatten(&[], &item.tree);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1 {
            self.found.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        }
        syn::visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, makro: &'ast syn::Macro) {
        self.scan(makro.tokens.clone());
        syn::visit::visit_macro(self, makro);
    }
}

fn is_for_tests(attribute: &syn::Attribute) -> bool {
    let is_cfg = attribute.path().is_ident("cfg");
    is_cfg && attribute.parse_args::<syn::Ident>().is_ok_and(|what| what == "test")
}

/// The shortest way from one module to another.
fn way(graph: &Graph, from: &Module, to: &Module) -> Option<Vec<Module>> {
    let mut before: BTreeMap<&Module, &Module> = BTreeMap::new();
    let mut todo = VecDeque::from([from]);
    while let Some(at) = todo.pop_front() {
        if at == to && !(before.is_empty() && from == to) {
            return Some(back(&before, from, to));
        }
        for next in graph.get(at).into_iter().flatten() {
            if next == to {
                before.insert(next, at);
                return Some(back(&before, from, to));
            }
            if next != from && !before.contains_key(next) {
                before.insert(next, at);
                todo.push_back(next);
            }
        }
    }
    None
}

fn back(before: &BTreeMap<&Module, &Module>, from: &Module, to: &Module) -> Vec<Module> {
    let mut way = vec![to.clone()];
    let mut at = to;
    while let Some(&previous) = before.get(at) {
        way.push(previous.clone());
        if previous == from {
            break;
        }
        at = previous;
    }
    way.reverse();
    way
}

/// A shortest circle of each knot of modules that need each other.
fn circles(graph: &Graph) -> Vec<Vec<Module>> {
    let mut circles: Vec<Vec<Module>> =
        graph.keys().filter_map(|module| way(graph, module, module)).collect();
    circles.sort_by_key(Vec::len);
    let mut shown: Vec<Vec<Module>> = Vec::new();
    for circle in circles {
        let knot = |other: &Vec<Module>| {
            other[0] == circle[0]
                || way(graph, &other[0], &circle[0]).is_some() && way(graph, &circle[0], &other[0]).is_some()
        };
        if !shown.iter().any(knot) {
            shown.push(circle);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> Vec<String> {
        let module = |name: &str| -> Module {
            name.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect()
        };
        let files = files.iter().map(|(name, text)| (module(name), vec![(*text).to_owned()])).collect();
        let show = |circle: &Vec<Module>| circle.iter().map(|m| shown(m)).collect::<Vec<_>>().join(" -> ");
        circles(&graph(&files).unwrap()).iter().map(show).collect()
    }

    #[test]
    fn no_modules_stand_in_circles() {
        check(&crate::root()).unwrap();
    }

    #[test]
    fn a_circle_is_shown_as_paths() {
        let two = [("", "mod a; mod b;"), ("a", "use crate::b::B;"), ("b", "fn f() { super::a::g(); }")];
        assert_eq!(of(&two), ["a -> b -> a"]);
        let three = [
            ("a", "use super::{b::{B, C as D}};"),
            ("b", "use crate::c;"),
            ("c", "m!(1 + crate::a::X);"),
            ("", ""),
        ];
        assert_eq!(of(&three), ["a -> b -> c -> a"]);
        let nested = [
            ("a", "use crate::b::inner::X;"),
            ("b", "mod inner;"),
            ("b::inner", "use crate::a::Y;"),
            ("", ""),
        ];
        assert_eq!(of(&nested), ["a -> b::inner -> a"]);
    }

    #[test]
    fn what_is_no_circle() {
        let given_on = [
            ("", "mod a; mod b; pub use a::A; use b::B;"),
            ("a", "use crate::b::B;"),
            ("b", "use crate::A;"),
        ];
        assert_eq!(of(&given_on), [""; 0]);
        let children = [("", ""), ("a", "mod b; use b::B;"), ("a::b", "use super::A; use crate::a::A;")];
        assert_eq!(of(&children), [""; 0]);
        let tests =
            [("", ""), ("a", "use crate::b::B;"), ("b", "#[cfg(test)]\nmod tests { use crate::a::A; }")];
        assert_eq!(of(&tests), [""; 0]);
    }
}
