//! Parameters that pack several values into a tuple: `(at, lid): (PortAt, Lid)`. A struct with named fields says what they are.
//!
//! Functions that still have one stand in a list, which may only shrink. Tests, closures and implementations of traits do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use syn::visit::Visit;

/// The list's file. A line is a crate and its functions: `lab: begin end`. Empty lines and those that begin with `#` are left out.
const LIST: &str = "xtask/tuples.txt";

/// A function by its crate and its name.
type Function = (String, String);

/// The functions of the files given by name and text that are not in the list, and what the list has without such a function.
pub(crate) fn breaches<'a>(
    root: &Path,
    files: impl Iterator<Item = &'a (String, String)>,
) -> Result<Vec<String>> {
    let list = fs::read_to_string(root.join(LIST)).with_context(|| format!("cannot read {LIST}"))?;
    let mut found: BTreeMap<Function, &str> = BTreeMap::new();
    for (file, text) in files {
        let room = file.trim_start_matches("crates/").split('/').next().unwrap_or(file);
        let packed = packed(text).with_context(|| format!("invalid Rust in {file}"))?;
        found.extend(packed.into_iter().map(|name| ((room.to_owned(), name), file.as_str())));
    }
    Ok(judge(&list, &found))
}

fn judge(list: &str, found: &BTreeMap<Function, &str>) -> Vec<String> {
    let lines = list.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(": "));
    let functions = |(room, names): (&str, &str)| {
        names.split(' ').map(|name| (room.to_owned(), name.to_owned())).collect::<Vec<_>>()
    };
    let listed: BTreeSet<Function> = lines.flat_map(functions).collect();
    let new = found.iter().filter(|(function, _)| !listed.contains(*function)).map(|((_, name), file)| {
        format!("{file}: a parameter of `{name}` is a tuple: pass its parts, or a struct with names")
    });
    let gone = listed.iter().filter(|function| !found.contains_key(*function)).map(|(room, name)| {
        format!("{LIST}: delete `{name}` of {room}: no such function has a tuple as a parameter any more")
    });
    new.chain(gone).collect()
}

/// The functions with such a parameter, by name.
fn packed(text: &str) -> Result<BTreeSet<String>> {
    let mut visitor = Visitor::default();
    visitor.visit_file(&syn::parse_file(text)?);
    Ok(visitor.found)
}

#[derive(Default)]
struct Visitor {
    found: BTreeSet<String>,
}

impl<'ast> Visit<'ast> for Visitor {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !item.attrs.iter().any(crate::modules::is_for_tests) {
            syn::visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        // The trait has the signatures.
        if item.trait_.is_none() {
            syn::visit::visit_item_impl(self, item);
        }
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        if signature.inputs.iter().any(is_packed) {
            self.found.insert(signature.ident.to_string());
        }
    }
}

fn is_packed(input: &syn::FnArg) -> bool {
    let syn::FnArg::Typed(input) = input else { return false };
    matches!(&*input.ty, syn::Type::Tuple(tuple) if tuple.elems.len() > 1)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "in a test a panic is the report")]
mod tests {
    use super::*;

    #[test]
    fn tuples_are_found_in_signatures_alone() {
        let text = "
            fn free((a, b): (u8, u8)) {}
            fn named(pair: (u8, u8)) {}
            fn one(only: (u8,), nothing: (), by: &(u8, u8)) { let (a, b) = (1, 2); each(|(c, d): (u8, u8)| c + d); }
            impl A { fn method(&self, (a, b): (u8, u8)) {} }
            impl From<(u8, u8)> for A { fn from(pair: (u8, u8)) -> A {} }
            trait T { fn told((a, b): (u8, u8)); }
            #[cfg(test)]
            mod tests { fn of_a_test((a, b): (u8, u8)) {} }
        ";
        let found: Vec<String> = packed(text).unwrap().into_iter().collect();
        assert_eq!(found, ["free", "method", "named", "told"]);
    }

    #[test]
    fn the_list_may_only_shrink() {
        let function = |name: &str| ("lab".to_owned(), name.to_owned());
        let found = BTreeMap::from([(function("f"), "a.rs"), (function("g"), "b.rs")]);
        assert_eq!(judge("# why\n\nlab: f g\n", &found), [""; 0]);
        let wrong = judge("lab: f h\n", &found);
        assert!(wrong[0].starts_with("b.rs: ") && wrong[1].contains("delete `h` of lab"), "{wrong:?}");
    }
}
