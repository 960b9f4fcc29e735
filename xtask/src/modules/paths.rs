//! The paths, imports and items of one file, found with syn. Tests are left out.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use syn::visit::Visit;

/// A module's path within its crate; the root's is empty.
pub(super) type Module = Vec<String>;

/// A path that a file names.
pub(super) struct Named {
    /// The module that it stands in, which may be inside the file.
    pub(super) from: Module,
    pub(super) path: Vec<String>,
    /// File and line, as `file:line`.
    pub(super) site: String,
}

/// The names of a module.
#[derive(Default)]
pub(super) struct Scope {
    /// Names of items that the module itself defines.
    pub(super) items: BTreeSet<String>,
    /// Names that it imports or re-exports, and their paths.
    pub(super) imports: BTreeMap<String, Vec<String>>,
    /// Paths that it imports all names of.
    pub(super) globs: Vec<Vec<String>>,
}

/// A file's contents, as far as they matter here.
pub(super) struct Scan {
    pub(super) named: Vec<Named>,
    pub(super) scopes: BTreeMap<Module, Scope>,
    /// Modules that are compiled for tests only.
    pub(super) tests: Vec<Module>,
    /// The types that have `impl` blocks of their own here.
    pub(super) extended: BTreeSet<Vec<String>>,
    /// The types that implement `Machine` here.
    pub(super) machines: BTreeSet<Vec<String>>,
    /// Whether the file has an item that another file can name.
    pub(super) is_nameable: bool,
}

/// Reads a file.
pub(super) fn scan(module: &Module, name: &str, file: &syn::File) -> Scan {
    let scan = Scan {
        named: Vec::new(),
        scopes: BTreeMap::from([(module.clone(), Scope::default())]),
        tests: Vec::new(),
        extended: BTreeSet::new(),
        machines: BTreeSet::new(),
        is_nameable: false,
    };
    let mut visitor = Visitor { name, at: module.clone(), depth: 0, scan };
    visitor.visit_file(file);
    visitor.scan
}

struct Visitor<'a> {
    name: &'a str,
    at: Module,
    /// Zero at the top of the file.
    depth: usize,
    scan: Scan,
}

impl Visitor<'_> {
    fn take(&mut self, path: Vec<String>, span: Span) {
        let site = format!("{}:{}", self.name, span.start().line);
        self.scan.named.push(Named { from: self.at.clone(), path, site });
    }

    fn scope(&mut self) -> &mut Scope {
        self.scan.scopes.entry(self.at.clone()).or_default()
    }

    fn import(&mut self, before: &[String], tree: &syn::UseTree) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        let (path, name, span) = match tree {
            syn::UseTree::Path(path) => return self.import(&with(&path.ident), &path.tree),
            syn::UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.import(before, tree));
            }
            syn::UseTree::Glob(glob) => {
                self.scope().globs.push(before.to_vec());
                return self.take(before.to_vec(), glob.star_token.spans[0]);
            }
            syn::UseTree::Name(name) if name.ident == "self" => {
                (before.to_vec(), before.last().cloned(), name.ident.span())
            }
            syn::UseTree::Name(name) => (with(&name.ident), Some(name.ident.to_string()), name.ident.span()),
            syn::UseTree::Rename(renamed) => {
                (with(&renamed.ident), Some(renamed.rename.to_string()), renamed.ident.span())
            }
        };
        if let Some(name) = name {
            self.scope().imports.insert(name, path.clone());
        }
        self.take(path, span);
    }

    /// Reads tokens, which have no syntax yet: names joined by `::`, and attributes.
    fn tokens(&mut self, tokens: TokenStream, in_attribute: bool) {
        let (mut path, mut colons, mut last) = (Vec::new(), 0, None);
        let mut after_hash = false;
        for token in tokens {
            let span = token.span();
            let is_hash = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == '#');
            match token {
                TokenTree::Ident(name) if path.is_empty() || colons == 2 => {
                    path.push(name.to_string());
                    (colons, last) = (0, Some(span));
                    continue;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' && !path.is_empty() => {
                    colons += 1;
                    continue;
                }
                TokenTree::Group(group) => {
                    let is_attribute = after_hash && group.delimiter() == Delimiter::Bracket;
                    self.tokens(group.stream(), in_attribute || is_attribute);
                }
                TokenTree::Literal(literal) if in_attribute => self.text(&literal),
                _ => {}
            }
            after_hash = is_hash;
            self.take_many(std::mem::take(&mut path), last);
            colons = 0;
        }
        self.take_many(path, last);
    }

    fn take_many(&mut self, path: Vec<String>, span: Option<Span>) {
        if let (2.., Some(span)) = (path.len(), span) {
            self.take(path, span);
        }
    }

    /// Reads a text in an attribute, which may be a path or a type.
    fn text(&mut self, literal: &proc_macro2::Literal) {
        let syn::Lit::Str(text) = syn::Lit::new(literal.clone()) else { return };
        if let Ok(syn::Type::Path(path)) = text.parse::<syn::Type>() {
            self.visit_type_path(&path);
        }
    }
}

