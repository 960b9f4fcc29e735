//! Signatures that say too little: parameters that pack several values into a tuple, and errors that are bare text.
//!
//! `(at, lid): (PortAt, Lid)` becomes a struct with named fields, and `Result<_, String>` in what is public has an error type of the crate's
//! own, whose `Display` is the text. Tests, closures, implementations of traits and macros do not count.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use syn::visit::Visit;

/// The crate whose private helpers for clap give texts; it has no users of its own.
const PROGRAM: &str = "crates/weft/";

/// The functions of the files given by name and text that break one of the two rules.
pub(crate) fn breaches<'a>(files: impl Iterator<Item = &'a (String, String)>) -> Result<Vec<String>> {
    let mut breaches = Vec::new();
    for (file, text) in files {
        let found = Found::of(text).with_context(|| format!("invalid Rust in {file}"))?;
        breaches.extend(found.packed.iter().map(|name| {
            format!("{file}: a parameter of `{name}` is a tuple: pass its parts, or a struct with names")
        }));
        let bare = found.bare.iter().filter(|_| !file.starts_with(PROGRAM));
        breaches.extend(bare.map(|name| {
            format!("{file}: `{name}` is public, and its error a String: give it a type of its own")
        }));
    }
    Ok(breaches)
}

/// Breaches, by name.
#[derive(Default)]
struct Found {
    /// Functions with a tuple as a parameter.
    packed: BTreeSet<String>,
    /// Public functions and types that have a String as an error.
    bare: BTreeSet<String>,
}

impl Found {
    fn of(text: &str) -> Result<Self> {
        let mut found = Self::default();
        found.visit_file(&syn::parse_file(text)?);
        Ok(found)
    }

    fn look_at(&mut self, signature: &syn::Signature, is_public: bool) {
        if signature.inputs.iter().any(is_packed) {
            self.packed.insert(signature.ident.to_string());
        }
        if is_public && has_text(|texts| texts.visit_signature(signature)) {
            self.bare.insert(signature.ident.to_string());
        }
    }
}

impl<'ast> Visit<'ast> for Found {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !item.attrs.iter().any(crate::modules::is_for_tests) {
            syn::visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.look_at(&item.sig, is_public(&item.vis));
        syn::visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.look_at(&item.sig, is_public(&item.vis));
        syn::visit::visit_impl_item_fn(self, item);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        if is_public(&item.vis) && has_text(|texts| texts.visit_type(&item.ty)) {
            self.bare.insert(item.ident.to_string());
        }
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        let seen = |field: &&syn::Field| is_public(&item.vis) && is_public(&field.vis);
        if item.fields.iter().filter(seen).any(|field| has_text(|texts| texts.visit_field(field))) {
            self.bare.insert(item.ident.to_string());
        }
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        if is_public(&item.vis) && has_text(|texts| texts.visit_item_enum(item)) {
            self.bare.insert(item.ident.to_string());
        }
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        let public = is_public(&item.vis);
        for function in item.items.iter().filter_map(|item| match item {
            syn::TraitItem::Fn(function) => Some(function),
            _ => None,
        }) {
            self.look_at(&function.sig, public);
        }
        syn::visit::visit_item_trait(self, item);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let Some((_, path, _)) = &item.trait_ else { return syn::visit::visit_item_impl(self, item) };
        // The trait has the signatures, but not this type.
        let is_text = |item: &syn::ImplItem| match item {
            syn::ImplItem::Type(of) => (of.ident == "Err" || of.ident == "Error") && is_string(&of.ty),
            _ => false,
        };
        if item.items.iter().any(is_text) {
            self.bare.extend(path.segments.last().map(|last| last.ident.to_string()));
        }
    }
}

fn is_public(visibility: &syn::Visibility) -> bool {
    matches!(visibility, syn::Visibility::Public(_))
}

fn is_packed(input: &syn::FnArg) -> bool {
    let syn::FnArg::Typed(input) = input else { return false };
    matches!(&*input.ty, syn::Type::Tuple(tuple) if tuple.elems.len() > 1)
}

/// Whether there is a `Result<_, String>` among the types that are visited.
fn has_text(visit: impl FnOnce(&mut Texts)) -> bool {
    let mut texts = Texts(false);
    visit(&mut texts);
    texts.0
}

/// Whether a `Result<_, String>` was seen.
struct Texts(bool);

impl<'ast> Visit<'ast> for Texts {
    fn visit_path_segment(&mut self, segment: &'ast syn::PathSegment) {
        if let syn::PathArguments::AngleBracketed(arguments) = &segment.arguments
            && segment.ident == "Result"
            && let Some(syn::GenericArgument::Type(error)) = arguments.args.iter().nth(1)
        {
            self.0 |= is_string(error);
        }
        syn::visit::visit_path_segment(self, segment);
    }
}

fn is_string(of: &syn::Type) -> bool {
    matches!(of, syn::Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "String"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "in a test a panic is the report")]
mod tests {
    use super::*;

    fn names(found: &BTreeSet<String>) -> Vec<&str> {
        found.iter().map(String::as_str).collect()
    }

    #[test]
    fn tuples_are_found_in_signatures_alone() {
        let text = "
            fn free((a, b): (u8, u8)) { fn inner(pair: (u8, u8)) {} }
            fn named(pair: (u8, u8)) {}
            fn one(only: (u8,), nothing: (), by: &(u8, u8)) { let (a, b) = (1, 2); each(|(c, d): (u8, u8)| c + d); }
            impl A { fn method(&self, (a, b): (u8, u8)) {} }
            impl From<(u8, u8)> for A { fn from(pair: (u8, u8)) -> A {} }
            trait T { fn told((a, b): (u8, u8)); }
            #[cfg(test)]
            mod tests { fn of_a_test((a, b): (u8, u8)) {} }
        ";
        assert_eq!(names(&Found::of(text).unwrap().packed), ["free", "inner", "method", "named", "told"]);
    }

    #[test]
    fn texts_as_errors_are_found_in_what_is_public() {
        let text = "
            pub fn free() -> Result<(), String> {}
            pub(crate) fn of_the_crate() -> Result<(), String> {}
            fn private() -> Result<(), String> {}
            pub fn typed() -> Result<String, Wrong> {}
            pub fn alias() -> io::Result<String> {}
            impl A { pub fn method(&self) -> std::result::Result<u8, std::string::String> {} }
            impl FromStr for A { type Err = String; fn from_str(text: &str) -> Result<Self, String> {} }
            impl TryFrom<u8> for A { type Error = Wrong; fn try_from(code: u8) -> Result<Self, Wrong> {} }
            pub trait T { fn asked() -> Result<u8, String>; }
            pub fn given(by: impl FnOnce() -> Result<u8, String>) -> Result<String, Wrong> {}
            pub type Alias = dyn FnMut(&str) -> Result<String, String>;
            pub struct Open { pub outcome: Result<u8, String> }
            pub struct Closed { outcome: Result<u8, String> }
            pub enum Output { Done(Result<(), String>) }
            trait Own { fn unseen() -> Result<u8, String>; }
            #[cfg(test)]
            mod tests { pub fn of_a_test() -> Result<(), String> {} }
        ";
        assert_eq!(
            names(&Found::of(text).unwrap().bare),
            ["Alias", "FromStr", "Open", "Output", "asked", "free", "given", "method"]
        );
        let files = [("crates/weft/src/a.rs", 0), ("crates/wire/src/a.rs", 8)];
        for (file, count) in files {
            assert_eq!(breaches([(file.to_owned(), text.to_owned())].iter()).unwrap().len(), count, "{file}");
        }
    }
}