impl<'ast> Visit<'ast> for Visitor<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let known = Known::of(item);
        if known.attributes.iter().any(is_for_tests) {
            if let syn::Item::Mod(module) = item {
                self.scan.tests.push([self.at.as_slice(), &[module.ident.to_string()]].concat());
            }
            return;
        }
        if self.depth == 0 {
            self.scan.is_nameable |= known.is_public;
        }
        if let Some(name) = known.name {
            self.scope().items.insert(name.to_string());
        }
        self.depth += 1;
        syn::visit::visit_item(self, item);
        self.depth -= 1;
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if item.content.is_none() {
            return;
        }
        self.at.push(item.ident.to_string());
        self.scope();
        syn::visit::visit_item_mod(self, item);
        self.at.pop();
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if let syn::Type::Path(path) = &*item.self_ty {
            let path = names(&path.path);
            match &item.trait_ {
                None => self.scan.extended.insert(path),
                Some((_, of, _)) if of.segments.last().is_some_and(|name| name.ident == "Machine") => {
                    self.scan.machines.insert(path)
                }
                Some(_) => false,
            };
        }
        syn::visit::visit_item_impl(self, item);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if item.leading_colon.is_none() {
            self.import(&[], &item.tree);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if let (2.., Some(first)) = (path.segments.len(), path.segments.first()) {
            self.take(names(path), first.ident.span());
        }
        syn::visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, makro: &'ast syn::Macro) {
        self.tokens(makro.tokens.clone(), false);
        syn::visit::visit_macro(self, makro);
    }

    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        if let syn::Meta::List(list) = &attribute.meta {
            self.tokens(list.tokens.clone(), true);
        }
        syn::visit::visit_attribute(self, attribute);
    }
}

fn names(path: &syn::Path) -> Vec<String> {
    path.segments.iter().map(|segment| segment.ident.to_string()).collect()
}

/// The parts that most items have.
struct Known<'a> {
    attributes: &'a [syn::Attribute],
    name: Option<&'a syn::Ident>,
    is_public: bool,
}

impl<'a> Known<'a> {
    fn of(item: &'a syn::Item) -> Self {
        let known = |attributes: &'a [syn::Attribute], name: &'a syn::Ident, vis: &syn::Visibility| Self {
            attributes,
            name: Some(name),
            is_public: !matches!(vis, syn::Visibility::Inherited),
        };
        match item {
            syn::Item::Const(item) => known(&item.attrs, &item.ident, &item.vis),
            syn::Item::Enum(item) => known(&item.attrs, &item.ident, &item.vis),
            syn::Item::Fn(item) => known(&item.attrs, &item.sig.ident, &item.vis),
            syn::Item::Static(item) => known(&item.attrs, &item.ident, &item.vis),
            syn::Item::Struct(item) => known(&item.attrs, &item.ident, &item.vis),
            syn::Item::Trait(item) => known(&item.attrs, &item.ident, &item.vis),
            syn::Item::Type(item) => known(&item.attrs, &item.ident, &item.vis),
            syn::Item::Union(item) => known(&item.attrs, &item.ident, &item.vis),
            syn::Item::Mod(item) => Self { name: None, ..known(&item.attrs, &item.ident, &item.vis) },
            syn::Item::Impl(item) => Self { attributes: &item.attrs, name: None, is_public: false },
            syn::Item::Use(item) => {
                let is_public = !matches!(item.vis, syn::Visibility::Inherited);
                Self { attributes: &item.attrs, name: None, is_public }
            }
            // It may make anything, unless it only defines a macro.
            syn::Item::Macro(item) => {
                let is_public = !item.mac.path.is_ident("macro_rules");
                Self { attributes: &item.attrs, name: item.ident.as_ref(), is_public }
            }
            _ => Self { attributes: &[], name: None, is_public: true },
        }
    }
}

/// Whether an attribute leaves its item to tests.
pub(crate) fn is_for_tests(attribute: &syn::Attribute) -> bool {
    let is_cfg = attribute.path().is_ident("cfg");
    is_cfg && attribute.parse_args::<syn::Ident>().is_ok_and(|what| what == "test")
}
